"""Schools for the benchmarks: on a PostgreSQL of their own from the wheel, called in this process."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import date
from decimal import Decimal
from typing import Any
from uuid import UUID

from flask import Flask
from flask.testing import FlaskClient
from sqlalchemy import Connection
from urllib3 import encode_multipart_formdata

from benchmarks.installation import installation
from school_service.app import create_app
from school_service.auth.tokens import issue_user_token
from school_service.core.database import db
from school_service.core.statements import execute
from school_service.features.classes.cohort_subjects.service import create_cohort_subject
from school_service.features.classes.enrollments.service import enroll
from school_service.features.people.students.service import create_student
from school_service.features.school.classrooms.service import create_classroom
from school_service.features.school.cohorts.service import create_batch, create_cohort
from school_service.features.school.sessions.service import create_session, create_term
from school_service.features.school.subjects.service import create_subject
from school_service.features.scores.assessments.service import create_assessment
from school_service.features.scores.gradebooks.service import Score, compare_scores, storing
from school_service.features.scores.models import Assessment
from school_service.web.transactions import in_transaction
from tenants.connections.binding import SchoolBinding
from tenants.provisioning.create import create_school
from tenants.tenancy import Administrator, Tenancy

CATEGORIES = ("CA1", "CA2", "CA3", "EXAM")
TERMS = ("FIRST", "SECOND", "THIRD")


@dataclass(frozen=True)
class Taught:
    """A cohort subject in a term, and its assessments there."""

    subject: UUID
    term: UUID
    assessments: list[UUID]


class School:
    """A school, its administrator at the API, and a class whose years can be filled."""

    def __init__(self, app: Flask, tenancy: Tenancy, students: int) -> None:
        self._app, self._tenancy = app, tenancy
        made = create_school(
            tenancy, name="Benchmark School", administrator=Administrator("admin", "a password")
        )
        self._id, self._schema = made.id, made.schema
        with tenancy.admin.connect() as connection:
            admin = connection.exec_driver_sql(f"SELECT id FROM {made.schema}.users").scalar_one()
        self._headers = self._signed_in(admin)
        self._client: FlaskClient = app.test_client()
        with in_transaction(SchoolBinding(self._id)):
            self._room = create_classroom(name="JSS 1", level="Junior Secondary").id
            self._students = [
                create_student(first_name="Adaeze", last_name=f"Okonkwo {n}", admission_number=f"A/{n:04}").id
                for n in range(students)
            ]

    @property
    def id(self) -> UUID:
        """The school's id."""
        return self._id

    def teach(self, *, year: int, terms: int, subjects: int, assessments: int, arms: int = 1) -> list[Taught]:
        """Give the class a session with so many terms, subjects, and assessments of each in a term.

        The students are in so many arms, as many in each; the first has the cohort's id.
        """
        with in_transaction(SchoolBinding(self._id)):
            start, end = date(year, 9, 8), date(year + 1, 7, 24)
            session = create_session(name=f"{year}", start_date=start, end_date=end)
            cohort = create_cohort(classroom=self._room, session_id=str(session.id))
            for arm in range(arms):
                batch = create_batch(cohort_id=cohort.id, name=f"Arm {arm}").id if arm else cohort.id
                enroll(cohort_id=cohort.id, batch=batch, students=self._students[arm::arms])
            scheduled = []
            cohort_subjects = [
                create_cohort_subject(
                    cohort_id=cohort.id,
                    subject_id=create_subject(name=f"Subject {n}", code=f"{year}/{n}").id,
                    elective=False,
                ).id
                for n in range(subjects)
            ]
            for name in TERMS[:terms]:
                term = create_term(session_id=session.id, term=name, display_name=f"{name} term").id
                for subject in cohort_subjects:
                    made = [
                        self._assessment(subject, term, category) for category in CATEGORIES[:assessments]
                    ]
                    scheduled.append(Taught(subject, term, [assessment.id for assessment in made]))
        return scheduled

    def classes(self, classrooms: int, arms: int) -> UUID:
        """Divide the students into so many classrooms of so many arms, in a session; answers its first term."""
        with in_transaction(SchoolBinding(self._id)):
            start, end = date(2025, 9, 8), date(2026, 7, 24)
            session = create_session(name="2025", start_date=start, end_date=end, current=True)
            number = 0
            for room in range(classrooms):
                made = create_classroom(name=f"Class {room}", level="Junior Secondary").id
                cohort = create_cohort(classroom=made, session_id=str(session.id))
                for arm in range(arms):
                    batch = create_batch(cohort_id=cohort.id, name=f"Arm {arm}").id if arm else cohort.id
                    members = self._students[number :: classrooms * arms]
                    enroll(cohort_id=cohort.id, batch=batch, students=members)
                    number += 1
            return create_term(session_id=session.id, term="FIRST", display_name="First term").id

    def score(self, taught: list[Taught]) -> None:
        """Give every student a score in every assessment."""
        for course in taught:
            with in_transaction(SchoolBinding(self._id)):
                for number in course.assessments:
                    assessment = db.session.get_one(Assessment, number)
                    scores = [
                        Score(str(who), str(assessment.cohort_id), Decimal("12.5")) for who in self._students
                    ]
                    compared = compare_scores(scores)
                    execute(*storing(assessment_id=assessment.id, scores=compared, sheet="scores.xlsx"))

    def analyze(self) -> None:
        """Vacuum and analyze the tables, as autovacuum does before long."""
        with self._tenancy.admin.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            tables = connection.exec_driver_sql(
                f"SELECT tablename FROM pg_tables WHERE schemaname = '{self._schema}'"
            ).scalars()
            for table in tables.all():
                connection.exec_driver_sql(f"VACUUM ANALYZE {self._schema}.{table}")

    def execute(self, statement: str) -> None:
        """Run a statement in the school's schema, as the operator."""
        with self.connect() as connection:
            connection.exec_driver_sql(statement)

    @contextmanager
    def connect(self) -> Iterator[Connection]:
        """Connect to the school's schema, as the operator, and commit at the end."""
        with self._tenancy.admin.begin() as connection:
            connection.exec_driver_sql(f"SET LOCAL search_path TO {self._schema}")
            yield connection

    def get(self, path: str) -> bytes:
        """GET, and fail on anything but 200."""
        return self._answer(self._client.get(path, headers=self._headers))

    def reader(self, user: UUID) -> Callable[[str], bytes]:
        """Let another user of the school sign in; answers `get` of theirs."""
        headers = self._signed_in(user)
        return lambda path: self._answer(self._client.get(path, headers=headers))

    def post(self, path: str, body: dict[str, Any]) -> Any:
        """POST JSON, and fail on anything but 200."""
        answer = self._client.post(path, json=body, headers=self._headers)
        return self._app.json.loads(self._answer(answer))

    def put(self, path: str, body: dict[str, Any]) -> Any:
        """PUT JSON, and fail on anything but 200."""
        # A client of its own, as threads send at once.
        answer = self._app.test_client().put(path, json=body, headers=self._headers)
        return self._app.json.loads(self._answer(answer))

    def patch(self, path: str, body: dict[str, Any]) -> Any:
        """PATCH JSON, and fail on anything but 200."""
        answer = self._client.patch(path, json=body, headers=self._headers)
        return self._app.json.loads(self._answer(answer))

    def upload(self, path: str, name: str, content: bytes, *, method: str = "POST") -> Any:
        """Send a file as a form's field of that name, and fail on anything but 200."""
        body, media_type = encode_multipart_formdata({name: ("scores.xlsx", content)})
        answer = self._client.open(
            path, method=method, headers=self._headers, data=body, content_type=media_type
        )
        return self._app.json.loads(self._answer(answer))

    def _signed_in(self, user: UUID) -> dict[str, str]:
        key = self._app.extensions["school-service"].verifier.key
        token = issue_user_token(key, user, self._id, 1)["access_token"]
        return {"Authorization": f"Bearer {token}", "X-SCHOOL-ID": str(self._id)}

    @staticmethod
    def _answer(response: Any) -> bytes:
        if response.status_code != 200:
            raise SystemExit(response.get_data(as_text=True))
        content: bytes = response.data
        return content

    @staticmethod
    def _assessment(subject: UUID, term: UUID, category: str) -> Assessment:
        return create_assessment(
            subject=subject,
            term=term,
            category=category,
            name=category,
            abbreviation=category,
            due_date=date(2025, 10, 17),
            total_points=Decimal(20),
            description="",
            file_name=f"{category}.xlsx",
            include_in_final=True,
            publish_scores=False,
        )


class Schools:
    """An installation, and the schools that are made on it."""

    def __init__(self, app: Flask, tenancy: Tenancy) -> None:
        self._app, self._tenancy = app, tenancy

    def create(self, *, students: int) -> School:
        """Make a school with so many students."""
        return School(self._app, self._tenancy, students)


@contextmanager
def schools(**settings: Any) -> Iterator[Schools]:
    """Start PostgreSQL and make the application, with these settings; nothing of it is left at the end."""
    with installation() as here:
        app = create_app(replace(here.settings, **settings))
        with app.app_context():
            yield Schools(app, here.tenancy)
            for engine in db.engines.values():
                engine.dispose()
