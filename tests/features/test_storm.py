"""A storm of all writes at once in one small school: nobody waits in a circle."""

from __future__ import annotations

import json
import re
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from random import Random
from typing import Any
from uuid import UUID

import pytest
from sqlalchemy import text

import school_service
from tests.client import ApiClient
from tests.factories import Factory
from tests.features.test_access_matrix import OPERATIONS

_EXAMPLES = Path(school_service.__file__).parent / "web" / "documentation" / "examples.json"
CLIENTS = 8
SECONDS = 60
SESSIONS = ("2025/2026", "2026/2027")
KEPT = 6  # records of each kind that the storm itself has made
COMMON, RARE = 8, 0.2  # how often, where others are sent twice
STRANGE = 0.03  # of ids are of nothing
_NOBODY = str(UUID(int=0))

GUST = 1  # seconds
GUSTS = (
    (
        "DELETE /terms/{termId}", "POST /cohort-subjects/{id}/submission", "POST /cohort-subjects/{id}/reopening",
        "POST /publications", "PUT /comments", "PUT /metrics", "PUT /terms/{id}/calendar",
    ),
    (
        "DELETE /cohorts/{id}", "DELETE /batches/{id}", "PUT /registers", "POST /gradebooks",
        "PUT /assessments/{id}/scores", "PUT /subject-teachers", "PATCH /teachers/{id}/add_to_batch",
    ),
    (
        "DELETE /cohort-subjects/{id}", "POST /cohort-subjects", "POST /cohorts/{id}/enrollment", "POST /graduates",
        "PATCH /cohort-subjects/{id}/students", "POST /assessments/many", "PATCH /assessments/{id}",
    ),
    (
        "DELETE /students/{id}", "POST /guardians", "DELETE /guardians/{id}", "PUT /guardians/{id}/account",
        "DELETE /guardians/{id}/account", "PUT /students/{id}/guardians/{guardian_id}", "PATCH /students/{id}",
    ),
    (
        "PUT /role-reaches", "PATCH /roles/{id}/permissions", "PUT /users/{id}/roles", "DELETE /roles/{id}",
        "DELETE /users/{id}/roles/{roleId}", "DELETE /users/{id}/delete", "PUT /users/{id}/restore",
    ),
    (
        "POST /promotions", "DELETE /promotions/{id}", "POST /publications", "POST /publications/{id}/reopening",
        "POST /cohorts/{id}/enrollment", "POST /sessions/{id}/copy-from", "POST /gradebooks",
    ),
)  # fmt: skip
# They refuse to be deleted, and are locked all the same.
_IN_USE = {"terms", "cohorts", "batches", "cohort-subjects", "students", "sessions", "classrooms", "roles"}

# Their tokens are of no school, or they need an outside provider.
_LEFT_OUT = re.compile(r"/auth/|/users/login|/me/|/users/\{id\}/(identities|sessions)")
_TEACHING = re.compile(
    r".* /(gradebooks|assessments|metrics|comments|registers|publications|promotions|absences|subject-teachers|terms"
    r"|cohort-subjects/\{id\}|cohorts/\{id\}/enrollment|assessments/.*|publications/.*|promotions/.*)$"
)
_ENDING = re.compile(
    r".*/data$|POST /graduates|DELETE /(employees|students|users)|PATCH /cohorts/.*remove_students"
)
_KINDS = {
    "assessment": "assessments",
    "base": "templates",
    "batch": "batches",
    "batches": "batches",
    "classroom": "classrooms",
    "cohort": "cohorts",
    "cohort_id": "cohorts",
    "cohort_subject": "cohort-subjects",
    "employee": "employees",
    "from_session": "sessions",
    "guardian_id": "guardians",
    "owner": "users",
    "permissionIds": "permissions",
    "promote_to": "batches",
    "repeat_in": "batches",
    "required_subjects": "templates",
    "role": "roles",
    "roleId": "roles",
    "session_id": "sessions",
    "student": "students",
    "student_id": "students",
    "student_ids": "students",
    "students": "students",
    "subject": "cohort-subjects",
    "subject_id": "templates",
    "subjects": "cohort-subjects",
    "teacherId": "employees",
    "teacher_id": "employees",
    "term": "terms",
    "to_session": "sessions",
    "user": "users",
    "users": "users",
}
_UNIQUE = {
    "abbreviation",
    "admission_number",
    "code",
    "full_name",
    "letter_grade",
    "name",
    "section",
    "username",
}


