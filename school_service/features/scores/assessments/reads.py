"""Read models of assessments."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from sqlalchemy import ARRAY, Text, Uuid, and_, any_, case, cast, exists, func, literal_column, or_, select
from sqlalchemy.dialects.postgresql import aggregate_order_by

from school_service.core.database import db
from school_service.core.narrowing import judged_before
from school_service.core.reach import Reach
from school_service.core.read_models import Query, array_of, read_model
from school_service.core.records import lock_in_order, one_of
from school_service.features.classes.models import CohortSubject
from school_service.features.reach import scopes
from school_service.features.school.models import CURRENT, Batch, Cohort, Enrollment, Subject, Term
from school_service.features.school.sessions.service import is_term, is_term_id
from school_service.features.scores.models import NOT_DELETED, Absence, Assessment, GradebookEntry, Submission

NO_BATCHES: Any = literal_column("'{}'::text[]", ARRAY(Text))


@read_model
def assessments(reach: Reach | None = None) -> Query:
    """Read model of AssessmentSchema, by due date, without the deleted."""
    query = (
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
    return query if reach is None else query.where(in_reach(reach))


def in_reach(reach: Reach) -> Any:
    """Whether an assessment is of a subject in reach."""
    return scopes.subjects_in_reach(reach, Assessment.cohort_subject_id, Assessment.cohort_id)


@read_model
def assessment(assessment_id: UUID, reach: Reach | None = None) -> Query:
    """Read model of AssessmentSchema, for one."""
    return assessments.query(reach).where(Assessment.id == assessment_id)


@judged_before
def made_at_once(assessment_ids: list[UUID]) -> Query:
    """Read model of AssessmentSchema, for these, in their order."""
    ids = cast(assessment_ids, ARRAY(Uuid))
    query = assessments.query().where(Assessment.id == any_(ids))
    return query.order_by(None).order_by(func.array_position(ids, Assessment.id))


@read_model
def assessments_of_subject(batch_id: UUID, subject_id: UUID, term: str, reach: Reach | None = None) -> Query:
    """Read model of AssessmentSchema for a term in a subject of a batch's cohort, or of a cohort by its own id.

    The subject is the cohort subject or the base subject, `term` the id of a term or its name in the cohort's session.
    """
    query = (
        assessments.query(reach)
        .join(CohortSubject, CohortSubject.id == Assessment.cohort_subject_id)
        .join(Batch, Batch.cohort_id == CohortSubject.cohort_id)
        .join(Term, Term.id == Assessment.term_id)
        .where(
            Batch.id == batch_id,
            or_(CohortSubject.id == subject_id, CohortSubject.subject_id == subject_id),
            is_term(term),
        )
    )
    if reach is None:
        return query
    # The id is the cohort's and its first arm's: a caller who reaches another arm alone knows the cohort by it.
    return query.where(or_(scopes.arms_in_reach(reach, batch_id), scopes.cohorts_in_reach(reach, batch_id)))


@read_model
def taught(cohort_subject_id: UUID, term: str, reach: Reach | None = None) -> Query:
    """Select the facts for and against an assessment of a cohort subject in a term; no row without the first.

    `term` is the id of a term or its name in the cohort's session. `of_session` tells whether the term is of the
    cohort's session, null for an unknown term; `submitted` are the arms with submitted results of that term, as texts,
    and for it the cohort subject must be locked.
    """
    return _taught(CohortSubject.id == cohort_subject_id, term, reach)


@read_model
def all_taught(cohort_subject_ids: list[UUID], term: str, reach: Reach | None = None) -> Query:
    """Select `subjects`: the facts for and against an assessment of each of these cohort subjects, as JSON in a text.

    It has the existing ones, with their `id` and the columns of `taught`.
    """
    is_one = CohortSubject.id == one_of(cohort_subject_ids)
    taught = _taught(is_one, term, reach).subquery("found")
    rows = array_of(func.row_to_json(taught.table_valued()))
    return select(cast(rows, Text).label("subjects")).select_from(taught)


def _taught(is_one: Any, term: Any, reach: Reach | None) -> Query:
    of_session = Term.session_id == Cohort.session_id
    submitted = (
        select(func.array_agg(cast(Submission.batch_id, Text)))
        .where(Submission.cohort_subject_id == CohortSubject.id, Submission.term_id == Term.id)
        .correlate(CohortSubject, Term)
    )
    query = (
        select(
            CohortSubject.id,
            CohortSubject.cohort_id,
            Cohort.session_id,
            cast(Term.id, Text).label("term_id"),
            of_session.label("of_session"),
            func.coalesce(submitted.scalar_subquery(), NO_BATCHES).label("submitted"),
        )
        .join(Cohort, Cohort.id == CohortSubject.cohort_id)
        .outerjoin(Term, or_(is_term_id(term), and_(Term.term == term, of_session)))
        .where(is_one)
    )
    if reach is None:
        return query
    return query.where(scopes.subjects_in_reach(reach, CohortSubject.id, CohortSubject.cohort_id))


@judged_before
def lock_term(cohort_subject_ids: list[UUID], term: str) -> Query:
    """Lock a term of the session of cohort subjects, and then their cohort, FOR KEY SHARE: neither is deleted."""
    return (
        select(Term.id)
        .join(Cohort, Cohort.session_id == Term.session_id)
        .where(
            Cohort.id.in_(
                select(CohortSubject.cohort_id).where(CohortSubject.id == one_of(cohort_subject_ids))
            ),
            is_term(term),
        )
        .order_by(Term.id, Cohort.id)
        .with_for_update(read=True, key_share=True, of=(Term, Cohort))
    )


@judged_before
def lock_terms_of(assessment_id: UUID) -> Query:
    """Lock the terms of the session of an assessment FOR KEY SHARE, in order of id: none is deleted meanwhile."""
    return (
        select(Term.id)
        .join(Assessment, Assessment.session_id == Term.session_id)
        .where(Assessment.id == assessment_id)
        .order_by(Term.id)
        .with_for_update(read=True, key_share=True, of=Term)
    )


@judged_before
def lock_subjects(cohort_subject_ids: list[UUID]) -> Query:
    """Lock cohort subjects FOR SHARE, in order of id: nobody submits their results meanwhile."""
    return lock_in_order(CohortSubject, CohortSubject.id == one_of(cohort_subject_ids), shared=True)


@judged_before
def lock_subject_of(assessment_id: UUID) -> Query:
    """Lock the cohort subject of an assessment FOR SHARE: nobody submits its results meanwhile."""
    return (
        select(CohortSubject.id)
        .join(Assessment, Assessment.cohort_subject_id == CohortSubject.id)
        .where(Assessment.id == assessment_id)
        .with_for_update(read=True, of=CohortSubject)
    )


@judged_before
def lock_assessments(cohort_subject_id: UUID, term: str) -> Query:
    """Lock the assessments of a cohort subject in a term FOR NO KEY UPDATE, in order of id: no score changes."""
    return (
        select(Assessment.id)
        .join(Term, Term.id == Assessment.term_id)
        .where(Assessment.cohort_subject_id == cohort_subject_id, is_term(term), NOT_DELETED)
        .order_by(Assessment.id)
        .with_for_update(key_share=True, of=Assessment)
    )


@judged_before
def highest_score(assessment_id: UUID) -> Query:
    """Select `score`: the highest score in an assessment, null without any."""
    return select(func.max(GradebookEntry.score).label("score")).where(
        GradebookEntry.assessment_id == assessment_id
    )


def holding_batches(student_id: Any) -> Any:
    """A column: the arms with a submission holding a student's score or absence in an assessment, as texts.

    These are the student's arm in the cohort now, the arm of their report card of the term in force, and any arm left
    by them after its submission. For a student now in no arm it is each submitted one. In a locked row of Assessment,
    all is as it is then.
    """
    when_submitted = exists().where(
        Submission.cohort_subject_id == Assessment.cohort_subject_id,
        Submission.batch_id == Enrollment.batch_id,
        Submission.term_id == Assessment.term_id,
        Submission.submitted_at <= Enrollment.ended_at,
    )
    of_student = and_(
        Enrollment.student_id == student_id,
        Enrollment.cohort_id == Assessment.cohort_id,
        or_(CURRENT, when_submitted.correlate(Assessment, Enrollment)),
    )
    # The wing of results, which has the cards, is above this one.
    cards, publications = (
        db.Model.metadata.tables[name].alias() for name in ("report_cards", "publications")
    )
    of_card = (
        select(cast(publications.c.batch_id, Text))
        .join(cards, cards.c.publication_id == publications.c.id)
        .where(
            cards.c.student_id == student_id,
            cards.c.term_id == Assessment.term_id,
            cards.c.in_force,
            publications.c.batch_id == any_(Assessment.submitted_batches),
        )
        .correlate_except(cards, publications)
    )
    theirs = (
        select(func.array_agg(cast(Enrollment.batch_id, Text)))
        .where(of_student, Enrollment.batch_id == any_(Assessment.submitted_batches))
        .correlate_except(Enrollment)
        .scalar_subquery()
    )
    is_in_an_arm = exists().where(of_student).correlate_except(Enrollment)
    return case(
        (func.cardinality(Assessment.submitted_batches) == 0, NO_BATCHES),
        (is_in_an_arm, func.coalesce(theirs, func.array(of_card.scalar_subquery(), type_=ARRAY(Text)))),
        else_=cast(Assessment.submitted_batches, ARRAY(Text)),
    )


@judged_before
def holding(assessment_id: UUID, student_id: UUID) -> Query:
    """Select `submitted`: the arms with a submission holding a student's score or absence in a locked assessment."""
    return select(holding_batches(student_id).label("submitted")).where(Assessment.id == assessment_id)


