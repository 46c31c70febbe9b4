"""Read models of gradebook entries."""

from __future__ import annotations

from uuid import UUID

from sqlalchemy import exists, select

from school_service.core.read_models import Query, read_model
from school_service.features.assessments.models import NOT_DELETED, Assessment
from school_service.features.cohort_subjects.models import SubjectEnrollment
from school_service.features.cohorts.models import CURRENT, Batch, Enrollment
from school_service.features.gradebooks.models import GradebookEntry
from school_service.features.students.models import Student

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


@read_model
def entries(
    batch_id: UUID | None = None,
    student_id: UUID | None = None,
    assessment_id: UUID | None = None,
    term_id: UUID | None = None,
) -> Query:
    """Read model of GradebookEntrySchema, in order of creation: all, or those that fit every filter.

    Each filter has an index: the entries' of batch, student and assessment, the assessments' of term.
    """
    found = (
        select(*ENTRY)
        .join(Assessment, Assessment.id == GradebookEntry.assessment_id)
        .where(NOT_DELETED)
        .order_by(GradebookEntry.created_at, GradebookEntry.id)
    )
    if student_id is not None:
        found = found.where(GradebookEntry.student_id == student_id)
    if assessment_id is not None:
        found = found.where(GradebookEntry.assessment_id == assessment_id)
    if term_id is not None:
        found = found.where(Assessment.term_id == term_id)
    if batch_id is None:
        return found
    # An entry's batch is of its assessment's cohort. This condition lets PostgreSQL begin with the assessments.
    cohort = select(Batch.cohort_id).where(Batch.id == batch_id).scalar_subquery()
    return found.where(GradebookEntry.batch_id == batch_id, Assessment.cohort_id == cohort)


@read_model
def entry(entry_id: UUID) -> Query:
    """Read model of GradebookEntrySchema, for one."""
    return entries.query().where(GradebookEntry.id == entry_id)


@read_model
def lock_assessment(assessment_id: UUID) -> Query:
    """Lock an assessment FOR SHARE."""
    return select(Assessment.id).where(Assessment.id == assessment_id).with_for_update(read=True)


@read_model
def assessed(assessment_id: UUID, student_id: UUID, batch_id: UUID) -> Query:
    """Select what decides whether a score may be entered, read once the assessment is locked; no row without one.

    `of_cohort` is null where there is no such batch, `submission_id` unless the results are submitted. It is a query
    of its own, so that after waiting for the lock it is the present that is read: whoever undoes a promotion holds it.
    """
    return select(
        Assessment.total_points,
        Assessment.submission_id,
        select(Batch.cohort_id == Assessment.cohort_id)
        .where(Batch.id == batch_id)
        .scalar_subquery()
        .label("of_cohort"),
        exists().where(Student.id == student_id).label("known"),
        exists()
        .where(Enrollment.student_id == student_id, Enrollment.batch_id == batch_id, CURRENT)
        .label("in_batch"),
        exists()
        .where(
            SubjectEnrollment.cohort_subject_id == Assessment.cohort_subject_id,
            SubjectEnrollment.student_id == student_id,
        )
        .label("takes_subject"),
    ).where(Assessment.id == assessment_id, NOT_DELETED)
