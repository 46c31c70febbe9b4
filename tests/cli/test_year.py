"""A school's whole year by the real program: from `tenants create` to the next session, over HTTP alone."""

from __future__ import annotations

import json
import re
import shutil
from dataclasses import dataclass
from io import BytesIO
from typing import Any
from zipfile import ZipFile

import pytest
from openpyxl import Workbook, load_workbook

from school_service.seed.defaults import TRAITS
from tests.cli.conftest import PUBLIC_URL
from tests.cli.program import Running, run
from tests.features.results.report_cards.papers import text_of

pytestmark = pytest.mark.program

POPPLER = shutil.which("pdftotext")
PASSWORD = "correct horse battery staple"
TERMS = ("FIRST", "SECOND", "THIRD")
SUBJECTS = {"English Language": False, "Physics": False, "Music": True}  # elective?
POINTS = {"CA1": 40, "EXAM": 60}
NAMES = (
    ("Adébísí", "Ògúnlẹ́yẹ"),
    ("Chidinma", "Okàfor"),
    ("Zainab", "Ɗanladi"),
    ("Ẹfe", "Aigbe"),
    ("Terver", "Iorkyaa"),
    ("=1+1", "O'Neill-Ṣadé"),
)


@dataclass
class Caller:
    """Somebody who calls the service, in a school."""

    service: Running
    token: str
    school: str

    def call(self, method: str, path: str, body: Any = None) -> Any:
        return self.service.ok(method, path, token=self.token, school=self.school, body=body)

    def post(self, path: str, **body: Any) -> Any:
        return self.call("POST", path, body)

    def ids_by_name(self, path: str) -> dict[str, str]:
        """Ids by name."""
        return {record["name"]: record["id"] for record in self.call("GET", path)}

    def download(self, path: str) -> Workbook:
        answer = self.service.request("GET", path, token=self.token, school=self.school)
        assert answer.status == 200, answer.data
        return load_workbook(BytesIO(answer.data))

    def file(self, path: str, media_type: str) -> bytes:
        answer = self.service.request("GET", path, token=self.token, school=self.school)
        assert (answer.status, answer.headers["Content-Type"]) == (200, media_type), answer.data
        return answer.data

    def upload(self, path: str, field: str, workbook: Workbook) -> dict[str, int]:
        content = BytesIO()
        workbook.save(content)
        answer = self.service.send(
            "POST",
            path,
            headers={"Authorization": f"Bearer {self.token}", "X-SCHOOL-ID": self.school},
            fields={field: ("filled in.xlsx", content.getvalue())},
        )
        assert answer.status == 200, answer.data
        return answer.json()

    def sign_in(self, username: str, password: str) -> Caller:
        body = {"username": username, "password": password}
        token = self.call("POST", "/users/login", body)["access_token"]["access_token"]
        return Caller(self.service, token, self.school)


@pytest.fixture
def administrator(installed: dict[str, str], folder: Any, service: Running) -> Caller:
    """The administrator of a school that the operator has just created."""

    def operate(*arguments: str, **options: Any) -> Any:
        done = run(*arguments, "--json", cwd=folder, settings=installed, **options)
        assert (done.returncode, done.stderr) == (0, ""), done
        return json.loads(done.stdout)

    school = operate("tenants", "create", "Mayflower School, Ikenne", "--password-stdin", stdin=PASSWORD)
    client = operate("clients", "create", "year", "--school", school["id"], "--permission", "read:users")
    token = service.client_token(client["client_id"], client["client_secret"])
    return Caller(service, token, school["id"]).sign_in("admin", PASSWORD)


def test_from_the_first_day_to_the_next_session(administrator):
    teacher = hire_a_teacher(administrator)
    terms, subjects, classroom, session = set_up(administrator)
    students = enrol_by_sheet(administrator)
    cohort = administrator.post("/cohorts", classroom=classroom, session_id=session)
    arms = (cohort["id"], administrator.post(f"/cohorts/{cohort['id']}/batches", name="B")["id"])
    for number, arm in enumerate(arms):
        body = {"students": [student["id"] for student in students[number::2]], "batch": arm}
        administrator.call("POST", f"/cohorts/{cohort['id']}/enrollment", body)
        administrator.call("PATCH", f"/teachers/{arm}/add_to_batch", {"teacher_id": teacher["id"]})
    taught = teach(administrator, cohort["id"], subjects, students)
    assigned = [{"cohort_subject": subject, "employee": teacher["id"]} for subject in taught.values()]
    administrator.call("PUT", "/subject-teachers", {"assignments": assigned})

    them = administrator.sign_in(teacher["username"], PASSWORD)
    for term in TERMS:
        for subject in taught.values():
            give_scores(administrator, them, subject, terms[term])
        for arm, batch_id in zip(arms, (arms[0], 2), strict=True):
            give_traits(them, arm, batch_id, term)
        publish(administrator, them, taught, arms, term)

    assert_the_year_is_on_record(administrator, taught, terms, students, arms)
    assert_results_are_published(administrator, arms, students)
    codes = print_cards(administrator, arms, students)
    promotion, above = promote(administrator, students, cohort["id"], arms, classroom, subjects)
    begin_the_next_session(administrator, promotion, above, students)
    assert_the_past_stays(administrator, arms, students)
    assert_cards_are_verified(administrator, codes, students)


