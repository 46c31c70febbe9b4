"""Read models of submissions."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from sqlalchemy import (
    ARRAY,
    FromClause,
    Text,
    Uuid,
    and_,
    case,
    cast,
    func,
    literal,
    literal_column,
    null,
    or_,
    select,
)
from sqlalchemy.dialects.postgresql import JSONB, aggregate_order_by
from sqlalchemy.orm import aliased

from school_service.core.reach import Reach
from school_service.core.read_models import Query, read_model
from school_service.core.records import is_one_of
from school_service.features.audit.models import CREATE, AuditEntry
from school_service.features.classes.models import CohortSubject
from school_service.features.classes.subject_teachers.reads import teachers_in, teachers_of
from school_service.features.people.models import Student
from school_service.features.reach import scopes
from school_service.features.results.figures import rules
from school_service.features.results.figures.roster import members_at_submission
from school_service.features.results.figures.rules import (
    Computed,
    compute,
    one,
    scope_of_batch,
    scope_of_subject,
)
from school_service.features.results.models import BOTH, OF_COHORT, OPEN, PUBLISHED, SUBMITTED, Publication
from school_service.features.school.models import Batch, Classroom, Cohort, Subject, Term
from school_service.features.school.sessions.service import is_term
from school_service.features.scores.models import NOT_DELETED, Assessment, Submission

ENTITY = "submission"
"""What the audit log calls it; the id there is the cohort subject's."""


@read_model
def submissions(batch_id: UUID, term: str, reach: Reach | None = None) -> Query:
    """Read model of SubmissionSchema: of a batch, by the subject's name, where something counts.

    `term` is the id of a term or its name in the batch's session. What is submitted is there in any case.
    """
    found = _by_batch(compute(scope_of_batch(batch_id, term), roster=members_at_submission))
    listed = _of_batches(found).where(found.c.batch == batch_id, _is_listed(found))
    if reach is None:
        return listed
    return listed.where(_in_reach(reach, found), scopes.arms_in_reach(reach, batch_id))


@read_model
def submissions_of_cohort(cohort_id: UUID, term: str, reach: Reach | None = None) -> Query:
    """Read model of SubmissionSchema: of all batches of a cohort, by the subject's name, then by the batch's."""
    scope = scope_of_batch(cohort_id, term).where(Cohort.id == cohort_id)
    found = _by_batch(compute(scope, roster=members_at_submission))
    listed = _of_batches(found).where(_is_listed(found))
    return listed if reach is None else listed.where(_in_reach(reach, found))


def _in_reach(reach: Reach, found: FromClause) -> Any:
    """Whether the submission of a subject and batch is in reach: taught there, or of a cohort looked after."""
    taught = scopes.is_taught_arm(reach, found.c.cohort_subject, found.c.batch)
    return or_(taught, scopes.is_form_cohort_of(reach, found.c.batch))


@read_model(judged=True)
def submission(cohort_subject_id: UUID, term: str, batch_id: UUID | None = None) -> Query:
    """Read model of SubmissionSchema, for one that was judged, whether something counts or not.

    `term` as in `submissions`.

    Without a batch that of all batches together, which is SUBMITTED when each is in which somebody takes the subject.
    """
    found = _by_batch(_of_subject(cohort_subject_id, term))
    if batch_id is None:
        return _of_all(found).where(found.c.cohort_subject == cohort_subject_id)
    return _of_batches(found).where(found.c.cohort_subject == cohort_subject_id, found.c.batch == batch_id)


@read_model(judged=True)
def lock_term(cohort_subject_id: UUID, term: str) -> Query:
    """Lock a term of the session of a cohort subject FOR KEY SHARE: it is not deleted meanwhile."""
    return (
        select(Term.id)
        .join(Cohort, Cohort.session_id == Term.session_id)
        .join(CohortSubject, CohortSubject.cohort_id == Cohort.id)
        .where(CohortSubject.id == cohort_subject_id, is_term(term))
        .with_for_update(read=True, key_share=True, of=Term)
    )


@read_model(judged=True)
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


