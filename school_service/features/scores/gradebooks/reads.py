"""Read models of gradebook entries."""

from __future__ import annotations

from decimal import Decimal
from typing import Any
from uuid import UUID

from sqlalchemy import ARRAY, Text, and_, cast, exists, func, literal_column, select
from sqlalchemy.orm import aliased

from school_service.core.narrowing import judged_before
from school_service.core.reach import Reach
from school_service.core.read_models import Query, read_model
from school_service.features.classes.models import SubjectEnrollment
from school_service.features.people.models import Student
from school_service.features.reach import scopes
from school_service.features.school.models import CURRENT, Batch, Enrollment, Term
from school_service.features.scores.assessments.reads import in_reach as of_assessment_in_reach
from school_service.features.scores.models import NOT_DELETED, Absence, Assessment, GradebookEntry

ENTRY = (
    GradebookEntry.id,
    GradebookEntry.assessment_id.label("assessment"),
    Assessment.category.label("assessment_category"),
    GradebookEntry.score,
    GradebookEntry.student_id.label("student"),
    GradebookEntry.batch_id.label("batch"),
    Assessment.cohort_subject_id.label("subject"),
)
"""The columns of GradebookEntrySchema, of an entry joined with its assessment."""


def _was_changed() -> Any:
    before = aliased(Assessment, name="before")
    as_the_statement_began: Any = select(literal_column("before.ctid")).where(before.id == Assessment.id)
    return (
        literal_column("assessments.ctid") != as_the_statement_began.correlate(Assessment).scalar_subquery()
    )


WAS_CHANGED = _was_changed()
"""A column: whether the row of a locked assessment has changed since the statement began."""


@read_model
def entries(
    batch_id: UUID | None = None,
    student_id: UUID | None = None,
    assessment_id: UUID | None = None,
    term_id: UUID | None = None,
    term: str | None = None,
    reach: Reach | None = None,
) -> Query:
    """Read model of GradebookEntrySchema, in order of creation: all, or those fitting every filter.

    `term` is the name of a term, in any session. Each other filter has an index: the entries' of batch, student and
    assessment, the assessments' of term.
    """
    query = (
        select(*ENTRY)
        .join(Assessment, Assessment.id == GradebookEntry.assessment_id)
        .where(NOT_DELETED)
        .order_by(GradebookEntry.created_at, GradebookEntry.id)
    )
    if reach is not None:
        query = query.where(in_reach(reach))
        if batch_id is not None:
            query = query.where(scopes.arms_in_reach(reach, batch_id))
    if student_id is not None:
        query = query.where(GradebookEntry.student_id == student_id)
    if assessment_id is not None:
        query = query.where(GradebookEntry.assessment_id == assessment_id)
    if term_id is not None:
        query = query.where(Assessment.term_id == term_id)
    if term is not None:
        query = query.join(Term, Term.id == Assessment.term_id).where(Term.term == term)
    if batch_id is None:
        return query
    # An entry's batch is of its assessment's cohort. This condition lets PostgreSQL begin with the assessments.
    cohort = select(Batch.cohort_id).where(Batch.id == batch_id).scalar_subquery()
    return query.where(GradebookEntry.batch_id == batch_id, Assessment.cohort_id == cohort)


def in_reach(reach: Reach) -> Any:
    """Whether an entry, joined with its assessment, is in reach."""
    return scopes.scores_in_reach(reach, Assessment.cohort_subject_id, GradebookEntry.student_id)


@read_model
def entry(entry_id: UUID, reach: Reach | None = None) -> Query:
    """Read model of GradebookEntrySchema, for one."""
    return entries.query(reach=reach).where(GradebookEntry.id == entry_id)


@judged_before
def assessment_lock(entry_id: UUID) -> Query:
    """Select the id of an entry's assessment, locked FOR SHARE, as it is before the entry itself is locked."""
    return (
        select(Assessment.id)
        .join(GradebookEntry, GradebookEntry.assessment_id == Assessment.id)
        .where(GradebookEntry.id == entry_id)
        .with_for_update(read=True, of=Assessment)
    )