@judged_before
def some_entry(assessment_id: UUID) -> Query:
    """Select a row if a locked assessment has a score or an absence; none if it is empty."""
    entries = (exists().where(model.assessment_id == assessment_id) for model in (GradebookEntry, Absence))
    return select(literal_column("true").label("entered")).where(or_(*entries))


@read_model
def names_of_submissions(
    cohort_subject_id: UUID, term_id: UUID, batch_ids: list[str], reach: Reach | None = None
) -> Query:
    """Select the names of submissions of arms: of subject and term, and of the arms in reach if some are open.

    `arms` is null if these are all of the cohort, or none of them is in reach.
    """
    is_one = Batch.id == one_of(batch_ids)
    is_named = is_one if reach is None else and_(is_one, scopes.arms_in_reach(reach, Batch.id))
    names = (
        select(
            case(
                (
                    ~func.bool_and(is_one),
                    func.string_agg(
                        Batch.name, aggregate_order_by(literal_column("', '"), Batch.name)
                    ).filter(is_named),
                )
            )
        )
        .where(Batch.cohort_id == CohortSubject.cohort_id)
        .correlate(CohortSubject)
        .scalar_subquery()
    )
    return (
        select(Subject.name.label("subject"), Term.display_name.label("term"), names.label("arms"))
        .select_from(CohortSubject)
        .join(Subject, Subject.id == CohortSubject.subject_id)
        .join(Term, Term.id == term_id)
        .where(CohortSubject.id == cohort_subject_id)
    )
