"""Read models of submissions."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from sqlalchemy import Text, and_, case, cast, func, literal, literal_column, or_, select
from sqlalchemy.dialects.postgresql import aggregate_order_by

from school_service.core.read_models import Query, read_model
from school_service.features.audit.models import CREATE, AuditEntry
from school_service.features.classes.models import CohortSubject
from school_service.features.people.models import Student
from school_service.features.results.figures import rules
from school_service.features.results.figures.rules import (
    Computed,
    compute,
    is_term,
    scope_of_batch,
    scope_of_subject,
)
from school_service.features.results.models import OPEN, PUBLISHED, SUBMITTED, Publication
from school_service.features.school.models import Batch, Classroom, Cohort, Subject, Term
from school_service.features.scores.models import NOT_DELETED, Assessment, Submission

ENTITY = "submission"
"""What the audit log calls it; the id there is the cohort subject's."""


@read_model
def submissions(batch_id: UUID, term: str) -> Query:
    """Read model of SubmissionSchema: of a batch's cohort, by the subject's name, where something counts.

    `term` is the id of a term or its name in the batch's session. What is submitted is there in any case.
    """
    computed = compute(scope_of_batch(batch_id, term))
    found, counted = _submissions(computed)
    return found.where(or_(counted.is_not(None), Submission.id.is_not(None)))


@read_model
def submission(cohort_subject_id: UUID, term: str) -> Query:
    """Read model of SubmissionSchema, for one, whether something counts or not; `term` as in `submissions`."""
    computed = compute(scope_of_subject(cohort_subject_id, term), cohort_subject_id=cohort_subject_id)
    found, _ = _submissions(computed)
    return found.where(CohortSubject.id == cohort_subject_id)


@read_model
def lock_cohort(cohort_subject_id: UUID) -> Query:
    """Lock the cohort of a cohort subject FOR SHARE: nobody publishes its results meanwhile."""
    return (
        select(Cohort.id)
        .join(CohortSubject, CohortSubject.cohort_id == Cohort.id)
        .where(CohortSubject.id == cohort_subject_id)
        .with_for_update(read=True, of=Cohort)
    )


@read_model
def lock_subject(cohort_subject_id: UUID) -> Query:
    """Lock a cohort subject FOR NO KEY UPDATE: nobody adds an assessment meanwhile."""
    return (
        select(CohortSubject.id).where(CohortSubject.id == cohort_subject_id).with_for_update(key_share=True)
    )


@read_model
def lock_assessments(cohort_subject_id: UUID, term: str) -> Query:
    """Lock the assessments of a cohort subject in a term FOR NO KEY UPDATE, in order of id: no score changes."""
    return (
        select(Assessment.id)
        .join(Term, Term.id == Assessment.term_id)
        .where(Assessment.cohort_subject_id == cohort_subject_id, is_term(term), NOT_DELETED)
        .order_by(Assessment.id)
        .with_for_update(key_share=True, of=Assessment)
    )


@read_model
def submitting(cohort_subject_id: UUID, term: str) -> Query:
    """Select what decides whether results may be submitted, to be read once all is locked; no row without them.

    `submission_id` is null while they are open, `counting` tells how many assessments count. `blanks` is JSON: each
    assessment that has some, by abbreviation, with the students.
    """
    computed = compute(scope_of_subject(cohort_subject_id, term), cohort_subject_id=cohort_subject_id)
    scope, counting, blank = computed.scope, computed.counting, rules.blanks(computed)
    student = func.json_build_object("id", Student.id, "admission_number", Student.admission_number)
    of_assessment = (
        select(
            counting.c.id,
            counting.c.abbreviation,
            func.json_agg(aggregate_order_by(student, Student.admission_number)).label("students"),
        )
        .join(blank, blank.c.assessment_id == counting.c.id)
        .join(Student, Student.id == blank.c.student_id)
        .group_by(counting.c.id, counting.c.abbreviation)
        .subquery("of_assessment")
    )
    one = func.json_build_object(
        "assessment", of_assessment.c.id,
        "abbreviation", of_assessment.c.abbreviation,
        "students", of_assessment.c.students,
    )  # fmt: skip
    blanks = select(
        cast(func.json_agg(aggregate_order_by(one, of_assessment.c.abbreviation, of_assessment.c.id)), Text)
    )
    taking = rules.takers(computed)
    is_taker = taking.c.cohort_subject_id == cohort_subject_id
    return select(
        scope.c.cohort_id,
        scope.c.session_id,
        scope.c.term_id,
        _submission_id(scope, cohort_subject_id),
        select(func.count()).select_from(counting).scalar_subquery().label("counting"),
        select(func.count()).select_from(taking).where(is_taker).scalar_subquery().label("takers"),
        func.coalesce(blanks.scalar_subquery(), literal("[]")).label("blanks"),
    )


