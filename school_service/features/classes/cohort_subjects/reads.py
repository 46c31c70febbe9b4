"""Read models of cohort subjects."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from sqlalchemy import ColumnElement, and_, exists, func, or_, select
from sqlalchemy.dialects.postgresql import aggregate_order_by

from school_service.core.reach import Reach
from school_service.core.read_models import Query, json_object, read_model
from school_service.core.statements import lock_through
from school_service.features.classes.models import CohortSubject, SubjectEnrollment, SubjectTeacher
from school_service.features.people.models import IS_THERE, Employee, Student, User
from school_service.features.people.students.reads import students
from school_service.features.reach import scopes
from school_service.features.school.cohorts.reads import session_by_id_or_name
from school_service.features.school.models import CURRENT, IN_ORDER, Batch, Cohort, Enrollment, Subject


@read_model
def cohort_subjects(
    batch: UUID | None = None,
    base: UUID | None = None,
    session: str | None = None,
    without_teacher: bool | None = None,
    reach: Reach | None = None,
) -> Query:
    """Read model of ListedCohortSubjectSchema, by the subject's position, then by its name.

    All, or those of a cohort (any of its batches), of a subject, of a session (its id or name); with `without_teacher`
    those with an arm in want of one, which then are told.
    """
    query = (
        select(
            CohortSubject.id,
            CohortSubject.elective,
            Subject.name.label("subject"),
            Subject.code,
            CohortSubject.cohort_id.label("cohort"),
        )
        .join(Subject, Subject.id == CohortSubject.subject_id)
        .order_by(*IN_ORDER, CohortSubject.id)
    )
    if reach is not None:
        query = query.where(scopes.subjects_in_reach(reach, CohortSubject.id, CohortSubject.cohort_id))
        if batch is not None:
            query = query.where(scopes.arms_in_reach(reach, batch))
    if batch is not None:
        cohort = select(Batch.cohort_id).where(Batch.id == batch).scalar_subquery()
        query = query.where(CohortSubject.cohort_id == cohort)
    if base is not None:
        query = query.where(CohortSubject.subject_id == base)
    if session is not None:
        meant = session_by_id_or_name(session).scalar_subquery()
        query = query.join(Cohort, Cohort.id == CohortSubject.cohort_id).where(Cohort.session_id == meant)
    if without_teacher is not None:
        arms = _arms_without_teacher(reach)
        query = query.add_columns(arms.c.arms_without_teacher).join(
            arms, arms.c.arms_without_teacher.is_not(None)
        )
    return query


def _arms_without_teacher(reach: Reach | None) -> Any:
    """The arms in reach with takers of the subject and without a teacher of it today: a row for each CohortSubject."""
    taken = (
        exists()
        .where(
            SubjectEnrollment.cohort_subject_id == CohortSubject.id,
            Enrollment.student_id == SubjectEnrollment.student_id,
            Enrollment.batch_id == Batch.id,
            CURRENT,
        )
        .correlate(CohortSubject, Batch)
    )
    arm = json_object(batch=Batch.id, batch_name=Batch.name)
    listed = func.json_agg(aggregate_order_by(arm, Batch.name, Batch.id)).label("arms_without_teacher")
    query = select(listed).where(Batch.cohort_id == CohortSubject.cohort_id, taken, ~is_taught_today())
    if reach is not None:
        query = query.where(scopes.arms_in_reach(reach, Batch.id))
    return query.correlate(CohortSubject).lateral("arms")


def is_taught_today() -> ColumnElement[bool]:
    """Tell, in a query of CohortSubject and Batch, whether somebody teaches the subject in the batch today."""
    return (
        exists()
        .where(
            SubjectTeacher.cohort_subject_id == CohortSubject.id,
            or_(SubjectTeacher.batch_id.is_(None), SubjectTeacher.batch_id == Batch.id),
            scopes.holds_today(SubjectTeacher),
            Employee.id == SubjectTeacher.employee_id,
            User.id == Employee.user_id,
            IS_THERE,
        )
        .correlate(CohortSubject, Batch)
    )


@read_model
def cohort_subject(cohort_subject_id: UUID, reach: Reach | None = None) -> Query:
    """Read model of CohortSubjectSchema, for one."""
    return cohort_subjects.query(reach=reach).where(CohortSubject.id == cohort_subject_id)


@read_model
def students_of_subject(cohort_subject_id: UUID, reach: Reach | None = None) -> Query:
    """Read model of StudentSchema: the students with a cohort subject, by name."""
    takes = and_(
        SubjectEnrollment.student_id == Student.id, SubjectEnrollment.cohort_subject_id == cohort_subject_id
    )
    query = students.query(reach=reach).join(SubjectEnrollment, takes)
    return (
        query if reach is None else query.where(scopes.scores_in_reach(reach, cohort_subject_id, Student.id))
    )


@read_model
def lock_cohort(cohort_id: UUID, subject_id: UUID) -> Query:
    """Lock a cohort FOR NO KEY UPDATE and tell whether there is a subject to teach to it; no row without a cohort."""
    return (
        select(exists().where(Subject.id == subject_id).label("subject"))
        .select_from(Cohort)
        .where(Cohort.id == cohort_id)
        .with_for_update(key_share=True, of=Cohort)
    )


lock_cohort_of = lock_through(CohortSubject.cohort_id, Cohort)
"""Locks the cohort of a cohort subject: nobody enrolls students, and so takers of its subjects."""
