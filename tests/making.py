"""Makes records of a school without HTTP, as the operations of the API make them: the first records of tests."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from decimal import Decimal
from typing import Any, NamedTuple
from uuid import UUID

import orjson
from flask import Flask
from marshmallow import Schema
from sqlalchemy import update

from school_service.auth.passwords import hash_password
from school_service.core.database import db
from school_service.core.statements import execute_with_commit, in_one_round_trip, new_row
from school_service.features.classes.cohort_subjects import reads as cohort_subject_reads
from school_service.features.classes.cohort_subjects.schemas import NewCohortSubjectSchema
from school_service.features.classes.cohort_subjects.service import create_cohort_subject
from school_service.features.classes.enrollments.service import enroll
from school_service.features.people.models import CREATED, SCHOOL, Role, RolePermission, User, UserRole
from school_service.features.people.students import reads as student_reads
from school_service.features.people.students.schemas import NewStudentSchema
from school_service.features.people.students.service import create_student
from school_service.features.people.users import reads as user_reads
from school_service.features.people.users.service import new_user
from school_service.features.school.classrooms.service import classroom, create_classroom
from school_service.features.school.classrooms.views import NewClassroomSchema
from school_service.features.school.cohorts import reads as cohort_reads
from school_service.features.school.cohorts.schemas import NewCohortSchema
from school_service.features.school.cohorts.service import create_cohort
from school_service.features.school.sessions.schemas import NewSessionSchema, NewTermSchema
from school_service.features.school.sessions.service import create_session, create_term, session, term
from school_service.features.school.subjects.service import create_subject, subject
from school_service.features.school.subjects.views import NewSubjectSchema
from school_service.features.scores.assessments import reads as assessment_reads
from school_service.features.scores.assessments.schemas import NewAssessmentSchema
from school_service.features.scores.assessments.service import create_assessment
from school_service.features.scores.gradebooks.schemas import NewGradebookEntrySchema
from school_service.features.scores.gradebooks.service import create_entry
from school_service.web.rendering import render_one
from school_service.web.transactions import in_transaction
from tenants.connections.binding import SchoolBinding


class Creation(NamedTuple):
    """An operation that creates a record: its schema, its service, and the read model it answers."""

    schema: Schema
    create: Callable[..., Any]
    read: Callable[[UUID], Any] | None = None


CREATIONS = {
    "/assessments": Creation(NewAssessmentSchema(), create_assessment, assessment_reads.assessment),
    "/classrooms": Creation(NewClassroomSchema(), create_classroom, classroom),
    "/cohort-subjects": Creation(
        NewCohortSubjectSchema(), create_cohort_subject, cohort_subject_reads.cohort_subject
    ),
    "/cohorts": Creation(NewCohortSchema(), create_cohort, cohort_reads.cohort),
    "/gradebooks": Creation(NewGradebookEntrySchema(), create_entry),
    "/sessions": Creation(NewSessionSchema(), create_session, session),
    "/students": Creation(NewStudentSchema(), create_student, student_reads.student),
    "/templates": Creation(NewSubjectSchema(), create_subject, subject),
    "/terms": Creation(NewTermSchema(), create_term, term),
}


@contextmanager
def making(app: Flask, school_id: UUID) -> Iterator[None]:
    """Make records in a school within the block, in one transaction."""
    with app.app_context(), in_transaction(SchoolBinding(school_id)):
        yield


def make_record(path: str, body: dict[str, Any]) -> Any:
    """Make a record in the transaction of `making`, as POST of this path does, with the same answer."""
    schema, create, read = CREATIONS[path]
    result = create(**schema.load(json.loads(json.dumps(body, default=str), parse_float=Decimal)))
    return orjson.loads(result.body if read is None else render_one(read(result.id)))


def enroll_students(cohort_id: str, batch: str, students: list[str]) -> None:
    """Enroll students into a batch of a cohort, in the transaction of `making`."""
    enroll(cohort_id=UUID(cohort_id), batch=UUID(batch), students=[UUID(each) for each in students])


def made_caller(permission_ids: list[str], *, username: str, password: str, **names: str) -> Any:
    """Make a user, as if they had signed in, and a role with these permissions that they alone have.

    In the transaction of `making`; answers the user, as they were before they had the role.
    """
    new = new_user(username=username, password_hash=hash_password(password), **names)
    user = replace(new, values={**new.values, "session_number": CREATED + 1})
    shown = render_one(in_one_round_trip(user, read=user_reads.user(user.id)))
    if permission_ids:
        _give_role(user.id, permission_ids, f"Role of {username}", SCHOOL)
    return orjson.loads(shown)


def sign_in(user_id: UUID, permission_ids: list[str], *, role: str, reach: str, password: str) -> int:
    """Give a user a password and a role with these permissions, of this name; answers the number of their sessions.

    In the transaction of `making`.
    """
    changed = update(User).where(User.id == user_id).returning(User.session_number)
    values = {"password_hash": hash_password(password), "session_number": User.session_number + 1}
    number: int = db.session.execute(changed.values(values)).scalar_one()
    _give_role(user_id, permission_ids, role, reach)
    return number


def _give_role(user_id: UUID, permission_ids: list[str], name: str, reach: str) -> None:
    role = new_row(Role, name=name, avatar_number=1, reach=reach)
    permissions = (
        new_row(RolePermission, role_id=role.id, permission_id=UUID(each)) for each in permission_ids
    )
    execute_with_commit(role, *permissions, new_row(UserRole, user_id=user_id, role_id=role.id))
