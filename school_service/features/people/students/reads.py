"""Read models of students."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from sqlalchemy import ColumnElement, Text, and_, cast, func, select, union
from sqlalchemy.dialects.postgresql import array
from sqlalchemy.orm import aliased

from school_service.core.facts import shown
from school_service.core.reach import Reach
from school_service.core.read_models import Query, json_object, read_model
from school_service.core.records import one_of
from school_service.core.search import matches, may_match
from school_service.core.statements import lock_through
from school_service.features.people.guardians.reads import primary_guardian
from school_service.features.people.models import (
    SEARCHED_OF_STUDENT,
    SEARCHED_OF_USER,
    Contact,
    Student,
    User,
)
from school_service.features.people.users.reads import photo_address
from school_service.features.reach import scopes
from school_service.features.school.models import CURRENT, Enrollment

BY_NAME = (User.name_sort_key, Student.admission_number.collate("C"), Student.id)
"""The order of students in lists: by last name, then first name, the same in each locale of the server."""

NAMED_STUDENT = json_object(
    id=Student.id,
    admission_number=Student.admission_number,
    first_name=User.first_name,
    last_name=User.last_name,
)
"""A student as NamedStudentSchema shows them."""


def _is_by(reach: Reach, relations: str) -> ColumnElement[bool]:
    return scopes.is_student_by(reach, Student.id, relations)


def _latest(*columns: Any) -> Any:
    """Select columns of the latest open enrollment of a student, as an array."""
    return (
        select(array(columns))
        .where(Enrollment.student_id == Student.id, CURRENT)
        .order_by(Enrollment.started_at.desc(), Enrollment.id.desc())
        .limit(1)
        .correlate(Student)
        .scalar_subquery()
    )


@read_model
def students(
    search: str | None = None,
    status: str | None = None,
    batch: UUID | None = None,
    cohort: UUID | None = None,
    student_ids: list[UUID] | None = None,
    reach: Reach | None = None,
) -> Query:
    """Read model of StudentSchema, by name; each word of `search` is part of a name or the admission number.

    `batch` and `cohort` are the present places of the students.
    """
    place = _latest(Enrollment.batch_id, Enrollment.cohort_id)
    query = (
        select(
            Student.id,
            Student.number,
            User.first_name,
            Student.middle_name,
            User.last_name,
            Student.admission_number,
            func.nullif(User.gender, "").label("gender"),
            shown(Student.dob, reach, _is_by),
            Student.admitted_on,
            shown(Student.former_school, reach, _is_by),
            Student.left_on,
            shown(Student.leaving_reason, reach, _is_by),
            Student.status,
            place[1].label("batch"),
            place[2].label("cohort"),
            Student.user_id.label("user"),
            # Students and guardians are not told who else is a guardian.
            shown(primary_guardian(), reach, _is_by, to="F").label("guardian"),
            Student.created_at.label("createdAt"),
            photo_address().label("photo"),
        )
        .join(User, User.id == Student.user_id)
        .order_by(*BY_NAME)
    )
    if search is not None:
        names = User.first_name + " " + User.last_name
        query = query.where(_may_be_found(search), matches(search, SEARCHED_OF_STUDENT + " " + names))
    if status is not None:
        query = query.where(Student.status == status)
    if batch is not None:
        query = query.where(_is_in(Enrollment.batch_id == batch))
    if cohort is not None:
        query = query.where(_is_in(Enrollment.cohort_id == cohort))
    if student_ids is not None:
        query = query.where(Student.id == one_of(student_ids))
    if reach is not None:
        query = query.where(scopes.students_in_reach(reach, Student.id))
        if batch is not None:
            query = query.where(scopes.arms_in_reach(reach, batch))
        if cohort is not None:
            query = query.where(scopes.cohorts_in_reach(reach, cohort))
    return query


@read_model
def students_of_cohort(cohort_id: UUID, reach: Reach | None = None) -> Query:
    """Read model of EnrolledStudentSchema: the students in a cohort now, by name."""
    place = aliased(Enrollment)
    is_there = and_(place.student_id == Student.id, place.cohort_id == cohort_id, place.ended_at.is_(None))
    query = students.query(cohort=cohort_id, reach=reach).join(place, is_there)
    return query.add_columns(place.started_on, place.ended_on)


@read_model
def student(student_id: UUID, reach: Reach | None = None) -> Query:
    """Read model of StudentSchema, for one."""
    return students.query(reach=reach).where(Student.id == student_id)


account_lock = lock_through(Student.user_id, User)
"""Locks the user account of a student, whose row is locked before it."""


def account_as_json(columns: Sequence[str]) -> Any:
    """A column of a query of Student: these columns of the user account, as a JSON object, as text."""
    members = (part for name in columns for part in (name, getattr(User, name)))
    return (
        select(cast(func.json_build_object(*members), Text))
        .where(User.id == Student.user_id)
        .correlate(Student)
        .scalar_subquery()
    )


def ids_of_contacts() -> Any:
    """A column of a query of Student: the ids of the contacts of the user account, as texts."""
    ids = select(cast(Contact.id, Text)).where(Contact.owner_id == Student.user_id).correlate(Student)
    return func.array(ids.scalar_subquery())


def _is_in(condition: ColumnElement[bool]) -> ColumnElement[bool]:
    return Student.id.in_(select(Enrollment.student_id).where(condition, CURRENT))


def _may_be_found(search: Any) -> ColumnElement[bool]:
    """Select by an index the students with the longest word of the search, perhaps, in their row or account."""
    accounts = select(User.id).where(may_match(search, SEARCHED_OF_USER, longest=True))
    own = select(Student.user_id).where(may_match(search, SEARCHED_OF_STUDENT, longest=True))
    return Student.user_id.in_(union(accounts, own))