class School:
    """Two sessions; a class of two arms with three subjects, one of them elective, and one above it; their people."""

    def __init__(self, make: Factory) -> None:
        self.api = make.api
        first, later = (
            make.session(name=name, start_date=f"{name[:4]}-09-08", end_date=f"{name[5:]}-07-24")
            for name in SESSIONS
        )
        terms = [make.term(first, term=term, display_name=term) for term in ("FIRST", "SECOND")]
        for term, dates in zip(
            terms, (("2025-09-09", "2025-12-12"), ("2026-01-12", "2026-03-27")), strict=True
        ):
            calendar = dict(zip(("start_date", "end_date"), dates, strict=True))
            calendar |= {"times_opened": 120, "next_term_begins": None, "notice": None}
            self.api.ok(self.api.put(f"/terms/{term['id']}/calendar", calendar))
        cohort, above = make.cohort(session=first), make.cohort(session=later)
        second = make.batch(cohort)
        subjects = [make.cohort_subject(cohort, elective=number == 2) for number in range(3)]
        students = [make.student() for _ in range(8)]
        self.in_batch = {
            batch: make.enrolled(cohort, *some, batch=batch)
            for batch, some in ((cohort["id"], students[:4]), (second["id"], students[4:]))
        }
        self.cohort, self.above, self.subject = cohort["id"], above["id"], subjects[0]["id"]
        self.first = {
            "sessions": [first["id"], later["id"]],
            "terms": [term["id"] for term in terms],
            "cohorts": [cohort["id"]],
            "batches": [cohort["id"], second["id"]],
            "cohort-subjects": [subject["id"] for subject in subjects],
            "assessments": [make.assessment(subject, terms[0])["id"] for subject in subjects],
            "students": [student["id"] for student in students],
            "guardians": [make.guardian(*students[:2])["id"], make.guardian(*students[1:3])["id"]],
            "employees": [make.employee()["id"] for _ in range(2)],
            "users": [make.user()["user"]["id"], *(student["user"] for student in students[:2])],
            "roles": [make.role("read:students")["id"] for _ in range(2)],
            "permissions": [permission["id"] for permission in self.api.ok(self.api.get("/permissions"))[:9]],
            "classrooms": [cohort["classroom"], make.classroom()["id"]],
            "templates": [make.subject()["id"] for _ in range(2)],
        }
        for name in ("leadership", "neatness"):
            self.api.post("/metric-definitions", {"name": name, "metric_type": "AFFECTIVE"})
        self.made: dict[str, list[str]] = {}

    def choose(self, kind: str, random: Random, batch: str = "", *, ending: bool = False) -> str:
        """Choose a record of a kind, one of a batch where it matters; to be ended, mostly one that the storm made."""
        if random.random() < STRANGE:
            return _NOBODY
        if ending and kind not in _IN_USE and random.random() < 0.9 and self.made.get(kind):
            return random.choice(self.made[kind])
        if kind == "batches" and batch:
            return batch
        if kind == "students" and batch:
            return random.choice(self.in_batch[batch] or [_NOBODY])
        return random.choice([*self.first.get(kind, ()), *self.made.get(kind, ())] or [_NOBODY])

    def renew(self, api: ApiClient, random: Random) -> None:
        """Read the students of each arm, and make students and assessments anew that the storm has taken away."""
        for batch in self.in_batch:
            records = api.ok(api.get("/students", query_string={"batch": batch}))["data"]
            self.in_batch[batch] = [student["id"] for student in records]
            for _ in range(len(records), 3):
                named = {"first_name": "Ada", "last_name": "Eze", "admission_number": f"S/{random.random()}"}
                student = api.ok(api.post("/students", named))["id"]
                enrolled = {"students": [student], "batch": batch}
                if api.post(f"/cohorts/{self.cohort}/enrollment", enrolled).status_code == 200:
                    self.in_batch[batch].append(student)
        self.first["students"] = [student for batch in self.in_batch.values() for student in batch]
        of_subject = {"cohort": self.cohort, "subject": self.subject, "term": self.first["terms"][0]}
        records = api.get("/assessments", query_string=of_subject).get_json().get("data", [])
        self.first["assessments"] = [assessment["id"] for assessment in records[:4]]

    def keep(self, kind: str, answer: Any) -> None:
        """Remember the records of an answer."""
        rows = answer if isinstance(answer, list) else [answer]
        ids = [row["id"] for row in rows if isinstance(row, dict) and isinstance(row.get("id"), str)]
        self.made[kind] = [*self.made.get(kind, ()), *ids][-KEPT:]