@read_model(judged=True)
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
def submitting(cohort_subject_id: UUID, term: str, reach: Reach | None = None) -> Query:
    """Select what decides whether results may be submitted, to be read once all is locked; no row without them.

    As JSON: `batches`, those of the cohort by name, each with how many of its students take the subject (`takers`),
    whether anybody does for whom results have to be handed in (`is_taken`), and whether it is `submitted`; `blanks`:
    each assessment that has some, by abbreviation, with the students and their batches. Takers and blanks are of who
    belongs once the subject is handed in. `counting` tells how many assessments count. With a reach, each batch says
    whether the subject is `taught` there by the caller; no row where it is taught nowhere by them.
    """
    computed = _of_subject(cohort_subject_id, term)
    scope = computed.scope
    is_submitted = _submission(scope, cohort_subject_id).exists()
    counted = _takers_of_batch(computed, cohort_subject_id)
    takers = counted.scalar_subquery()
    belonging = counted.where(computed.roster.c.belongs).scalar_subquery()
    taught: tuple[Any, ...] = ()
    if reach is not None:
        taught = ("taught", scopes.is_taught_arm(reach, cohort_subject_id, Batch.id))
    batch = func.json_build_object(
        "id", Batch.id,
        "takers", takers,
        "is_taken", case((_is_begun(scope), takers), else_=belonging) > literal_column("0"),
        "submitted", is_submitted,
        *taught,
    )  # fmt: skip
    batches = (
        select(cast(func.json_agg(aggregate_order_by(batch, Batch.name, Batch.id)), Text))
        .where(Batch.cohort_id == scope.c.cohort_id)
        .correlate(scope)
    )
    judged = select(
        scope.c.cohort_id,
        scope.c.session_id,
        scope.c.term_id,
        batches.scalar_subquery().label("batches"),
        select(func.count()).select_from(computed.counting).scalar_subquery().label("counting"),
        func.coalesce(_blanks(computed).scalar_subquery(), literal("[]")).label("blanks"),
    )
    return judged if reach is None else judged.where(scopes.is_taught(reach, cohort_subject_id))


def _takers_of_batch(computed: Computed, cohort_subject_id: Any) -> Query:
    """Count who takes a subject, of the batch of whichever row there is."""
    taking, roster = rules.takers(computed), computed.roster
    return (
        select(func.count())
        .select_from(taking)
        .join(roster, roster.c.student_id == taking.c.student_id)
        .where(taking.c.cohort_subject_id == cohort_subject_id, roster.c.batch_id == Batch.id)
        .correlate(Batch)
    )


def _blanks(computed: Computed) -> Query:
    """Select all blanks as JSON, or null: by assessment, with the students."""
    counting, roster, blank = computed.counting, computed.roster, rules.blanks(computed)
    student = func.json_build_object(
        "id", Student.id, "admission_number", Student.admission_number, "batch", roster.c.batch_id
    )
    of_assessment = (
        select(
            counting.c.id,
            counting.c.abbreviation,
            func.json_agg(aggregate_order_by(student, Student.admission_number)).label("students"),
        )
        .join(blank, blank.c.assessment_id == counting.c.id)
        .join(Student, Student.id == blank.c.student_id)
        .join(roster, roster.c.student_id == Student.id)
        .group_by(counting.c.id, counting.c.abbreviation)
        .subquery("of_assessment")
    )
    one = func.json_build_object(
        "assessment", of_assessment.c.id,
        "abbreviation", of_assessment.c.abbreviation,
        "students", of_assessment.c.students,
    )  # fmt: skip
    in_order = aggregate_order_by(one, of_assessment.c.abbreviation, of_assessment.c.id)
    return select(cast(func.json_agg(in_order), Text))