def hire_a_teacher(administrator: Caller) -> dict[str, Any]:
    """Employ a teacher, who can sign in."""
    lagos = administrator.ids_by_name("/states")["Lagos"]
    employee = administrator.post(
        "/employees",
        first_name="Fọlákẹ́",
        middle_name="",
        last_name="Sóyínká",
        title="Dr",
        gender="FEMALE",
        dob="1979-06-30",
        join_date="2009-09-07",
        marital_status="Married",
        blood_group="AB-",
        religion="Christianity",
        status="ACTIVE",
        department=administrator.ids_by_name("/departments")["Sciences"],
        category=administrator.ids_by_name("/employee-categories")["Teaching"],
        position=administrator.ids_by_name("/positions")["Teacher"],
        nationality=administrator.ids_by_name("/nationalities")["Nigeria"],
        state=lagos,
        lga=administrator.call("GET", f"/lgas?state={lagos}")[0]["id"],
        bank_details={
            "bank_name": "First Bank",
            "account_name": "F. Sóyínká",
            "account_number": "0123456789",
            "bank_sort_code": "011151003",
            "account_type": "Current",
            "employee_no": "MS-001",
            "employee": 1,
        },
        next_of_kin={
            "full_name": "Akin Sóyínká",
            "relationship": "Husband",
            "phone_number": "+2348030000001",
            "physical_address": "1 School Road, Ikenne",
            "employee": 1,
        },
        contact={
            "email_address": "folake@example.com",
            "phone_number": "+2348030000002",
            "physical_address": "1 School Road, Ikenne",
        },
    )
    (account,) = administrator.call("GET", f"/users?search={employee['username']}")["data"]
    administrator.call(
        "PUT", f"/users/{account['id']}/roles", {"role": administrator.ids_by_name("/roles")["Teacher"]}
    )
    administrator.call("PUT", f"/users/{account['id']}/password", {"password": PASSWORD})
    shown = administrator.call("GET", f"/employees/{employee['id']}")
    assert shown["role"] == administrator.ids_by_name("/roles")["Teacher"]
    return shown


def set_up(administrator: Caller) -> tuple[dict[str, str], dict[str, str], str, str]:
    """Make a session and its terms, subjects and a classroom; answers their ids."""
    session = administrator.post(
        "/sessions", name="2025/2026", start_date="2025-09-08", end_date="2026-07-24", current=True
    )["id"]
    terms = {
        term: administrator.post("/terms", session_id=session, term=term, display_name=f"{term} term")["id"]
        for term in TERMS
    }
    subjects = {
        name: administrator.post("/templates", name=name, code=name[:3].upper())["id"] for name in SUBJECTS
    }
    classroom = administrator.post("/classrooms", name="SSS 2", level="Senior Secondary")["id"]
    return terms, subjects, classroom, session


def enrol_by_sheet(administrator: Caller) -> list[dict[str, Any]]:
    """Import the students from the template, filled in; answers them by admission number."""
    sheet = administrator.download("/students/import-template")
    header = [cell.value for cell in sheet["Students"][1]]
    for number, (first_name, last_name) in enumerate(NAMES, 1):
        row = {"first_name": first_name, "last_name": last_name, "admission_number": f"MS/{number:03}"}
        for column, name in enumerate(header, 1):
            if name in row:
                sheet["Students"].cell(number + 1, column).value = row[name]
                sheet["Students"].cell(number + 1, column).data_type = "s"
    done = administrator.upload("/students/import-sheet", "sheet", sheet)
    assert done == {"rows": len(NAMES), "created": len(NAMES), "errors": []}
    students = administrator.call("GET", "/students?pageSize=100")["data"]
    return sorted(students, key=lambda student: student["admission_number"])


