"""Makes a school with published results by the program of a release, and backs it up: run on that release's modules.

    python fill_released.py PASSWORD FILE

Its imports and requests have the same names in every release since 0.2.0. A class of two arms has two terms: by
points, and by categories with results of another school. The first term of an arm was corrected and published again.
"""

from __future__ import annotations

import os
import sys
from base64 import b64decode
from datetime import datetime, timedelta
from io import BytesIO
from pathlib import Path
from random import Random
from typing import Any

from openpyxl import load_workbook

from school_service.app import create_app, tenancy_of
from school_service.auth.tokens import issue_user_token
from school_service.config import Settings
from tenants import clock
from tenants.backups.backup import back_up
from tenants.provisioning.create import create_school
from tenants.registry.installation import install
from tenants.tenancy import Administrator

LOGO = b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAABAAAAAQCAIAAACQkWg2AAAAFklEQVR42mMQCbAhCTGMahjVMHw1AADpXKABWPhxTAAAAABJRU5ErkJggg=="
)
NAMES = ("Adé Bàlógun", "Bọ́lá Chukwu", "Chidi Bello", "Ẹfẹ́ Eze", "Fatima Musa", "Gbénga Bello", "Halima Sani")
SUBJECTS = ("English Language", "French", "Mathematics", "Yoruba")
ELECTIVE = "French"


class Clock(datetime):
    """A clock that goes on by ten minutes whenever it is asked."""

    _moment = datetime.fromisoformat("2025-09-15T08:00:00+00:00")

    @classmethod
    def now(cls, tz: Any = None) -> Any:
        cls._moment += timedelta(minutes=10)
        return cls._moment

    @classmethod
    def go_to(cls, day: str, time: str = "08:00") -> None:
        cls._moment = datetime.fromisoformat(f"{day}T{time}:00+00:00")


class Client:
    """Speaks to the API as the school's administrator."""

    def __init__(self, app: Any, school: Any, token: str) -> None:
        self._client = app.test_client()
        self.headers = {"X-SCHOOL-ID": str(school), "Authorization": f"Bearer {token}"}

    def send(self, method: str, path: str, body: Any = None, **options: Any) -> Any:
        given = {**options, "headers": self.headers, **({} if body is None else {"json": body})}
        answer = self._client.open(path, method=method, **given)
        assert answer.status_code == 200, (method, path, answer.get_data(as_text=True))
        return answer.get_json() if answer.mimetype == "application/json" else answer.data


class Class:
    """The class, and its session."""

    def __init__(self, client: Client) -> None:
        self.send, self.random = client.send, Random(2311)
        send = self.send
        session = {"name": "2025/2026", "start_date": "2025-09-08", "end_date": "2026-07-24", "current": True}
        self.session = send("POST", "/sessions", session)["id"]
        self.terms = {
            term: send(
                "POST",
                "/terms",
                {"session_id": self.session, "term": term, "display_name": f"{term.title()} Term"},
            )["id"]
            for term in ("FIRST", "SECOND")
        }
        room = send("POST", "/classrooms", {"name": "JSS 1", "level": "Junior Secondary"})["id"]
        cohort = send("POST", "/cohorts", {"classroom": room, "session_id": self.session})["id"]
        other = send("POST", f"/cohorts/{cohort}/batches", {"name": "B"})["id"]
        self.arms = (cohort, other)
        self.batch_of: dict[str, str] = {}
        for number, name in enumerate(NAMES):
            first, last = name.split()
            body = {
                "first_name": first, "last_name": last, "admission_number": f"R/{number + 1:03}", "gender": "FEMALE",
                **({"dob": f"2013-0{number + 1}-11"} if number % 2 else {"middle_name": "Ifẹ́"}),
            }  # fmt: skip
            student = send("POST", "/students", body)["id"]
            self.batch_of[student] = self.arms[number >= 4]
        for arm in self.arms:
            students = [student for student, batch in self.batch_of.items() if batch == arm]
            send("POST", f"/cohorts/{cohort}/enrollment", {"students": students, "batch": arm})
        self.takers: dict[str, list[str]] = {}
        self.subjects: dict[str, str] = {}
        for name in SUBJECTS:
            base = send("POST", "/templates", {"name": name, "code": name[:3].upper()})["id"]
            body = {"cohort_id": cohort, "subject_id": base, "elective": name == ELECTIVE}
            self.subjects[name] = send("POST", "/cohort-subjects", body)["id"]
            self.takers[name] = [*self.batch_of][:: 2 if name == ELECTIVE else 1]
        send("PATCH", f"/cohort-subjects/{self.subjects[ELECTIVE]}/students", self.takers[ELECTIVE])
        self.last_paper: dict[tuple[str, str], str] = {}

    def term(self, term: str, *categories: str) -> None:
        """Set papers, enter scores and absences, comments and traits, and hand in."""
        for name, subject in self.subjects.items():
            for number, category in enumerate(categories, 1):
                self._paper(name, term, number, category)
            self.send("POST", f"/cohort-subjects/{subject}/submission", {"term": term, "blanks": "EXCUSED"})
        for arm in self.arms:
            comments = [
                {
                    "student": student,
                    "times_present": 90 + number,
                    "form_teacher_comment": f"Works with care <{number}>.",
                }
                for number, (student, batch) in enumerate(self.batch_of.items())
                if batch == arm and number % 3
            ]
            self.send("PUT", "/comments", {"batch": arm, "term": term, "comments": comments})
            self._traits(arm, term)

    def _paper(self, name: str, term: str, number: int, category: str) -> None:
        points = self.random.choice((10, 20, 40, 60))
        body = {
            "category": category, "subject": self.subjects[name], "term": self.terms[term], "name": f"{name} {number}",
            "abbreviation": f"P{number}", "due_date": "2025-10-17", "total_points": points, "description": "A paper",
            "file_name": "paper.xlsx", "include_in_final": True, "publish_scores": bool(number % 3),
        }  # fmt: skip
        paper = self.send("POST", "/assessments", body)["id"]
        self.last_paper[name, term] = paper
        absences = []
        for student in self.takers[name]:
            chance = self.random.random()
            if category.endswith("_TERM") and chance < 0.6:
                continue
            if chance > 0.9 and not category.endswith("_TERM"):
                absences.append({"student": student, "status": "ABSENT" if chance > 0.95 else "EXCUSED"})
                continue
            score = round(points * self.random.uniform(0.2, 1), 2)
            self.send(
                "POST",
                "/gradebooks",
                {"assessment": paper, "score": score, "student": student, "batch": self.batch_of[student]},
            )
        if absences:
            self.send("PUT", f"/assessments/{paper}/absences", {"absences": absences})

    def _traits(self, arm: str, term: str) -> None:
        asked = f"batchId={arm}&term={term}&metric_type=AFFECTIVE"
        workbook = load_workbook(BytesIO(self.send("GET", f"/metrics/download-sheet?{asked}")))
        sheet = workbook["Metrics"]
        for row in range(2, sheet.max_row + 1):
            sheet.cell(row, 4).value, sheet.cell(row, 6).value = 1 + row % 5, 5
        saved = BytesIO()
        workbook.save(saved)
        data = {"metric_sheet": (BytesIO(saved.getvalue()), "traits.xlsx")}
        self.send("POST", f"/metrics/upload-sheet?batchId={arm}", data=data)

    def publish(self, term: str, *arms: str) -> list[str]:
        """Publish arms in a term, or both."""
        made = self.send("POST", "/publications", {"term": term, "batches": arms or self.arms})
        return [publication["id"] for publication in made if publication["batch"] == self.arms[0]]


