"""Read models of submissions."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from sqlalchemy import FromClause, Text, Uuid, and_, cast, exists, func, literal, null, or_, select
from sqlalchemy.dialects.postgresql import JSONB, aggregate_order_by
from sqlalchemy.orm import aliased

from school_service.core.narrowing import judged_before
from school_service.core.reach import Reach
from school_service.core.read_models import Query, json_object, read_model
from school_service.core.records import is_one_of
from school_service.features.audit.models import CREATE, AuditEntry
from school_service.features.classes.models import CohortSubject
from school_service.features.classes.subject_teachers.reads import teachers_of
from school_service.features.reach import scopes
from school_service.features.results.computing.class_term.entered import ClassTerm, class_term, submissions
from school_service.features.results.computing.class_term.roster import members_at_submission
from school_service.features.results.computing.class_term.scopes import (
    scope_of_batch,
    scope_of_subject,
    value_of,
)
from school_service.features.results.models import PUBLISHED, Publication
from school_service.features.school.models import (
    AcademicSession,
    Batch,
    Classroom,
    Cohort,
    Term,
    TermCalendar,
)
from school_service.features.school.sessions.service import has_today, is_term
from school_service.features.scores.models import BOTH, OF_COHORT, Submission

ENTITY = "submission"
"""The name in the audit log; the id there is the cohort subject's."""


@read_model
def of_class(batch_id: UUID, term: str, cohort: bool | None = None, reach: Reach | None = None) -> Query:
    """Select the contents of the submissions of a batch or, for a `cohort`'s id, of all of its batches.

    `term` is the id of a term or its name in the batch's session. With a reach, `reached` are the pairs of a subject
    and a batch taught, or of a cohort looked after.
    """
    scope = scope_of_batch(batch_id, term)
    of = (
        _class_term(scope, batch_id=batch_id)
        if cohort is None
        else _class_term(scope.where(Cohort.id == batch_id))
    )
    reached: Any = null()
    if reach is not None:
        is_reached = or_(
            scopes.is_taught_arm(reach, CohortSubject.id, Batch.id), scopes.is_form_cohort_of(reach, Batch.id)
        )
        if cohort is None:
            is_reached = and_(is_reached, scopes.arms_in_reach(reach, batch_id))
        reached = (
            select(func.json_agg(func.json_build_array(CohortSubject.id, Batch.id)))
            .select_from(CohortSubject)
            .join(Batch, Batch.cohort_id == CohortSubject.cohort_id)
            .where(CohortSubject.cohort_id == value_of(of.scope, "cohort_id"), is_reached)
            .scalar_subquery()
        )
    return _handing(of, reached=reached)


@read_model
def classes(term: str | None = None, reach: Reach | None = None) -> Query:
    """Select the classes of the current session, by name, each with a term: `cohort`, `classroom` and `term`, an id.

    It is the term given, by id or name, else the one with the school's day by its calendar; without any, each term.
    """
    query = (
        select(Cohort.id.label("cohort"), Classroom.name.label("classroom"), Term.id.label("term"))
        .join(AcademicSession, AcademicSession.id == Cohort.session_id)
        .join(Classroom, Classroom.id == Cohort.classroom_id)
        .join(Term, Term.session_id == Cohort.session_id)
        .where(AcademicSession.current)
        .order_by(Classroom.name, Cohort.id, Term.term)
    )
    if reach is not None:
        query = query.where(scopes.cohorts_in_reach(reach, Cohort.id))
    if term is not None:
        return query.where(is_term(term))
    of_session = aliased(Term)
    now = (
        select(TermCalendar.term_id)
        .join(of_session, of_session.id == TermCalendar.term_id)
        .where(of_session.session_id == AcademicSession.id, has_today())
        .correlate(AcademicSession)
    )
    return query.where(or_(Term.id.in_(now), ~now.exists()))


@judged_before
def of_subject(cohort_subject_id: UUID, term: str) -> Query:
    """Select the contents of the submissions of a cohort subject, judged before; `teachers` are of all arms."""
    of = _class_term(scope_of_subject(cohort_subject_id, term), cohort_subject_id)
    return _handing(of, teachers=teachers_of(cast(cohort_subject_id, Uuid)))


def _class_term(scope: Query, cohort_subject_id: Any = None, *, batch_id: Any = None) -> ClassTerm:
    """Load a class, or a batch of it alone: blanks need no positions."""

    def roster(cohort_id: Any, term_id: Any) -> FromClause:
        members = members_at_submission(cohort_id, term_id)
        return (
            members if batch_id is None else select(members).where(members.c.batch_id == batch_id).subquery()
        )

    return class_term(scope, cohort_subject_id=cohort_subject_id, roster=roster, session=False)