@read_model
def reopening(cohort_subject_id: UUID, term: str) -> Query:
    """Select what decides whether results may be reopened, to be read once all is locked; no row without them.

    `submission_id` is null while they are open; `once` tells whether they were submitted before, by the audit log.
    `published` is JSON: the names of the batches whose results of the term are published.
    """
    scope = scope_of_subject(cohort_subject_id, term).cte("scope")
    name = Classroom.name + " " + Batch.name
    published = (
        select(cast(func.json_agg(aggregate_order_by(name, Batch.name)), Text))
        .select_from(Publication)
        .join(Batch, Batch.id == Publication.batch_id)
        .join(Cohort, Cohort.id == Batch.cohort_id)
        .join(Classroom, Classroom.id == Cohort.classroom_id)
        .where(
            Publication.cohort_id == scope.c.cohort_id,
            Publication.term_id == scope.c.term_id,
            Publication.state == PUBLISHED,
        )
        .correlate(scope)
    )
    once = (
        select(AuditEntry.id)
        .where(
            AuditEntry.entity_id == cohort_subject_id,
            AuditEntry.entity == ENTITY,
            AuditEntry.action == CREATE,
            AuditEntry.new["term"].astext == cast(scope.c.term_id, Text),
        )
        .correlate(scope)
    )
    return select(
        scope.c.term_id,
        _submission_id(scope, cohort_subject_id),
        once.exists().label("once"),
        func.coalesce(published.scalar_subquery(), literal("[]")).label("published"),
    )


def _submission_id(scope: Any, cohort_subject_id: Any) -> Any:
    return (
        select(Submission.id)
        .where(Submission.cohort_subject_id == cohort_subject_id, Submission.term_id == scope.c.term_id)
        .correlate(scope)
        .scalar_subquery()
        .label("submission_id")
    )


def _submissions(computed: Computed) -> tuple[Query, Any]:
    """Select the submissions of all subjects of the scope's cohort, and how many assessments of each count."""
    scope = computed.scope

    def number(of: Any, name: str) -> Any:
        subject = of.c.cohort_subject_id
        return select(subject, func.count().label(name)).group_by(subject).subquery(f"number_of_{name}")

    counting = number(computed.counting, "assessments")
    takers, blanks = number(rules.takers(computed), "takers"), number(rules.blanks(computed), "blanks")
    none: Any = literal_column("0")
    state = case((Submission.id.is_(None), OPEN), else_=SUBMITTED)
    found = (
        select(
            CohortSubject.id.label("cohort_subject"),
            Subject.id.label("base"),
            Subject.name.label("subject"),
            func.json_build_object("id", scope.c.term_id, "term", scope.c.term).label("term"),
            state.label("state"),
            func.coalesce(takers.c.takers, none).label("takers"),
            func.coalesce(counting.c.assessments, none).label("assessments"),
            func.coalesce(blanks.c.blanks, none).label("blanks"),
            Submission.submitted_at,
            Submission.submitted_by,
            Submission.submitted_by_name,
        )
        .select_from(scope)
        .join(CohortSubject, CohortSubject.cohort_id == scope.c.cohort_id)
        .join(Subject, Subject.id == CohortSubject.subject_id)
        .outerjoin(counting, counting.c.cohort_subject_id == CohortSubject.id)
        .outerjoin(takers, takers.c.cohort_subject_id == CohortSubject.id)
        .outerjoin(blanks, blanks.c.cohort_subject_id == CohortSubject.id)
        .outerjoin(
            Submission,
            and_(Submission.cohort_subject_id == CohortSubject.id, Submission.term_id == scope.c.term_id),
        )
        .order_by(Subject.name, CohortSubject.id)
    )
    return found, counting.c.assessments