def teach(
    administrator: Caller, cohort: str, subjects: dict[str, str], students: list[dict[str, Any]]
) -> dict[str, str]:
    """Teach every subject to the cohort; half of the students take the elective one."""
    taught = {
        name: administrator.post(
            "/cohort-subjects", cohort_id=cohort, subject_id=subjects[name], elective=elective
        )["id"]
        for name, elective in SUBJECTS.items()
    }
    takers = [student["id"] for student in students[:3]]
    administrator.call("PATCH", f"/cohort-subjects/{taught['Music']}/students", takers)
    return taught


def give_scores(administrator: Caller, teacher: Caller, subject: str, term: str) -> None:
    """Make the assessments of a subject in a term, and enter their scores by sheet."""
    for category, points in POINTS.items():
        assessment = new_assessment(administrator, subject, term, category, points)
        sheet = teacher.download(f"/assessments/{assessment}/download-sheet")
        rows = list(sheet["Scores"].iter_rows(min_row=2))
        for row in rows:
            row[3].value = score_of(row[0].value, points)
        path = f"/assessments/{assessment}/scoresheet"
        done = teacher.upload(path, "scoresheet", sheet)
        assert done == {"rows": len(rows), "created": len(rows), "updated": 0, "unchanged": 0, "blank": 0}
        assert teacher.upload(path, "scoresheet", sheet)["unchanged"] == len(rows)


def new_assessment(administrator: Caller, subject: str, term: str, category: str, points: int) -> str:
    """Make an assessment; answers its id."""
    return administrator.post(
        "/assessments",
        category=category,
        subject=subject,
        name=f"{category} of the term",
        abbreviation=category,
        due_date="2025-11-28",
        total_points=points,
        term=term,
        description="As planned",
        file_name=f"{category}.xlsx",
        include_in_final=True,
        publish_scores=True,
    )["id"]


def score_of(admission_number: str, points: int) -> float:
    """The score of a student: the better, the later their number; halves are given."""
    return points / 2 + int(admission_number[-3:]) * 0.5


def give_traits(teacher: Caller, arm: str, batch_id: str | int, term: str) -> None:
    """Score the traits of both types by sheet; the upload knows a batch by its number too."""
    for metric_type, names in TRAITS.items():
        path = f"/metrics/download-sheet?batchId={arm}&term={term}&metric_type={metric_type}"
        sheet = teacher.download(path)
        header, *rows = list(sheet["Metrics"].iter_rows())
        assert [cell.value for cell in header[3:]] == list(names)
        for row in rows:
            for position, cell in enumerate(row[3:]):
                cell.value = trait_of(row[0].value, position)
        done = teacher.upload(f"/metrics/upload-sheet?batchId={batch_id}", "metric_sheet", sheet)
        assert done == {"rows": 3, "created": 3, "updated": 0, "unchanged": 0, "blank": 0}


def trait_of(admission_number: str, position: int) -> int:
    return 1 + (int(admission_number[-3:]) + position) % 5


def assert_the_year_is_on_record(administrator, taught, terms, students, arms):
    for name, elective in SUBJECTS.items():
        for term in terms.values():
            shown = administrator.call("GET", f"/scoresheets/{taught[name]}/scoresheet?term={term}")
            assert len(shown) == (3 if elective else len(NAMES))
            for line in shown:
                number = line["student"]["admission_number"]
                scores = {
                    gradebook["assessment_category"]: gradebook["score"] for gradebook in line["gradebooks"]
                }
                assert scores == {name: score_of(number, points) for name, points in POINTS.items()}
    for number, arm in enumerate(arms):
        records = administrator.call("GET", f"/metrics?batchId={arm}")
        mine = {student["admission_number"] for student in students[number::2]}
        assert {
            (record["admission_number"], record["term"], record["metric_type"]) for record in records
        } == {
            (admission_number, term, metric_type)
            for admission_number in mine
            for term in TERMS
            for metric_type in TRAITS
        }
        for record in records:
            assert record["metric_scores"] == {
                name: trait_of(record["admission_number"], position)
                for position, name in enumerate(TRAITS[record["metric_type"]])
            }
    entries = len(TERMS) * len(POINTS) * (2 * len(NAMES) + 3)
    assert administrator.call("GET", "/gradebooks?pageSize=1")["total"] == entries
    assert administrator.call("GET", "/audit?entity=gradebook&pageSize=1")["total"] == entries


def publish(
    administrator: Caller, teacher: Caller, taught: dict[str, str], arms: tuple[str, str], term: str
) -> None:
    """Submit every subject of a term, and publish both arms."""
    for subject in taught.values():
        submitted = teacher.post(f"/cohort-subjects/{subject}/submission", term=term)
        assert (submitted["state"], submitted["blanks"]) == ("SUBMITTED", 0)
    made = administrator.post("/publications", term=term, batches=list(arms))
    assert {
        (publication["state"], publication["version"], publication["students"]) for publication in made
    } == {("PUBLISHED", 1, 3)}


