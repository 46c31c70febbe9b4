"""A school's whole year by the real program: from `tenants create` to the next session, over HTTP alone."""

from __future__ import annotations

import json
from dataclasses import dataclass
from io import BytesIO
from typing import Any

import pytest
from openpyxl import Workbook, load_workbook

from school_service.seed.defaults import TRAITS
from tests.cli.program import Running, run

pytestmark = pytest.mark.program

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

    def named(self, path: str) -> dict[str, str]:
        """Ids by name."""
        return {record["name"]: record["id"] for record in self.call("GET", path)}

    def download(self, path: str) -> Workbook:
        answer = self.service.request("GET", path, token=self.token, school=self.school)
        assert answer.status == 200, answer.data
        return load_workbook(BytesIO(answer.data))

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

    them = administrator.sign_in(teacher["username"], PASSWORD)
    for term in TERMS:
        for subject in taught.values():
            give_scores(administrator, them, subject, terms[term])
        for arm, batch_id in zip(arms, (arms[0], 2), strict=True):
            give_traits(them, arm, batch_id, term)
        publish(administrator, them, taught, arms, term)

    assert_the_year_is_on_record(administrator, taught, terms, students, arms)
    assert_results_are_published(administrator, arms, students)
    promote(administrator, students, cohort["id"], arms, classroom)
    assert_the_past_stays(administrator, arms, students)