def _handing(of: ClassTerm, condition: Any = None, taught: tuple[Any, ...] = (), **more: Any) -> Query:
    """Select columns for `answers.Handing`: the class, its batches by name, each as `taught` says, and submissions."""
    arm = func.json_build_array(Batch.id, Batch.name, *taught)
    arms = select(func.json_agg(aggregate_order_by(arm, Batch.name, Batch.id))).where(
        Batch.cohort_id == value_of(of.scope, "cohort_id")
    )
    return select(
        *of.columns(condition),
        arms.scalar_subquery().label("arms"),
        submissions(of.scope).label("submissions"),
        *(column.label(name) for name, column in more.items()),
    )


@judged_before
def lock_term(cohort_subject_id: UUID, term: str) -> Query:
    """Lock a term of the session of a cohort subject FOR KEY SHARE: it is not deleted meanwhile."""
    return (
        select(Term.id)
        .join(Cohort, Cohort.session_id == Term.session_id)
        .join(CohortSubject, CohortSubject.cohort_id == Cohort.id)
        .where(CohortSubject.id == cohort_subject_id, is_term(term))
        .with_for_update(read=True, key_share=True, of=Term)
    )


@judged_before
def lock_subject(cohort_subject_id: UUID) -> Query:
    """Lock the cohort of a cohort subject, and then this, FOR NO KEY UPDATE.

    So nobody comes, publishes the cohort's results or adds an assessment meanwhile.
    """
    return (
        select(Cohort.id)
        .join(CohortSubject, CohortSubject.cohort_id == Cohort.id)
        .where(CohortSubject.id == cohort_subject_id)
        .with_for_update(key_share=True, of=(Cohort, CohortSubject))
    )


@read_model
def submitting(cohort_subject_id: UUID, term: str, reach: Reach | None = None) -> Query:
    """Select the facts for a submission of results, to be read once all is locked.

    With a reach, each of the `arms` says whether the subject is taught there by the caller; `entered` is null if it is
    taught nowhere by them.
    """
    of = _class_term(scope_of_subject(cohort_subject_id, term), cohort_subject_id)
    if reach is None:
        return _handing(of)
    taught = (scopes.is_taught_arm(reach, cohort_subject_id, Batch.id),)
    return _handing(of, scopes.is_taught(reach, cohort_subject_id), taught)


@read_model
def reopening(cohort_subject_id: UUID, term: str, batch_id: UUID | None = None) -> Query:
    """Select the facts for a reopening of results, to be read once all is locked; no row without them.

    As JSON: `batches` of the cohort, each with whether it is `submitted`; `published`, the names of those with
    published results of the term that rest on the results to reopen: with positions in the cohort on those of every
    batch, else on their own. `once` tells whether it was submitted before, by the audit log.
    """
    scope = scope_of_subject(cohort_subject_id, term).cte("scope")
    term_id, name = value_of(scope, "term_id"), Classroom.name + " " + Batch.name
    published = (
        select(cast(func.json_agg(aggregate_order_by(name, Batch.name)), Text))
        .select_from(Publication)
        .join(Batch, Batch.id == Publication.batch_id)
        .join(Cohort, Cohort.id == Batch.cohort_id)
        .join(Classroom, Classroom.id == Cohort.classroom_id)
        .where(
            Publication.cohort_id == value_of(scope, "cohort_id"),
            Publication.term_id == term_id,
            Publication.state == PUBLISHED,
        )
    )
    once = exists().where(
        AuditEntry.entity_id == cohort_subject_id,
        AuditEntry.entity == ENTITY,
        AuditEntry.action == CREATE,
        AuditEntry.new["term"].astext == cast(term_id, Text),
    )
    if batch_id is not None:
        positions = func.coalesce(Publication.rules["positions"].astext, BOTH)
        published = published.where(or_(Publication.batch_id == batch_id, is_one_of(positions, OF_COHORT)))
        batches = AuditEntry.new["batches"]
        once = once.where(
            or_(
                # It was all of them.
                batches.astext.is_(None),
                batches.contains(func.jsonb_build_array(cast(batch_id, Text), type_=JSONB)),
            )
        )
    is_submitted = exists().where(
        Submission.cohort_subject_id == cohort_subject_id,
        Submission.batch_id == Batch.id,
        Submission.term_id == term_id,
    )
    batch = json_object(id=Batch.id, submitted=is_submitted)
    batches_of = select(cast(func.json_agg(aggregate_order_by(batch, Batch.id)), Text)).where(
        Batch.cohort_id == value_of(scope, "cohort_id")
    )
    return select(
        scope.c.term_id,
        batches_of.scalar_subquery().label("batches"),
        once.label("once"),
        func.coalesce(published.scalar_subquery(), literal("[]")).label("published"),
    )