@read_model
def entering(
    entry_id: UUID,
    assessment_id: UUID,
    student_id: UUID,
    batch_id: UUID,
    score: Decimal,
    reach: Reach | None = None,
) -> Query:
    """Select the facts for and against entering a score, locking the assessment FOR SHARE; no row without one.

    `may_enter` tells whether the student is in the batch, of the assessment's cohort, and takes the subject; if not,
    `hindrances` says why. `submitted_batches` are the submitted arms, as texts, `absent` tells whether there is an
    absence for the score to take away, and `answer` is the entry, rendered as GradebookEntrySchema.

    Only the assessment is seen as it is once it is locked; the rest is as it was when the statement began, as if the
    score had been entered then. `was_changed`: the assessment has changed since then, and perhaps its absences and the
    like, too; read again, all is as it is now.
    """
    may_enter = and_(
        exists().where(
            Enrollment.student_id == student_id,
            Enrollment.batch_id == batch_id,
            Enrollment.cohort_id == Assessment.cohort_id,
            CURRENT,
        ),
        _takes_subject(student_id),
    )
    if reach is not None:
        may_enter &= _teaches_arm(reach, batch_id) & _teaches_student(reach, student_id)
    query = (
        select(
            Assessment.total_points,
            Assessment.cohort_subject_id,
            Assessment.term_id,
            cast(Assessment.submitted_batches, ARRAY(Text)).label("submitted_batches"),
            may_enter.label("may_enter"),
            exists()
            .where(Absence.assessment_id == assessment_id, Absence.student_id == student_id)
            .label("absent"),
            WAS_CHANGED.label("was_changed"),
            _entered(entry_id, student_id, batch_id, score).label("answer"),
        )
        .where(Assessment.id == assessment_id, NOT_DELETED)
        .with_for_update(read=True, of=Assessment)
    )
    return query if reach is None else query.where(of_assessment_in_reach(reach))


def _entered(entry_id: UUID, student_id: UUID, batch_id: UUID, score: Decimal) -> Any:
    """A column of a query of assessments: an entry about to be made, as JSON, as text."""
    entry: dict[str, Any] = {
        "id": entry_id,
        "assessment": Assessment.id,
        "score": score,
        "student": student_id,
        "batch": batch_id,
    }
    columns = [
        # A parameter alone would be a text.
        cast(entry[column.name], column.type).label(column.name) if column.name in entry else column
        for column in ENTRY
    ]
    entered = select(*columns).correlate(Assessment).subquery("entered")
    rendered = cast(func.row_to_json(literal_column("entered")), Text)
    return select(rendered).select_from(entered).scalar_subquery()


@read_model
def hindrances(assessment_id: UUID, student_id: UUID, batch_id: UUID, reach: Reach | None = None) -> Query:
    """Select the possible hindrances to a score in a locked assessment.

    `of_cohort` is null for an unknown batch.
    """
    batch, student = Batch.id == batch_id, Student.id == student_id
    if reach is not None:
        batch &= _teaches_arm(reach, batch_id)
        student &= _teaches_student(reach, student_id)
    return select(
        select(Batch.cohort_id == Assessment.cohort_id).where(batch).scalar_subquery().label("of_cohort"),
        exists().where(student).label("known"),
        exists()
        .where(Enrollment.student_id == student_id, Enrollment.batch_id == batch_id, CURRENT)
        .label("in_batch"),
        _takes_subject(student_id).label("takes_subject"),
    ).where(Assessment.id == assessment_id)


def _takes_subject(student_id: UUID) -> Any:
    return exists().where(
        SubjectEnrollment.cohort_subject_id == Assessment.cohort_subject_id,
        SubjectEnrollment.student_id == student_id,
    )


def _teaches_arm(reach: Reach, batch_id: UUID) -> Any:
    return scopes.is_taught_arm(reach, Assessment.cohort_subject_id, batch_id)


def _teaches_student(reach: Reach, student_id: UUID) -> Any:
    return scopes.scores_in_reach(reach, Assessment.cohort_subject_id, student_id)
