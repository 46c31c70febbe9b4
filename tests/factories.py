"""Makes records with names of their own: through the API, and the most frequent ones by its services."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from itertools import count
from typing import Any
from uuid import UUID

from school_service.auth.tokens import issue_user_token
from school_service.core.permissions import Permission
from school_service.features.people.models import CREATED
from school_service.seed.defaults import DEPARTMENTS, EMPLOYEE_CATEGORIES, POSITIONS
from tests.client import ApiClient
from tests.making import enroll_students, made_caller, make_record, making, sign_in

_numbers = count(1)

# The factory whose transaction is under way, in this thread.
_making: ContextVar[Any] = ContextVar("making", default=None)

# Ids of a school's first records, by school and path, or by school and permission: looked up once, as every
# test of a school begins with them.
_seeded: dict[tuple[Any, str], str] = {}

# Somewhere in Nigeria, with the ids that it has in every installation: Surulere in Lagos.
ORIGIN = {
    "lga": "180bf54a-a072-5fcf-ae4c-f7a33b902cbc",
    "state": "b24e9dee-e6fa-50b2-9d04-008e55cdef37",
    "nationality": "e1605096-bece-51b5-9d8a-bb4f4eacde6a",
}


@dataclass(frozen=True)
class Taught:
    """A subject taught to a cohort, a term of its session, and the ids of its students."""

    cohort: dict[str, Any]
    subject: dict[str, Any]
    term: dict[str, Any]
    students: list[str]


PASSWORD = "a password"
"""Of the users that are made."""

UNKNOWN_ID = "00000000-0000-4000-8000-000000000000"
"""The id of no record, the same in every process: for the names of parametrized tests."""


class Factory:
    """Makes records of one school, as its administrator; every argument overrides a default."""

    def __init__(self, api: ApiClient) -> None:
        self.api = api

    def _post(self, path: str, body: dict[str, Any]) -> Any:
        return self.api.ok(self.api.post(path, body))

    def _make(self, path: str, body: dict[str, Any]) -> Any:
        """Make a record as POST of this path does, without HTTP; within `_together` in the transaction under way."""
        with self._together():
            return make_record(path, body)

    @contextmanager
    def _together(self) -> Iterator[None]:
        """Make all records of the block in one transaction."""
        if _making.get() is self:
            yield
            return
        token = _making.set(self)
        try:
            with making(self.api.app, self.api.school):
                yield
        finally:
            _making.reset(token)

    def user(self, **fields: Any) -> dict[str, Any]:
        """Make a user; answers the AuthUser."""
        number = next(_numbers)
        body = {
            "username": f"user{number}",
            "password": PASSWORD,
            "first_name": "Adaeze",
            "last_name": "Okàfor",
        }
        return self._post("/users", {**body, "gender": "FEMALE", **fields})

    def role(self, *permissions: str, **fields: Any) -> dict[str, Any]:
        """Make a role with these permissions, each written `access:section`."""
        role = self._post("/roles", {"name": f"Role {next(_numbers)}", "avatar": 1, **fields})
        if not permissions:
            return role
        ids = [self._permission(permission) for permission in permissions]
        return self.api.ok(self.api.patch(f"/roles/{role['id']}/permissions", {"permissionIds": ids}))

    def _permission(self, name: str) -> str:
        if (self.api.school, name) in _seeded:
            return _seeded[self.api.school, name]
        known = {f"{p['access']}:{p['section']}": p["id"] for p in self.api.ok(self.api.get("/permissions"))}
        # Permissions added by a test are gone after it.
        _seeded.update({(self.api.school, each): known[each] for each in Permission if each in known})
        return known[name]

    def _seeded_record(self, path: str, name: str) -> str:
        if (self.api.school, path) not in _seeded:
            (seeded,) = (record for record in self.api.ok(self.api.get(path)) if record["name"] == name)
            _seeded[self.api.school, path] = seeded["id"]
        return _seeded[self.api.school, path]

    def caller(self, *permissions: str) -> ApiClient:
        """Make a user with exactly these permissions, as if signed in; answers a client with a token of theirs."""
        ids = [self._permission(permission) for permission in permissions]
        body = {
            "username": f"user{next(_numbers)}",
            "password": PASSWORD,
            "first_name": "Adaeze",
            "last_name": "Okàfor",
            "gender": "FEMALE",
        }
        with self._together():
            user = made_caller(ids, **body)
        return self._client_of(user, CREATED + 1)

    def caller_of(
        self, user: dict[str, Any], *permissions: str, reach: str, password: str = PASSWORD
    ) -> ApiClient:
        """Give a user a role with these permissions, and a password; answers a client with a token of theirs."""
        ids = [self._permission(permission) for permission in permissions]
        role = f"Role {next(_numbers)}"
        with self._together():
            number = sign_in(UUID(user["id"]), ids, role=role, reach=reach, password=password)
        return self._client_of(user, number)

    def _client_of(self, user: dict[str, Any], session_number: int) -> ApiClient:
        key = self.api.app.extensions["school-service"].verifier.key
        with self.api.app.app_context():
            token = issue_user_token(key, UUID(user["id"]), self.api.school, session_number)
        client = self.api.using(token=token["access_token"])
        client.user = user
        return client

    def signed_in(self, user: dict[str, Any], password: str = PASSWORD) -> ApiClient:
        """Sign a user in; answers a client with their token."""
        credentials = {"username": user["username"], "password": password}
        signed_in = self.api.ok(self.api.post("/users/login", credentials))
        client = self.api.using(token=signed_in["access_token"]["access_token"])
        client.user = user
        return client

    def check_permission(
        self, method: str, path: str, permission: str, *, others: set[str], json: Any
    ) -> None:
        """See that an operation refuses who has all others of these permissions, and lets in who has it alone.

        `json` is a body that is no valid one, so that nothing is made.
        """
        body = {} if method == "GET" else {"json": json}

        refused = self.caller(*others - {permission}).request(method, path, **body)
        let_in = self.caller(permission).request(method, path, **body)

        assert (refused.status_code, permission in refused.get_json()["message"]) == (403, True)
        assert let_in.status_code in {200, 404, 415, 422}

    def classroom(self, **fields: Any) -> dict[str, Any]:
        """Make a classroom."""
        return self._make(
            "/classrooms", {"name": f"JSS {next(_numbers)}", "level": "Junior Secondary", **fields}
        )

    def subject(self, **fields: Any) -> dict[str, Any]:
        """Make a subject."""
        number = next(_numbers)
        return self._make("/templates", {"name": f"Subject {number}", "code": f"SUB{number}", **fields})

    def session(self, **fields: Any) -> dict[str, Any]:
        """Make an academic session, of a year to come of its own: teachers reach nothing of a long ended one."""
        year = 2100 + next(_numbers) % 6900
        body = {"name": f"{year}/{year + 1}", "start_date": f"{year}-09-08", "end_date": f"{year + 1}-07-24"}
        return self._make("/sessions", {**body, **fields})

    def term(self, session: dict[str, Any] | None = None, **fields: Any) -> dict[str, Any]:
        """Make a term: the first, of a new session unless one is given."""
        with self._together():
            session_id = (session or self.session())["id"]
            body = {"session_id": session_id, "term": "FIRST", "display_name": "First term"}
            return self._make("/terms", {**body, **fields})

    def department(self, **fields: Any) -> dict[str, Any]:
        """Make a department."""
        return self._post("/departments", {"name": f"Department {next(_numbers)}", **fields})

    def employee_category(self, **fields: Any) -> dict[str, Any]:
        """Make an employee category."""
        return self._post("/employee-categories", {"name": f"Category {next(_numbers)}", **fields})

    def position(self, **fields: Any) -> dict[str, Any]:
        """Make a position."""
        return self._post("/positions", {"name": f"Position {next(_numbers)}", **fields})

    def employee_body(self, **fields: Any) -> dict[str, Any]:
        """Write an employee to create, whose department, category and position a new school has."""
        seeded = {
            "department": ("/departments", DEPARTMENTS[0]),
            "category": ("/employee-categories", EMPLOYEE_CATEGORIES[0]),
            "position": ("/positions", POSITIONS[0]),
        }
        number = next(_numbers)
        return {
            "first_name": "Adaeze",
            "middle_name": "Ifẹ́oma",
            "last_name": f"Òkáfọr{number}",
            "title": "Mrs",
            "gender": "FEMALE",
            "marital_status": "MARRIED",
            "blood_group": "O+",
            "religion": "Christianity",
            "status": "ACTIVE",
            "dob": "1985-04-12",
            "join_date": "2020-01-06",
            **ORIGIN,
            **{
                field: self._seeded_record(*record) for field, record in seeded.items() if field not in fields
            },
            "bank_details": {
                "bank_name": "First Bank",
                "account_name": "Adaeze Òkáfọr",
                "account_number": f"30{number:08}",
                "bank_sort_code": "011151003",
                "employee_no": f"E/{number}",
                "account_type": "SAVINGS",
                "employee": number,
            },
            "next_of_kin": {
                "full_name": "Chukwuemeka Òkáfọr",
                "relationship": "husband",
                "phone_number": "+234 803 123 4567",
                "physical_address": "12 Adeniran Ogunsanya Street, Surulere",
                "employee": number,
            },
            "contact": {
                "email_address": f"staff{number}@example.com",
                "phone_number": "+234 803 765 4321",
                "physical_address": "12 Adeniran Ogunsanya Street, Surulere",
            },
            **fields,
        }

    def employee(self, **fields: Any) -> dict[str, Any]:
        """Make an employee."""
        return self._post("/employees", self.employee_body(**fields))

    def account_of(self, employee: dict[str, Any]) -> dict[str, Any]:
        """Find the user account of an employee, unless it is deleted."""
        users = self.api.ok(self.api.get("/users", query_string={"search": employee["username"]}))["data"]
        return next(user for user in users if user["username"] == employee["username"])

    def without_grade_bands(self) -> Factory:
        """Delete the grade bands that a new school has."""
        for band in self.api.ok(self.api.get("/grade-configs")):
            self.api.ok(self.api.delete(f"/grade-configs/{band['id']}"))
        return self

    def grade_band(self, lower: float | str, upper: float | str, **fields: Any) -> dict[str, Any]:
        """Make a grade band, between thresholds that no other has."""
        body = {"lower_threshold": lower, "upper_threshold": upper}
        return self._post("/grade-configs", {**body, "letter_grade": "A1", "remarks": "Excellent", **fields})

    def guardian(self, *children: dict[str, Any], **fields: Any) -> dict[str, Any]:
        """Make a guardian of these students."""
        students = [{"student": child["id"], "relationship": "mother"} for child in children]
        return self._post(
            "/guardians", {"full_name": f"Ngọzi {next(_numbers)} Bàlógun", "students": students, **fields}
        )

    def student(self, **fields: Any) -> dict[str, Any]:
        """Make a student, with the required fields alone."""
        body = {
            "first_name": "Chidinma",
            "last_name": "Bàlógun",
            "admission_number": f"QC/{next(_numbers):05}",
        }
        return self._make("/students", {**body, **fields})

    def graduate(self, student: dict[str, Any] | None = None) -> dict[str, Any]:
        """Let a student graduate, a new one unless it is given."""
        return self._post("/graduates", {"student": (student or self.student())["id"]})

    def contact(self, owner: dict[str, Any] | None = None, **fields: Any) -> dict[str, Any]:
        """Make a contact, of a new user unless one is given."""
        number = next(_numbers)
        body = {
            "owner": (owner or self.user()["user"])["id"],
            "email_address": f"adaeze{number}@example.com",
            "phone_number": f"+234 803 {number:07}",
            "physical_address": "12 Herbert Macaulay Way, Yaba, Lagos",
        }
        return self._post("/contacts", {**body, **fields})

    def cohort(self, classroom: dict | None = None, session: dict | None = None) -> dict[str, Any]:
        """Make a cohort, of a new classroom in a new session unless they are given."""
        with self._together():
            classroom, session = classroom or self.classroom(), session or self.session()
            return self._make("/cohorts", {"classroom": classroom["id"], "session_id": session["id"]})

    def batch(self, cohort: dict[str, Any], **fields: Any) -> dict[str, Any]:
        """Make another batch of a cohort."""
        return self._post(f"/cohorts/{cohort['id']}/batches", {"name": f"Arm {next(_numbers)}", **fields})

    def cohort_subject(
        self, cohort: dict | None = None, subject: dict | None = None, *, elective: bool = False
    ) -> dict[str, Any]:
        """Make a cohort subject, of a new cohort and a new subject unless they are given."""
        with self._together():
            cohort, subject = cohort or self.cohort(), subject or self.subject()
            body = {"cohort_id": cohort["id"], "subject_id": subject["id"], "elective": elective}
            return self._make("/cohort-subjects", body)

    def enrolled(
        self, cohort: dict[str, Any], *students: dict[str, Any], batch: str | None = None
    ) -> list[str]:
        """Enroll students, one new one unless they are given, into a batch: the first; answers their ids."""
        with self._together():
            ids = [student["id"] for student in students or [self.student()]]
            enroll_students(cohort["id"], batch or cohort["id"], ids)
        return ids

    def taught(self, students: int = 1) -> Taught:
        """Make a cohort with a subject, a term of its session, and students who take the subject."""
        with self._together():
            cohort = self.cohort()
            subject, term = self.cohort_subject(cohort), self.term({"id": cohort["session"]})
            ids = self.enrolled(cohort, *(self.student() for _ in range(students))) if students else []
        return Taught(cohort, subject, term, ids)

    def assessment(self, subject: dict[str, Any], term: dict[str, Any], **fields: Any) -> dict[str, Any]:
        """Make an assessment of 20 points of a cohort subject, in a term."""
        number = next(_numbers)
        body = {
            "category": "CA1",
            "subject": subject["id"],
            "name": f"Test {number}",
            "abbreviation": f"T{number}",
            "due_date": "2025-10-17",
            "total_points": 20,
            "term": term["id"],
            "description": "Fractions",
            "file_name": f"test-{number}.xlsx",
            "include_in_final": True,
            "publish_scores": False,
        }
        return self._make("/assessments", {**body, **fields})

    def absences(self, assessment: dict[str, Any], statuses: dict[str, str], **fields: Any) -> Any:
        """Enter the absences of students, by id; answers the response."""
        body = [{"student": student, "status": status, **fields} for student, status in statuses.items()]
        return self.api.put(f"/assessments/{assessment['id']}/absences", {"absences": body})

    def entry(
        self, assessment: dict[str, Any], student: str, batch: str, score: float | str = 12.5
    ) -> dict[str, Any]:
        """Make a gradebook entry, of a student and a batch given by their ids."""
        body = {"assessment": assessment["id"], "score": score, "student": student, "batch": batch}
        return self._make("/gradebooks", body)