def percent_of(student: dict[str, Any]) -> float:
    """The percent of a student, in every subject and term, and so on average."""
    return sum(score_of(student["admission_number"], points) for points in POINTS.values())


def assert_results_are_published(administrator, arms, students):
    for arm, mine in zip(arms, (students[::2], students[1::2]), strict=True):
        sheet = administrator.call("GET", f"/broadsheets?batch={arm}&session=2025/2026")
        best_first = sorted(mine, key=percent_of, reverse=True)
        assert [row["student"]["id"] for row in sheet["students"]] == [
            student["id"] for student in best_first
        ]
        assert [row["average"] for row in sheet["students"]] == [
            percent_of(student) for student in best_first
        ]
    for student in students:
        (session,) = administrator.call("GET", f"/students/{student['id']}/transcript")["sessions"]
        assert [term["average"] for term in session["terms"]] == [percent_of(student)] * 3
        assert (session["average"], session["outcome"]) == (percent_of(student), None)


def print_cards(administrator: Caller, arms: tuple[str, str], students: list[dict[str, Any]]) -> list[str]:
    """Print one card, the cards of both arms and a transcript; answers where each student's card is verified."""
    student = students[0]
    average = f"{percent_of(student):.2f}"
    path = f"/students/{student['id']}"
    card = administrator.file(f"{path}/report-card?term=THIRD", "application/pdf")
    transcript = administrator.file(f"{path}/transcript/download", "application/pdf")
    (of_transcript,) = addresses_in(transcript)
    verified = administrator.service.ok("GET", of_transcript)
    assert (verified["state"], verified["student"]["admission_number"]) == (
        "CURRENT",
        student["admission_number"],
    )
    if POPPLER:
        for paper in (card, transcript):
            text = text_of(paper)
            assert {student["last_name"], student["admission_number"], average} <= set(text.split())
    as_zip = administrator.file(f"/report-cards?batch={arms[0]}&term=THIRD&format=zip", "application/zip")
    with ZipFile(BytesIO(as_zip)) as archive:
        (of_first,) = [archive.read(name) for name in archive.namelist() if student["last_name"] in name]
        each = [addresses_in(archive.read(name)) for name in archive.namelist()]
    assert of_first == card
    assert [len(addresses) for addresses in each] == [1, 1, 1]
    together = administrator.file(f"/report-cards?batch={arms[1]}&term=THIRD", "application/pdf")
    codes = set.union(*each) | addresses_in(together)
    assert len(codes) == len(students)
    assert_cards_are_verified(administrator, sorted(codes), students)
    return sorted(codes)


def addresses_in(pdf: bytes) -> set[str]:
    """The addresses in a PDF at which its cards are verified."""
    assert pdf.startswith(b"%PDF-")
    addresses = re.findall(rb"\((https:[^)]+)\)", pdf)
    return {address.decode().removeprefix(PUBLIC_URL) for address in addresses}


def assert_cards_are_verified(administrator, codes, students):
    """Assert that a reader with the paper, and neither token nor school, is told its student and its figures."""
    told = [administrator.service.ok("GET", path) for path in codes]
    assert {(card["state"], card["class"][:5], card["session"], card["term"]) for card in told} == {
        ("CURRENT", "SSS 2", "2025/2026", "THIRD")
    }
    assert {(card["student"]["admission_number"], card["average"]) for card in told} == {
        (student["admission_number"], percent_of(student)) for student in students
    }


