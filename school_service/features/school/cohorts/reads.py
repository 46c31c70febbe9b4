"""Read models of cohorts and batches."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from sqlalchemy import Text, case, cast, exists, func, or_, select
from sqlalchemy.dialects.postgresql import aggregate_order_by

from school_service.core.counters import BATCHES, number_taken
from school_service.core.reach import Reach
from school_service.core.read_models import Query, array_of, json_object, read_model
from school_service.features.reach import scopes
from school_service.features.school.models import AcademicSession, Batch, Classroom, Cohort


@read_model
def cohorts(session: UUID | None = None, reach: Reach | None = None) -> Query:
    """Read model of ListedCohortSchema, the newest session first, then by classroom.

    The cohorts of a `session` have their arms.
    """
    query = (
        select(Cohort.id, Classroom.name.label("classroom"), Cohort.session_id.label("session"))
        .join(Classroom, Classroom.id == Cohort.classroom_id)
        .join(AcademicSession, AcademicSession.id == Cohort.session_id)
        .order_by(AcademicSession.start_date.desc(), AcademicSession.id, Classroom.name, Cohort.id)
    )
    if session is not None:
        query = query.add_columns(_arms(reach).label("batches")).where(Cohort.session_id == session)
    return query if reach is None else query.where(scopes.cohorts_in_reach(reach, Cohort.id))


def _arms(reach: Reach | None) -> Any:
    """A column of a query of Cohort: its arms in reach by name."""
    arm = batches.query(reach=reach).where(Batch.cohort_id == Cohort.id).correlate(Cohort).subquery()
    return select(array_of(json_object(**arm.c), arm.c.name, arm.c.id)).scalar_subquery()


@read_model
def cohort(cohort_id: UUID, reach: Reach | None = None) -> Query:
    """Read model of CohortSchema, for one."""
    return cohorts.query(reach=reach).where(Cohort.id == cohort_id)


@read_model
def batches(cohort_id: UUID | None = None, reach: Reach | None = None) -> Query:
    """Read model of BatchSchema, by name: all, or the arms of a cohort."""
    query = select(Batch.id, Batch.number, Batch.name, Batch.cohort_id.label("cohort")).order_by(
        Batch.name, Batch.id
    )
    if reach is not None:
        query = query.where(scopes.arms_in_reach(reach, Batch.id))
    return query if cohort_id is None else query.where(Batch.cohort_id == cohort_id)


@read_model
def batch(batch_id: UUID, reach: Reach | None = None) -> Query:
    """Read model of BatchSchema, for one."""
    return batches.query(None, reach).where(Batch.id == batch_id)


@read_model
def lock_cohort_of(batch_id: UUID) -> Query:
    """Lock the cohort of a batch FOR NO KEY UPDATE: nobody is enrolled there meanwhile."""
    cohort_id = select(Batch.cohort_id).where(Batch.id == batch_id).scalar_subquery()
    return select(Cohort.id).where(Cohort.id == cohort_id).with_for_update(key_share=True)


def batches_of_cohort() -> Any:
    """A column of a query of Cohort: its batches as JSON, as text, by number."""
    batch = json_object(id=Batch.id, cohort=Batch.cohort_id, name=Batch.name, number=Batch.number)
    listed = func.json_agg(aggregate_order_by(batch, Batch.number))
    return select(cast(listed, Text)).where(Batch.cohort_id == Cohort.id).correlate(Cohort).scalar_subquery()


def class_name(classroom: Any, batch_name: Any, cohort_id: Any) -> Any:
    """The name of a class on paper: the classroom's name, with the arm's if the cohort has several."""
    arms = select(func.count()).select_from(Batch).where(Batch.cohort_id == cohort_id)
    is_only_arm = arms.correlate_except(Batch).scalar_subquery() == 1
    return case((is_only_arm, classroom), else_=func.concat(classroom, " ", batch_name))


def session_by_id_or_name(text: Any) -> Query:
    """Select the id of the session meant by a text: by its id or, if there is no such id, by its name."""
    is_id = cast(AcademicSession.id, Text) == func.lower(text)
    # A name may be any text, the id of another session too.
    return (
        select(AcademicSession.id)
        .where(or_(is_id, AcademicSession.name == text))
        .order_by(is_id.desc())
        .limit(1)
    )


@read_model
def for_cohort(classroom_id: UUID, session: str, batches: int) -> Query:
    """Select the references of a new cohort, and take the numbers of so many batches; `number` is the last of them.

    `classroom` tells whether there is such a one; `session_id` is null if there is no session of this id or name.
    """
    number = number_taken(BATCHES, count=batches)
    return select(
        exists().where(Classroom.id == classroom_id).label("classroom"),
        session_by_id_or_name(session).scalar_subquery().label("session_id"),
        number.c.value.label("number"),
    )


@read_model
def for_batch(cohort_id: UUID) -> Query:
    """Take the number of a new batch of a cohort, which stays meanwhile; no row and no number without one."""
    cohort = (
        select(Cohort.id).where(Cohort.id == cohort_id).with_for_update(read=True, key_share=True).subquery()
    )
    number = number_taken(BATCHES, exists(select(cohort.c.id)))
    return select(number.c.value.label("number"))


CLASS = Classroom.name + " " + Batch.name
"""The name of a class in full, in a query of its batch (`with_class`)."""


def with_class(query: Query) -> Query:
    """Join the cohort and the classroom of a query's batch."""
    return query.join(Cohort, Cohort.id == Batch.cohort_id).join(
        Classroom, Classroom.id == Cohort.classroom_id
    )