@read_model
def reopening(cohort_subject_id: UUID, term: str, batch_id: UUID | None = None) -> Query:
    """Select what decides whether results may be reopened, to be read once all is locked; no row without them.

    As JSON: `batches`, those of the cohort, each with whether it is `submitted`; `published`, the names of those whose
    published results of the term rest on what is to be reopened: with positions in the cohort those of every batch,
    else their own. `once` tells whether it was submitted before, by the audit log.
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
    is_submitted = _submission(scope, cohort_subject_id).exists()
    batch = func.json_build_object("id", Batch.id, "submitted", is_submitted)
    batches_of = (
        select(cast(func.json_agg(aggregate_order_by(batch, Batch.id)), Text))
        .where(Batch.cohort_id == scope.c.cohort_id)
        .correlate(scope)
    )
    return select(
        scope.c.term_id,
        batches_of.scalar_subquery().label("batches"),
        once.exists().label("once"),
        func.coalesce(published.scalar_subquery(), literal("[]")).label("published"),
    )


def _submission(scope: Any, cohort_subject_id: Any) -> Query:
    """Select the submission of a batch, of whichever row there is."""
    return (
        select(Submission.id)
        .where(
            Submission.cohort_subject_id == cohort_subject_id,
            Submission.batch_id == Batch.id,
            Submission.term_id == scope.c.term_id,
        )
        .correlate(scope, Batch)
    )


def _is_begun(scope: Any) -> Any:
    """Tell whether a subject is submitted of the batch of whichever row there is: then another closes it anew."""
    any_of_batch = aliased(Submission)
    return (
        select(any_of_batch.id)
        .where(any_of_batch.batch_id == Batch.id, any_of_batch.term_id == scope.c.term_id)
        .correlate(scope, Batch)
        .exists()
    )


def _of_subject(cohort_subject_id: Any, term: Any) -> Computed:
    return compute(
        scope_of_subject(cohort_subject_id, term),
        cohort_subject_id=cohort_subject_id,
        roster=members_at_submission,
    )


def _by_batch(computed: Computed) -> FromClause:
    """How far the subjects of the scope's cohort are, a row for each of them and each batch.

    `assessments` is null where nothing counts. Of what is not submitted in a batch, while another subject is, takers
    and blanks are of who belongs once it is handed in.
    """
    scope, roster = computed.scope, computed.roster
    is_open = and_(Submission.id.is_(None), _is_begun(scope))

    def told(number: FromClause, name: str) -> Any:
        return func.coalesce(case((is_open, number.c[name]), else_=number.c.belonging), none).label(name)

    def of_row(found: FromClause) -> Any:
        return and_(found.c.cohort_subject_id == CohortSubject.id, found.c.batch_id == Batch.id)

    subject = computed.counting.c.cohort_subject_id
    counting = (
        select(subject, func.count().label("assessments")).group_by(subject).subquery("number_of_counting")
    )
    takers = _number(rules.takers(computed), roster, "takers")
    blanks = _number(rules.blanks(computed), roster, "blanks")
    none: Any = literal_column("0")
    return (
        select(
            CohortSubject.id.label("cohort_subject"),
            Subject.id.label("base"),
            Subject.name.label("subject"),
            Batch.id.label("batch"),
            Batch.name.label("batch_name"),
            scope.c.term_id,
            scope.c.term,
            told(takers, "takers"),
            counting.c.assessments,
            told(blanks, "blanks"),
            Submission.submitted_at,
            Submission.submitted_by,
            Submission.submitted_by_name,
            teachers_in(one(scope, "cohort_id"), CohortSubject.id, Batch.id).label("teachers"),
        )
        .select_from(scope)
        .join(CohortSubject, CohortSubject.cohort_id == scope.c.cohort_id)
        .join(Subject, Subject.id == CohortSubject.subject_id)
        .join(Batch, Batch.cohort_id == scope.c.cohort_id)
        .outerjoin(counting, counting.c.cohort_subject_id == CohortSubject.id)
        .outerjoin(takers, of_row(takers))
        .outerjoin(blanks, of_row(blanks))
        .outerjoin(
            Submission,
            and_(
                Submission.cohort_subject_id == CohortSubject.id,
                Submission.batch_id == Batch.id,
                Submission.term_id == scope.c.term_id,
            ),
        )
        .subquery("by_batch")
    )


def _number(of: FromClause, roster: FromClause, name: str) -> FromClause:
    """Count by subject and batch what there is of students, and what there is of those who belong by now."""
    whose = (of.c.cohort_subject_id, roster.c.batch_id)
    return (
        select(*whose, func.count().label(name), func.count().filter(roster.c.belongs).label("belonging"))
        .join(roster, roster.c.student_id == of.c.student_id)
        .group_by(*whose)
        .subquery(f"number_of_{name}")
    )


def _is_listed(found: FromClause) -> Any:
    return or_(found.c.assessments.is_not(None), found.c.submitted_at.is_not(None))


def _of_batches(found: FromClause) -> Query:
    """Select the submissions of subjects and batches."""
    state = case((found.c.submitted_at.is_(None), OPEN), else_=SUBMITTED)
    return select(
        *_subject(found),
        found.c.batch,
        found.c.batch_name,
        _term(found),
        state.label("state"),
        found.c.takers,
        func.coalesce(found.c.assessments, literal_column("0")).label("assessments"),
        found.c.blanks,
        found.c.submitted_at,
        found.c.submitted_by,
        found.c.submitted_by_name,
        found.c.teachers,
    ).order_by(found.c.subject, found.c.cohort_subject, found.c.batch_name, found.c.batch)


def _of_all(found: FromClause) -> Query:
    """Select the submissions of subjects, all batches together: submitted as the last one was."""
    at = found.c.submitted_at
    is_done = and_(
        func.count(at) > literal_column("0"),
        func.bool_and(or_(at.is_not(None), found.c.takers == literal_column("0"))),
    )

    def of_last(column: Any) -> Any:
        last_first = aggregate_order_by(column, at.desc().nulls_last(), found.c.batch)
        return case((is_done, func.array_agg(last_first, type_=ARRAY(column.type))[1])).label(column.name)

    of_subject = (*_subject(found), found.c.term_id, found.c.term, found.c.assessments)
    return select(
        *_subject(found),
        cast(null(), Uuid).label("batch"),
        cast(null(), Text).label("batch_name"),
        _term(found),
        case((is_done, SUBMITTED), else_=OPEN).label("state"),
        func.sum(found.c.takers).label("takers"),
        func.coalesce(found.c.assessments, literal_column("0")).label("assessments"),
        func.sum(found.c.blanks).label("blanks"),
        of_last(at),
        of_last(found.c.submitted_by),
        of_last(found.c.submitted_by_name),
        teachers_of(found.c.cohort_subject).label("teachers"),
    ).group_by(*of_subject)


def _subject(found: FromClause) -> tuple[Any, ...]:
    return found.c.cohort_subject, found.c.base, found.c.subject


def _term(found: FromClause) -> Any:
    return func.json_build_object("id", found.c.term_id, "term", found.c.term).label("term")
