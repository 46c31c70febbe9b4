"""Read models of assessments."""

from __future__ import annotations

from uuid import UUID

from sqlalchemy import or_, select

from school_service.core.read_models import Query, read_model
from school_service.features.classes.models import CohortSubject
from school_service.features.school.models import Batch, Cohort, Subject, Term
from school_service.features.scores.models import NOT_DELETED, Assessment, Submission


@read_model
def assessments() -> Query:
    """Read model of AssessmentSchema, by due date, without the deleted."""
    return (
        select(
            Assessment.id,
            Assessment.cohort_subject_id.label("subject"),
            Assessment.name,
            Assessment.abbreviation,
            Assessment.due_date,
            Assessment.total_points,
            Assessment.term_id.label("term"),
            Assessment.include_in_final,
            Assessment.publish_scores,
            Assessment.category,
            Assessment.file_name,
        )
        .where(NOT_DELETED)
        .order_by(Assessment.due_date, Assessment.created_at, Assessment.id)
    )


@read_model
def assessment(assessment_id: UUID) -> Query:
    """Read model of AssessmentSchema, for one."""
    return assessments.query().where(Assessment.id == assessment_id)


@read_model
def assessments_of_subject(batch_id: UUID, subject_id: UUID, term_id: UUID) -> Query:
    """Read model of AssessmentSchema, those of a term in a subject of a batch's cohort.

    The subject is the cohort subject or the base subject.
    """
    return (
        assessments.query()
        .join(CohortSubject, CohortSubject.id == Assessment.cohort_subject_id)
        .join(Batch, Batch.cohort_id == CohortSubject.cohort_id)
        .where(
            Batch.id == batch_id,
            or_(CohortSubject.id == subject_id, CohortSubject.subject_id == subject_id),
            Assessment.term_id == term_id,
        )
    )


@read_model
def taught(cohort_subject_id: UUID, term_id: UUID) -> Query:
    """Select what decides whether a cohort subject may have an assessment in a term; no row without the first.

    `of_session` tells whether the term is of the cohort's session, null where there is no such term; `submission_id`
    is null unless the results of that term are submitted, which the cohort subject must be locked for.
    """
    of_session = select(Term.session_id == Cohort.session_id).where(Term.id == term_id)
    submission = select(Submission.id).where(
        Submission.cohort_subject_id == cohort_subject_id, Submission.term_id == term_id
    )
    return (
        select(
            CohortSubject.cohort_id,
            Cohort.session_id,
            of_session.scalar_subquery().label("of_session"),
            submission.scalar_subquery().label("submission_id"),
        )
        .join(Cohort, Cohort.id == CohortSubject.cohort_id)
        .where(CohortSubject.id == cohort_subject_id)
    )


@read_model
def lock_subject(cohort_subject_id: UUID) -> Query:
    """Lock a cohort subject FOR SHARE: nobody submits its results meanwhile."""
    return select(CohortSubject.id).where(CohortSubject.id == cohort_subject_id).with_for_update(read=True)


@read_model
def submitted(submission_id: UUID) -> Query:
    """Select what a submission is called: the names of its subject and its term."""
    return (
        select(Subject.name.label("subject"), Term.display_name.label("term"))
        .select_from(Submission)
        .join(CohortSubject, CohortSubject.id == Submission.cohort_subject_id)
        .join(Subject, Subject.id == CohortSubject.subject_id)
        .join(Term, Term.id == Submission.term_id)
        .where(Submission.id == submission_id)
    )