def _go_by(client: Client) -> None:
    """Let two terms go by."""
    letterhead = {
        "address": "3 Ahmadu Bello Way",
        "principal_name": "Dr Ọláyínká Ṣówándé",
        "principal_title": "Principal",
    }
    client.send("PATCH", "/letterhead", letterhead)
    client.send("PUT", "/letterhead/logo", data={"image": (BytesIO(LOGO), "logo.png")})
    comments = [
        {"lower_threshold": 60, "comment": "A good result."},
        {"lower_threshold": 0, "comment": "See me."},
    ]
    client.send("PATCH", "/result-settings", {"principal_comments": comments, "pass_mark": 45})
    of = Class(client)
    calendar = {
        "start_date": "2025-09-15",
        "end_date": "2025-12-19",
        "times_opened": 112,
        "next_term_begins": "2026-01-12",
    }
    client.send("PUT", f"/terms/{of.terms['FIRST']}/calendar", calendar)
    Clock.go_to("2025-12-08")
    of.term("FIRST", "CA1", "CA2", "EXAM")
    # When it is the next day where the school is.
    Clock.go_to("2025-12-12", "23:15")
    (first,) = of.publish("FIRST")
    client.send("POST", f"/publications/{first}/reopening", {"reason": "A comment was wrong"})
    someone = next(iter(of.batch_of))
    comment = {"student": someone, "form_teacher_comment": "Has come on very well."}
    client.send("PUT", "/comments", {"batch": of.arms[0], "term": "FIRST", "comments": [comment]})
    of.publish("FIRST", of.arms[0])
    Clock.go_to("2026-03-23")
    weights = (("CA1", 15), ("CA2", 25), ("EXAM", 60))
    settings = {
        "weighting": "CATEGORIES", "percent_places": 1, "positions": "BATCH", "rank_by": "TOTAL",
        "weights": [{"level": None, "category": name, "weight": weight} for name, weight in weights],
    }  # fmt: skip
    client.send("PATCH", "/result-settings", settings)
    of.term("SECOND", "CA1", "EXAM", "FIRST_TERM", "CA2")
    Clock.go_to("2026-03-31", "23:15")
    of.publish("SECOND")


def main(password: str, path: str) -> None:
    clock.datetime = Clock  # type: ignore[misc]
    settings = Settings.load(os.environ)
    tenancy = tenancy_of(settings)
    install(tenancy)
    school = create_school(tenancy, name="Released School", administrator=Administrator("admin", password))
    app = create_app(settings)
    with tenancy.admin.connect() as connection:
        administrator = connection.exec_driver_sql(f'SELECT id FROM "{school.schema}".users').scalar_one()
    with app.app_context():
        key = app.extensions["school-service"].verifier.key
        token = issue_user_token(key, administrator, school.id, 1)["access_token"]
    _go_by(Client(app, school.id, token))
    back_up(tenancy, school.id, Path(path))


main(*sys.argv[1:])