class Storm:
    """Sends the requests of the document's examples, each with records of the school in place of the example's."""

    def __init__(self, school: School, make: Factory) -> None:
        self.school, self.seen = school, Counter[tuple[str, int]]()
        examples = json.loads(_EXAMPLES.read_text())
        names = [
            f"{operation.method} {operation.path}" for operation in OPERATIONS if operation.method != "GET"
        ]
        self.requests = {
            name: examples[name].get("request")
            for name in names
            if not _LEFT_OUT.search(name)
            and (name.startswith("DELETE") or name.endswith("/restore") or "request" in examples[name])
        }
        self.rehearsed = {name for name in names if "fingerprint" in str(examples[name].get("response"))}
        promoted = {"session": SESSIONS[0], "moves": [{"batch": "", "promote_to": "", "repeat_in": None}]}
        self.requests |= {
            "POST /employees": make.employee_body(),
            "POST /promotions": promoted,
            "POST /cohorts/{id}/enrollment": {"students": [_NOBODY], "batch": _NOBODY},
        }
        self.weights = [
            RARE if _ENDING.match(name) else COMMON if _TEACHING.match(name) else 2 for name in self.requests
        ]

    def blow(self, number: int) -> None:
        """Send requests, for as long as the storm lasts: mostly of the gust, which is the same for all."""
        random, api, began = Random(number), self.school.api.using(), time.monotonic()
        seen, gust = -1, self._gust(0)
        while (since := time.monotonic() - began) < SECONDS:
            if seen < int(since / GUST):
                seen = int(since / GUST)
                gust = self._gust(seen)
                if number == 0:
                    self.school.renew(api, random)
            (name,) = [random.choice(gust)] if random.random() < 0.8 else self._any(random)
            answer = self._send(api, name, random)
            self.seen[name, answer.status_code] += 1
            assert answer.status_code < 500, (name, answer.get_data(as_text=True))

    def _any(self, random: Random, count: int = 1) -> list[str]:
        return random.choices([*self.requests], self.weights, k=count)

    def _gust(self, number: int) -> Sequence[str]:
        """Give the few operations that are sent in a part of the storm: those that share tables, then any."""
        return GUSTS[number // 2 % len(GUSTS)] if number % 2 else self._any(Random(number), 6)

    def _send(self, api: ApiClient, name: str, random: Random) -> Any:
        method, path = name.split(" ")
        kind, batch = path.split("/")[1], random.choice([*self.school.in_batch])

        def chosen(parameter: str) -> str:
            of_parameter = _KINDS.get(parameter, "batches" if kind == "teachers" else kind)
            return self.school.choose(of_parameter, random, batch, ending=method == "DELETE")

        address = re.sub(r"\{(\w+)\}", lambda part: chosen(part[1]), path)
        body = self._body(name, batch, random)
        query = {"batch": batch, "term": "FIRST"} if kind == "metrics" and method == "PUT" else {}
        options: dict[str, Any] = {} if body is None else {"json": body}
        if method in ("PATCH", "DELETE") and random.random() < 0.3:
            options["headers"] = {"If-Match": "*"}
        if name in self.rehearsed:
            rehearsal = api.request(method, f"{address}?dry_run=true", **options).get_json()
            options = {"json": {**body, "fingerprint": rehearsal.get("fingerprint", "")}}
            query = {"dry_run": "false"} if kind == "promotions" else {}
        answer = api.request(method, address, query_string=query, **options)
        if answer.status_code == 200 and method != "DELETE" and not path.endswith("/enrollment"):
            self.school.keep("batches" if path.endswith("/batches") else kind, answer.get_json())
        return answer

    def _body(self, name: str, batch: str, random: Random) -> Any:
        body = self._replaced(self.requests[name], "", batch, random)
        if name.endswith("/submission"):
            body |= {"blanks": random.choice(["REFUSE", "ABSENT", "EXCUSED"])}
            body |= random.choice([{}, {"batch": batch}])
        elif name == "POST /publications":
            body["batches"] = random.choice([[batch], self.school.first["batches"]])
        elif name == "POST /promotions":
            body["moves"] = [
                {"batch": batch, "promote_to": self.school.above, "repeat_in": self.school.above}
            ]
            decided = {"outcome": "PROMOTED", "reason": "By the staff"}
            body["overrides"] = [{"student": student, **decided} for student in self.school.in_batch[batch]]
        elif name == "POST /cohorts/{id}/enrollment":
            body["batch"] = random.choice([*self.school.in_batch])
        return body

    def _replaced(self, value: Any, name: str, batch: str, random: Random) -> Any:
        """Put records of the school in the places of the example's, and names that nothing has yet."""
        if isinstance(value, dict):
            return {member: self._replaced(each, member, batch, random) for member, each in value.items()}
        if isinstance(value, list):
            replaced = [self._replaced(each, name, batch, random) for each in value]
            return [element for place, element in enumerate(replaced) if element not in replaced[:place]]
        if isinstance(value, str) and name in _KINDS and re.fullmatch(r"[0-9a-f-]{36}", value):
            return self.school.choose(_KINDS[name], random, batch)
        if isinstance(value, str) and name in _UNIQUE and random.random() < 0.8:
            return f"{value} {random.randrange(10**6)}"
        return value


@pytest.mark.release
def test_a_storm_of_all_writes_at_once_ends_without_a_deadlock(committing, tenancy):
    school = School(committing)
    storm = Storm(school, committing)
    counting = text("SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()")
    with tenancy.admin.connect() as connection:
        before = connection.scalar(counting)

    with ThreadPoolExecutor(CLIENTS) as threads:
        list(threads.map(storm.blow, range(CLIENTS)))

    time.sleep(2)  # PostgreSQL tells its counts with a delay.
    with tenancy.admin.connect() as connection:
        assert connection.scalar(counting) == before
    done = {name for (name, status), _ in storm.seen.items() if status == 200}
    assert len(done) > 50, storm.seen