def promote(
    administrator: Caller,
    students: list[dict[str, Any]],
    cohort: str,
    arms: tuple[str, str],
    classroom: str,
    subjects: dict[str, str],
) -> tuple[str, dict[str, str]]:
    """End the session: the first arm goes up, the second, a course of two years, graduates; one of each repeats.

    The first by the rule, the second as the staff decide. Answers the promotion, and the class above: its id, the
    id of its session and the id of the subject that all of it take.
    """
    administrator.call("PUT", "/promotion-rules", [{"level": "Senior Secondary", "minimum_average": 52}])
    session = administrator.post(
        "/sessions", name="2026/2027", start_date="2026-09-07", end_date="2027-07-23", current=True
    )["id"]
    again = administrator.post("/cohorts", classroom=classroom, session_id=session)["id"]
    last = administrator.post("/classrooms", name="SSS 3", level="Senior Secondary")["id"]
    above = administrator.post("/cohorts", classroom=last, session_id=session)["id"]
    english = administrator.post(
        "/cohort-subjects", cohort_id=above, subject_id=subjects["English Language"], elective=False
    )["id"]
    by_rule, *_, decided = students
    body = {
        "session": "2025/2026",
        "moves": [
            {"batch": arm, "promote_to": target, "repeat_in": again}
            for arm, target in zip(arms, (above, None), strict=True)
        ],
        "overrides": [{"student": decided["id"], "outcome": "REPEATED", "reason": "As her parents ask"}],
    }
    seen = administrator.call("POST", "/promotions?dry_run=true", body)
    assert administrator.call("GET", "/graduates?page=0&size=50") == []
    body["fingerprint"] = seen["fingerprint"]
    promotion = administrator.call("POST", "/promotions", body)
    assert administrator.call("POST", "/promotions", body) == promotion
    assert promotion["decisions"] == seen["decisions"]
    assert promotion["counts"] | {"PROMOTED": 2, "GRADUATED": 2, "REPEATED": 2} == promotion["counts"]
    (reason,) = promotion["decisions"][names_in_order(students).index(by_rule["id"])]["reasons"]
    assert reason == {"code": "AVERAGE", "message": "The average is 51.00, below 52."}

    graduates = administrator.call("GET", "/graduates?page=0&size=50")
    assert {(graduate["id"], graduate["graduation_class"], graduate["school"]) for graduate in graduates} == {
        (number, "SSS 2 2025/2026", "Mayflower School, Ikenne") for number in (1, 2)
    }
    assert {graduate["student"] for graduate in graduates} == {
        student["number"] for student in students[1:-1:2]
    }
    # Promoted students stay on the roll of the session that ended, and results have their roster.
    repeat, rise = {by_rule["id"], decided["id"]}, {student["id"] for student in risen(students)}
    for place, expected in ((cohort, repeat | rise), (again, repeat), (above, rise)):
        there = administrator.call("GET", f"/cohorts/{place}/students")
        assert {student["id"] for student in there} == expected
    return promotion["id"], {"cohort": above, "session": session, "subject": english}


def risen(students: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The promoted students: the first arm without its first student."""
    return students[2::2]


def begin_the_next_session(
    administrator: Caller, promotion: str, above: dict[str, str], students: list[dict[str, Any]]
) -> None:
    """Enter scores by sheet in the class above, for the promoted students; the promotion can't be undone then."""
    term = administrator.post("/terms", session_id=above["session"], term="FIRST", display_name="First Term")[
        "id"
    ]
    assessment = new_assessment(administrator, above["subject"], term, "CA1", 40)
    sheet = administrator.download(f"/assessments/{assessment}/download-sheet")
    rows = list(sheet["Scores"].iter_rows(min_row=2))
    assert {row[0].value for row in rows} == {student["admission_number"] for student in risen(students)}
    rows[0][3].value = 31.5
    done = administrator.upload(f"/assessments/{assessment}/scoresheet", "scoresheet", sheet)
    assert (done["created"], done["blank"]) == (1, 1)
    answer = administrator.service.request(
        "DELETE", f"/promotions/{promotion}", token=administrator.token, school=administrator.school
    )
    assert answer.status == 409
    (resting,) = answer.json()["errors"]["json"]["students"]
    assert resting == {"student": rows[0][0].value, "what": "a score"}


def names_in_order(students: list[dict[str, Any]]) -> list[str]:
    """The ids of students, by arm, then by name: a Ɗ is among those with D."""
    by_name = [
        sorted(arm, key=lambda student: student["last_name"].replace("Ɗ", "D"))
        for arm in (students[::2], students[1::2])
    ]
    return [student["id"] for arm in by_name for student in arm]


def assert_the_past_stays(administrator, arms, students):
    outcomes = dict.fromkeys((student["id"] for student in students), "GRADUATED")
    outcomes |= dict.fromkeys((student["id"] for student in risen(students)), "PROMOTED")
    outcomes |= {students[0]["id"]: "REPEATED", students[-1]["id"]: "REPEATED"}
    for student, outcome in outcomes.items():
        shown = administrator.call("GET", f"/students/{student}")
        goes_on = outcome != "GRADUATED"
        assert shown["status"] == ("ACTIVE" if goes_on else "GRADUATED")
        assert (shown["cohort"] is not None) == goes_on
        (session,) = administrator.call("GET", f"/students/{student}/transcript")["sessions"]
        assert session["outcome"] == outcome
    entries = len(TERMS) * len(POINTS) * (2 * len(NAMES) + 3)
    assert administrator.call("GET", "/gradebooks?pageSize=1")["total"] == entries + 1
    assert all(len(administrator.call("GET", f"/metrics?batchId={arm}")) == 18 for arm in arms)