def hire_a_teacher(administrator: Caller) -> dict[str, Any]:
    """Employ a teacher, who can sign in."""
    lagos = administrator.named("/states")["Lagos"]
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
        department=administrator.named("/departments")["Sciences"],
        category=administrator.named("/employee-categories")["Teaching"],
        position=administrator.named("/positions")["Teacher"],
        nationality=administrator.named("/nationalities")["Nigeria"],
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
        "PUT", f"/users/{account['id']}/roles", {"role": administrator.named("/roles")["Teacher"]}
    )
    administrator.call("PUT", f"/users/{account['id']}/password", {"password": PASSWORD})
    shown = administrator.call("GET", f"/employees/{employee['id']}")
    assert shown["role"] == administrator.named("/roles")["Teacher"]
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
    classroom = administrator.post("/classrooms", name="SSS 3", level="Senior Secondary")["id"]
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
        assessment = administrator.post(
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
        sheet = teacher.download(f"/assessments/{assessment}/download-sheet")
        rows = list(sheet["Scores"].iter_rows(min_row=2))
        for row in rows:
            row[3].value = score_of(row[0].value, points)
        path = f"/assessments/{assessment}/scoresheet"
        done = teacher.upload(path, "scoresheet", sheet)
        assert done == {"rows": len(rows), "created": len(rows), "updated": 0, "unchanged": 0, "blank": 0}
        assert teacher.upload(path, "scoresheet", sheet)["unchanged"] == len(rows)


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
                scores = {one["assessment_category"]: one["score"] for one in line["gradebooks"]}
                assert scores == {name: score_of(number, points) for name, points in POINTS.items()}
    for number, arm in enumerate(arms):
        records = administrator.call("GET", f"/metrics?batchId={arm}")
        mine = {student["admission_number"] for student in students[number::2]}
        assert {(one["admission_number"], one["term"], one["metric_type"]) for one in records} == {
            (admission_number, term, metric_type)
            for admission_number in mine
            for term in TERMS
            for metric_type in TRAITS
        }
        for one in records:
            assert one["metric_scores"] == {
                name: trait_of(one["admission_number"], position)
                for position, name in enumerate(TRAITS[one["metric_type"]])
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
    assert {(one["state"], one["version"], one["students"]) for one in made} == {("PUBLISHED", 1, 3)}


def percent_of(student: dict[str, Any]) -> float:
    """The percent of a student, in every subject and term, and so on average."""
    return sum(score_of(student["admission_number"], points) for points in POINTS.values())


def assert_results_are_published(administrator, arms, students):
    for arm, mine in zip(arms, (students[::2], students[1::2]), strict=True):
        sheet = administrator.call("GET", f"/broadsheets?batch={arm}&session=2025/2026")
        best_first = sorted(mine, key=percent_of, reverse=True)
        assert [one["student"]["id"] for one in sheet["students"]] == [one["id"] for one in best_first]
        assert [one["average"] for one in sheet["students"]] == [percent_of(one) for one in best_first]
    for student in students:
        (session,) = administrator.call("GET", f"/students/{student['id']}/transcript")["sessions"]
        assert [one["average"] for one in session["terms"]] == [percent_of(student)] * 3
        assert (session["average"], session["outcome"]) == (percent_of(student), None)


def promote(
    administrator: Caller,
    students: list[dict[str, Any]],
    cohort: str,
    arms: tuple[str, str],
    classroom: str,
) -> None:
    """End the session: all of the last class graduate but two, one by the rule and one as the staff decide."""
    administrator.call("PUT", "/promotion-rules", [{"level": "Senior Secondary", "minimum_average": 52}])
    session = administrator.post(
        "/sessions", name="2026/2027", start_date="2026-09-07", end_date="2027-07-23", current=True
    )["id"]
    again = administrator.post("/cohorts", classroom=classroom, session_id=session)["id"]
    by_rule, *_, decided = students
    body = {
        "session": "2025/2026",
        "moves": [{"batch": arm, "promote_to": None, "repeat_in": again} for arm in arms],
        "overrides": [{"student": decided["id"], "outcome": "REPEATED", "reason": "As her parents ask"}],
    }
    seen = administrator.call("POST", "/promotions?dry_run=true", body)
    assert administrator.call("GET", "/graduates?page=0&size=50") == []
    body["fingerprint"] = seen["fingerprint"]
    promotion = administrator.call("POST", "/promotions", body)
    assert administrator.call("POST", "/promotions", body) == promotion
    assert promotion["decisions"] == seen["decisions"]
    assert promotion["counts"] | {"GRADUATED": 4, "REPEATED": 2} == promotion["counts"]
    (reason,) = promotion["decisions"][names_in_order(students).index(by_rule["id"])]["reasons"]
    assert reason == {"code": "AVERAGE", "message": "The average is 51.00, below 52."}

    remaining = [by_rule["id"], decided["id"]]
    left = [one for one in names_in_order(students) if one not in remaining]
    numbers = {student["id"]: student["number"] for student in students}
    graduates = administrator.call("GET", "/graduates?page=0&size=50")
    assert graduates == [
        {
            "id": number,
            "student": numbers[student],
            "graduation_class": "SSS 3 2025/2026",
            "school": "Mayflower School, Ikenne",
        }
        for number, student in enumerate(left, 1)
    ]
    # Who goes on stays on the roll of the session that ended, and results have their roster.
    for place in (cohort, again):
        there = administrator.call("GET", f"/cohorts/{place}/students")
        assert {student["id"] for student in there} == set(remaining)


def names_in_order(students: list[dict[str, Any]]) -> list[str]:
    """The ids of students, by arm, then by name."""
    by_name = [sorted(arm, key=lambda one: one["last_name"]) for arm in (students[::2], students[1::2])]
    return [student["id"] for arm in by_name for student in arm]


def assert_the_past_stays(administrator, arms, students):
    remaining = (students[0]["id"], students[-1]["id"])
    for student in students:
        shown = administrator.call("GET", f"/students/{student['id']}")
        repeats = student["id"] in remaining
        assert (shown["status"], shown["cohort"] is None) == (
            "ACTIVE" if repeats else "GRADUATED",
            not repeats,
        )
        (session,) = administrator.call("GET", f"/students/{student['id']}/transcript")["sessions"]
        assert session["outcome"] == ("REPEATED" if repeats else "GRADUATED")
    entries = len(TERMS) * len(POINTS) * (2 * len(NAMES) + 3)
    assert administrator.call("GET", "/gradebooks?pageSize=1")["total"] == entries
    assert all(len(administrator.call("GET", f"/metrics?batchId={arm}")) == 18 for arm in arms)
