"""The facts for enrolling students, and its locks."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from sqlalchemy import Text, and_, cast, func, select

from school_service.core.read_models import Query, read_model
from school_service.core.records import lock_in_order, one_of
from school_service.features.people.models import Student
from school_service.features.people.students.leaving import last_day
from school_service.features.school.models import CURRENT, AcademicSession, Batch, Cohort, Enrollment


@read_model
def lock_cohort(cohort_id: UUID) -> Query:
    """Lock a cohort FOR SHARE."""
    return select(Cohort.id).where(Cohort.id == cohort_id).with_for_update(read=True)


@read_model
def lock_cohorts_of(student_ids: list[UUID]) -> Query:
    """Lock the present cohorts of students FOR SHARE, in order of id: their subjects change with these alone."""
    theirs = select(Enrollment.cohort_id).where(Enrollment.student_id == one_of(student_ids), CURRENT)
    return lock_in_order(Cohort, Cohort.id.in_(theirs), shared=True)


@read_model
def lock_students(student_ids: list[UUID]) -> Query:
    """Lock students FOR NO KEY UPDATE, in order of id: two transactions never deadlock."""
    return lock_in_order(Student, Student.id == one_of(student_ids))


@read_model
def enrolling(cohort_id: UUID, batch_id: UUID, student_ids: list[UUID]) -> Query:
    """Select the facts for and against enrolling students; to be read once they are locked. No row without a cohort.

    `first_day` and `last_day` are the session's.
    `of_cohort` tells whether the batch belongs to the cohort; it is null for an unknown batch. `students` is JSON: the
    existing students, each with the open enrollment in the cohort's session, if there is one.
    """
    in_session = and_(
        Enrollment.student_id == Student.id, Enrollment.session_id == Cohort.session_id, CURRENT
    )
    students = (
        select(
            _array_of(
                "id", Student.id, "admission_number", Student.admission_number, "status", Student.status,
                "enrollment", Enrollment.id, "cohort", Enrollment.cohort_id, "batch", Enrollment.batch_id,
                "started_on", Enrollment.started_on,
            )
        )
        .select_from(Student)
        .outerjoin(Enrollment, in_session)
        .where(Student.id == one_of(student_ids))
        .correlate(Cohort)
    )  # fmt: skip
    of_cohort = select(Batch.cohort_id == Cohort.id).where(Batch.id == batch_id)
    query = select(
        AcademicSession.start_date.label("first_day"),
        AcademicSession.end_date.label("last_day"),
        of_cohort.scalar_subquery().label("of_cohort"),
        students.scalar_subquery().label("students"),
    ).join(Cohort, Cohort.session_id == AcademicSession.id)
    return query.where(Cohort.id == cohort_id)


def open_enrollments(student_id: Any) -> Any:
    """Make the column of the open enrollments of a student, as JSON."""
    members = {"cohort": Enrollment.cohort_id, "batch": Enrollment.batch_id, **last_day(Enrollment)}
    return (
        select(_array_of(*(part for member in members.items() for part in member)))
        .where(Enrollment.student_id == student_id, CURRENT)
        .scalar_subquery()
    )


def _array_of(*members: Any) -> Any:
    """Gather rows as an array of objects, as text."""
    return func.coalesce(cast(func.json_agg(func.json_build_object(*members)), Text), "[]")
