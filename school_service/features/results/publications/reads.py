"""Read models of publications."""

from __future__ import annotations

from functools import partial
from typing import Any
from uuid import UUID

from sqlalchemy import (
    ARRAY,
    JSON,
    Text,
    Uuid,
    and_,
    any_,
    case,
    cast,
    column,
    func,
    literal,
    literal_column,
    or_,
    select,
)
from sqlalchemy.dialects.postgresql import JSONB, aggregate_order_by
from sqlalchemy.orm import aliased

from school_service.core.reach import Reach
from school_service.core.read_models import Query, read_model
from school_service.core.records import is_one_of, once_locked
from school_service.features.classes.models import CohortSubject
from school_service.features.people.models import WITHDRAWN, Student
from school_service.features.reach import scopes
from school_service.features.results.figures.frozen import name_order
from school_service.features.results.figures.roster import belongs_without_card, members
from school_service.features.results.figures.rules import (
    Computed,
    blanks,
    compute,
    counts,
    one,
    scope_of_batch,
    takers,
)
from school_service.features.results.models import (
    DEFAULTS,
    IN_FORCE,
    LIVE,
    OF_COHORT,
    PUBLISHED,
    LeftOut,
    Promotion,
    PromotionBatch,
    PromotionDecision,
    Publication,
    ReportCard,
    ResultSettings,
)
from school_service.features.school.cohorts.reads import session_by_id_or_name
from school_service.features.school.models import (
    CURRENT,
    AcademicSession,
    Batch,
    Classroom,
    Cohort,
    Enrollment,
    Subject,
    Term,
)
from school_service.features.school.sessions.service import is_term
from school_service.features.scores.models import NOT_DELETED, Assessment, Submission


@read_model
def publications(
    batch: UUID | None = None,
    cohort: UUID | None = None,
    term: str | None = None,
    session: str | None = None,
    reach: Reach | None = None,
) -> Query:
    """Read model of PublicationSchema, the newest first: all, or those that fit every filter.

    `term` is the id of a term or the name of one, `session` the id or the name of one.
    """
    of_publication = select(ReportCard.id).where(ReportCard.publication_id == Publication.id)
    found = (
        select(
            Publication.id,
            Publication.batch_id.label("batch"),
            _then("batch_name", Batch.name).label("batch_name"),
            Publication.cohort_id.label("cohort"),
            func.json_build_object(
                "id", AcademicSession.id, "name", _then("session_name", AcademicSession.name)
            ).label("session"),
            func.json_build_object("id", Term.id, "term", Term.term).label("term"),
            Publication.version,
            Publication.state,
            Publication.published_at,
            Publication.published_by,
            Publication.published_by_name,
            Publication.reopened_at,
            Publication.reopened_by_name,
            Publication.reason,
            of_publication.with_only_columns(func.count()).scalar_subquery().label("students"),
            of_publication.with_only_columns(func.count())
            .where(ReportCard.changed)
            .scalar_subquery()
            .label("changed"),
            of_publication.with_only_columns(func.count())
            .where(ReportCard.class_figures_changed)
            .scalar_subquery()
            .label("class_figures_changed"),
            func.coalesce(Publication.rules["left"], literal_column("'[]'::jsonb")).label("left"),
        )
        .join(Batch, Batch.id == Publication.batch_id)
        .join(AcademicSession, AcademicSession.id == Publication.session_id)
        .join(Term, Term.id == Publication.term_id)
        .order_by(Publication.published_at.desc(), Publication.id.desc())
    )
    if reach is not None:
        found = found.where(scopes.is_form_batch(reach, Publication.batch_id))
    if batch is not None:
        found = found.where(Publication.batch_id == batch)
    if cohort is not None:
        found = found.where(Publication.cohort_id == cohort)
    if term is not None:
        found = found.where(is_term(term))
    if session is not None:
        found = found.where(Publication.session_id == session_by_id_or_name(session).scalar_subquery())
    return found


def _then(name: str, now: Any) -> Any:
    """A name as it was when results were published; as it is now in those that do not say it."""
    return func.coalesce(Publication.rules[name].astext, now)


@read_model
def publication(publication_id: UUID, reach: Reach | None = None) -> Query:
    """Read model of PublicationSchema, for one."""
    return publications.query(reach=reach).where(Publication.id == publication_id)


@read_model
def published(publication_ids: list[UUID]) -> Query:
    """Read model of PublicationSchema, for those made at once, by the batch's name."""
    is_one = Publication.id == any_(cast(publication_ids, ARRAY(Uuid)))
    return publications.query().where(is_one).order_by(None).order_by(Batch.name, Publication.id)


@read_model
def changes(publication_id: UUID, reach: Reach | None = None) -> Query:
    """Read model of ChangedCardSchema: the cards of a publication that differ from those before, by name."""
    earlier, before = aliased(Publication), aliased(ReportCard)
    student = ReportCard.card["student"]
    figures = func.json_build_object("average", ReportCard.average, "position", ReportCard.position)
    figures_before = func.json_build_object("average", before.average, "position", before.position)
    found = (
        select(
            student.op("-")("dob").label("student"),
            case((before.id.is_not(None), figures_before)).label("before"),
            figures.label("after"),
        )
        .select_from(ReportCard)
        .join(Publication, Publication.id == ReportCard.publication_id)
        .outerjoin(
            earlier,
            and_(
                earlier.batch_id == Publication.batch_id,
                earlier.term_id == Publication.term_id,
                earlier.version == Publication.version - 1,
            ),
        )
        .outerjoin(
            before, and_(before.publication_id == earlier.id, before.student_id == ReportCard.student_id)
        )
        .where(ReportCard.publication_id == publication_id, ReportCard.changed)
        .order_by(*name_order(student))
    )
    return found if reach is None else found.where(scopes.is_form_batch(reach, Publication.batch_id))


@read_model
def cards_of(publication_id: UUID, reach: Reach | None = None) -> Query:
    """Read model of PublishedCardSchema: the cards of a publication, by name."""
    student = ReportCard.card["student"]
    found = (
        select(
            student.op("-")("dob").label("student"),
            ReportCard.average,
            ReportCard.position,
            Publication.version,
        )
        .join(Publication, Publication.id == ReportCard.publication_id)
        .where(ReportCard.publication_id == publication_id)
        .order_by(*name_order(student))
    )
    return found if reach is None else found.where(scopes.is_form_batch(reach, Publication.batch_id))


# Publishing


@read_model
def lock_cohorts(batch_ids: list[UUID], term: str | None = None) -> Query:
    """Lock the cohorts of batches FOR NO KEY UPDATE, in order of id: nobody comes, goes or reopens a subject.

    Before, a term of their sessions FOR KEY SHARE, where one is given: it is not deleted meanwhile.
    """
    cohorts = select(Batch.cohort_id).where(Batch.id == any_(cast(batch_ids, ARRAY(Uuid))))
    locking = select(Cohort.id).where(Cohort.id.in_(cohorts)).order_by(Cohort.id)
    if term is not None:
        sessions = select(Cohort.session_id).where(Cohort.id.in_(cohorts))
        terms = select(Term.id).where(Term.session_id.in_(sessions), is_term(term)).order_by(Term.id)
        locking = locking.where(once_locked(terms.with_for_update(read=True, key_share=True)))
    return locking.with_for_update(key_share=True)


@read_model
def lock_students(batch_ids: list[UUID], others: list[UUID]) -> Query:
    """Lock the students of the batches' cohorts FOR SHARE, in order of id: nobody takes an elective up or withdraws.

    They are those who are enrolled there, those with a card of it in force, and `others`.
    """
    cohorts = select(Batch.cohort_id).where(Batch.id == any_(cast(batch_ids, ARRAY(Uuid))))
    students = select(Enrollment.student_id).where(Enrollment.cohort_id.in_(cohorts), CURRENT)
    with_card = (
        select(ReportCard.student_id)
        .join(Publication, Publication.id == ReportCard.publication_id)
        .where(Publication.cohort_id.in_(cohorts), ReportCard.in_force)
    )
    return (
        select(Student.id)
        .where(or_(Student.id.in_(students.union(with_card)), Student.id == any_(cast(others, ARRAY(Uuid)))))
        .order_by(Student.id)
        .with_for_update(read=True)
    )


@read_model
def publishing(
    batch_id: UUID,
    batch_ids: list[UUID],
    term: str,
    leave_out: list[UUID] | None = None,
    take_in: list[UUID] | None = None,
) -> Query:
    """Select what decides whether batches may be published, to be read once all is locked.

    `batch_id` is the first of them, whose cohort all are to be of; no row without it or the term. `leave_out` and
    `take_in` are students who belong to them no more, and again. The lists are JSON:

    `batches`   those that there are, each with the `state` of the publication in force and the `latest` version
    `roster`    whoever belongs to a batch of the cohort: the student's id, the batch's, and that of the batch in which
                they are enrolled, or null
    `leaving`   who of `leave_out` belongs to the batches: the student's id and the batch's
    `coming`    who of `take_in` was left out of them and belongs to them now, likewise
    `open`      the names of subjects in which something counts, that somebody takes in an arm whose results are not
                submitted, each with these arms where others are
    `incomplete`  subjects with the students who have a blank
    `earlier`   the results of earlier terms that have to be published first, with the students

    `has_later` tells whether results of a later term of the session are published: then `changing` has to be asked.

    Submitted and complete have to be the results of the batches alone, unless positions in the cohort are shown: then
    those of every arm.
    """
    computed = _to_be(batch_id, batch_ids, term, leave_out, take_in)
    scope, roster = computed.scope, computed.roster
    requested = Batch.id == any_(cast(batch_ids, ARRAY(Uuid)))
    publication = and_(Publication.batch_id == Batch.id, Publication.term_id == scope.c.term_id)
    in_force = select(Publication.state).where(publication, IN_FORCE)
    latest = select(func.max(Publication.version)).where(publication)
    batch = func.json_build_object(
        "id", Batch.id,
        "name", Classroom.name + " " + Batch.name,
        "arm", Batch.name,
        "cohort", Batch.cohort_id,
        "state", in_force.correlate(Batch, scope).scalar_subquery(),
        "latest", func.coalesce(latest.correlate(Batch, scope).scalar_subquery(), 0),
    )  # fmt: skip
    batches = (
        select(_array(aggregate_order_by(batch, Batch.name, Batch.id)))
        .select_from(Batch)
        .join(Cohort, Cohort.id == Batch.cohort_id)
        .join(Classroom, Classroom.id == Cohort.classroom_id)
        .where(requested)
        .correlate(scope)
    )
    rests_on = or_(requested, is_one_of(_shown_positions(), OF_COHORT))
    is_counting = select(computed.counting.c.id).where(
        computed.counting.c.cohort_subject_id == CohortSubject.id
    )
    taking = takers(computed)
    of_arms = (
        select(
            CohortSubject.id,
            Subject.name,
            func.json_agg(aggregate_order_by(Batch.name, Batch.name))
            .filter(Submission.id.is_(None))
            .label("arms"),
            func.count(Submission.id).label("submitted"),
        )
        .select_from(CohortSubject)
        .join(Subject, Subject.id == CohortSubject.subject_id)
        .join(Batch, Batch.cohort_id == CohortSubject.cohort_id)
        .outerjoin(
            Submission,
            and_(
                Submission.cohort_subject_id == CohortSubject.id,
                Submission.batch_id == Batch.id,
                Submission.term_id == one(scope, "term_id"),
            ),
        )
        .where(
            CohortSubject.cohort_id == one(scope, "cohort_id"),
            rests_on,
            is_counting.exists(),
            # Where an arm is submitted all of it is.
            case(
                (Submission.id.is_not(None), _takers_of_arm(taking, roster).exists()),
                else_=_takers_of_arm(taking, roster).where(~_is_held(scope, taking.c.student_id)).exists(),
            ),
        )
        .group_by(CohortSubject.id, Subject.name)
        .subquery("of_arms")
    )
    lacking = func.json_build_object(
        "subject", of_arms.c.name, "arms", case((of_arms.c.submitted > 0, of_arms.c.arms))
    )
    not_submitted = select(_array(aggregate_order_by(lacking, of_arms.c.name, of_arms.c.id))).where(
        of_arms.c.arms.is_not(None)
    )
    blank = _with_blanks(computed)
    incomplete = (
        select(
            Subject.name.label("subject"),
            func.json_agg(aggregate_order_by(Student.admission_number, Student.admission_number)).label(
                "students"
            ),
        )
        .select_from(blank)
        .join(CohortSubject, CohortSubject.id == blank.c.cohort_subject_id)
        .join(Subject, Subject.id == CohortSubject.subject_id)
        .join(Student, Student.id == blank.c.student_id)
        .join(roster, roster.c.student_id == Student.id)
        .join(Batch, Batch.id == roster.c.batch_id)
        .where(rests_on)
        .group_by(Subject.name, CohortSubject.id)
        .subquery("incomplete")
    )
    of_subject = func.json_build_object("subject", incomplete.c.subject, "students", incomplete.c.students)
    member = func.json_build_array(roster.c.student_id, roster.c.batch_id, roster.c.enrolled_in)
    return select(
        scope.c.cohort_id,
        scope.c.session_id,
        scope.c.session_name,
        scope.c.term_id,
        scope.c.term,
        batches.scalar_subquery().label("batches"),
        select(_array(member)).select_from(roster).scalar_subquery().label("roster"),
        (_NOBODY if leave_out is None else _leaving(computed, batch_ids, leave_out)).label("leaving"),
        (_NOBODY if take_in is None else _coming(computed, batch_ids, take_in)).label("coming"),
        not_submitted.scalar_subquery().label("open"),
        select(_array(aggregate_order_by(of_subject, incomplete.c.subject)))
        .scalar_subquery()
        .label("incomplete"),
        _earlier(computed, batch_ids).label("earlier"),
        _has_later(scope).label("has_later"),
    )


@read_model
def changing(
    batch_id: UUID,
    batch_ids: list[UUID],
    term: str,
    leave_out: list[UUID] | None = None,
    take_in: list[UUID] | None = None,
) -> Query:
    """Select the published results of later terms that would change, with the students: `later`, JSON.

    The arguments are those of `publishing`, of which this is a part that needs all figures, and is seldom asked for.
    """
    computed = _to_be(batch_id, batch_ids, term, leave_out, take_in)
    return select(_later(computed, batch_ids, leave_out).label("later")).select_from(computed.scope)


def _to_be(batch_id: Any, batch_ids: Any, term: Any, leave_out: Any, take_in: Any) -> Computed:
    """Compute the results of a batch's cohort, of whoever belongs to it once batches are published."""
    return compute(
        scope_of_batch(batch_id, term),
        roster=partial(members, left_out=leave_out, taken_in=take_in, batch_ids=batch_ids),
    )


def _has_later(scope: Any) -> Any:
    """Tell whether results of a later term of the session are published, of whichever class."""
    return (
        select(Publication.id)
        .join(Term, Term.id == Publication.term_id)
        .where(
            Term.session_id == scope.c.session_id, Term.term > scope.c.term, Publication.state == PUBLISHED
        )
        .correlate(scope)
        .exists()
    )


def _leaving(computed: Computed, batch_ids: Any, leave_out: Any) -> Any:
    """Who of `leave_out` belongs to the batches: arrays of the student's id and the batch's."""
    belonging = members(one(computed.scope, "cohort_id"), one(computed.scope, "term_id"))
    pair = func.json_build_array(belonging.c.student_id, belonging.c.batch_id)
    return (
        select(_array(pair))
        .select_from(belonging)
        .where(
            belonging.c.student_id == any_(cast(leave_out, ARRAY(Uuid))),
            belonging.c.batch_id == any_(cast(batch_ids, ARRAY(Uuid))),
        )
        .scalar_subquery()
    )


def _coming(computed: Computed, batch_ids: Any, take_in: Any) -> Any:
    """The students of `take_in` who were left out of the batches and belong to them now."""
    roster = computed.roster
    was_left_out = and_(
        LeftOut.student_id == roster.c.student_id,
        LeftOut.batch_id == roster.c.batch_id,
        LeftOut.term_id == one(computed.scope, "term_id"),
    )
    return (
        select(_array(func.json_build_array(roster.c.student_id, roster.c.batch_id)))
        .select_from(roster)
        .join(LeftOut, was_left_out)
        .where(
            roster.c.student_id == any_(cast(take_in, ARRAY(Uuid))),
            roster.c.batch_id == any_(cast(batch_ids, ARRAY(Uuid))),
        )
        .scalar_subquery()
    )


def _shown_positions() -> Any:
    """Which positions cards show, by the school's settings."""
    return func.coalesce(select(ResultSettings.positions).scalar_subquery(), DEFAULTS["positions"])


def _takers_of_arm(taking: Any, roster: Any) -> Query:
    """Select who of a row's batch takes the subject of the row."""
    return (
        select(taking.c.student_id)
        .join(roster, roster.c.student_id == taking.c.student_id)
        .where(taking.c.cohort_subject_id == CohortSubject.id, roster.c.batch_id == Batch.id)
        .correlate(CohortSubject, Batch)
    )


def _is_held(scope: Any, student_id: Any) -> Any:
    """Tell whether the submission of an arm that a student is or was in holds what they have in the subject of a row.

    So who has come from an arm that was submitted before is submitted with it.
    """
    with_them, of_any = aliased(Submission), aliased(Submission)
    theirs = (
        select(Enrollment.id)
        .join(with_them, with_them.batch_id == Enrollment.batch_id)
        .where(
            with_them.cohort_subject_id == CohortSubject.id,
            with_them.term_id == one(scope, "term_id"),
            Enrollment.student_id == student_id,
            or_(CURRENT, with_them.submitted_at <= Enrollment.ended_at),
        )
        .correlate_except(Enrollment, with_them)
    )
    enrolled = (
        select(Enrollment.id)
        .where(Enrollment.student_id == student_id, Enrollment.cohort_id == one(scope, "cohort_id"), CURRENT)
        .correlate_except(Enrollment)
    )
    any_arm = (
        select(of_any.id)
        .where(of_any.cohort_subject_id == CohortSubject.id, of_any.term_id == one(scope, "term_id"))
        .correlate_except(of_any)
    )
    return or_(theirs.exists(), and_(~enrolled.exists(), any_arm.exists()))


def _with_blanks(computed: Computed) -> Any:
    """Who has a blank in which cohort subject, once each."""
    found = blanks(computed)
    return select(found.c.cohort_subject_id, found.c.student_id).distinct().subquery("with_blanks")


def _earlier(computed: Computed, batch_ids: Any) -> Any:
    """Name the results of earlier terms that have to be published first: of batches to which a member belongs there.

    They have no card of a term in force in which something counts in the cohort. Each with the admission numbers.
    """
    scope, roster = computed.scope, computed.roster
    has_counting = (
        select(Assessment.id)
        .join(computed.rules, literal(True))
        .where(
            Assessment.cohort_id == one(scope, "cohort_id"),
            Assessment.term_id == Term.id,
            NOT_DELETED,
            *counts(computed.rules),
        )
    )
    found = (
        select(Term.display_name, Term.term, Batch.id, Student.admission_number)
        .select_from(Term)
        .join(Enrollment, and_(Enrollment.session_id == Term.session_id, CURRENT))
        .join(roster, roster.c.student_id == Enrollment.student_id)
        .join(Student, and_(Student.id == Enrollment.student_id, Student.status != WITHDRAWN))
        .join(Batch, Batch.id == Enrollment.batch_id)
        .where(
            Term.session_id == one(scope, "session_id"),
            # The terms' own order is that of the alphabet: FIRST, SECOND, THIRD.
            Term.term < one(scope, "term"),
            has_counting.correlate(Term).exists(),
            roster.c.batch_id == any_(cast(batch_ids, ARRAY(Uuid))),
            belongs_without_card(Term.id),
        )
    )
    return _results_with_students(found)


def _later(computed: Computed, batch_ids: Any, leave_out: Any) -> Any:
    """Name published results of later terms whose session figures would change, each with the admission numbers.

    They rest on the percents of the graded subjects of this term, which for some students are others than on the card
    in force, if there is one.
    """
    scope, roster, subjects = computed.scope, computed.roster, computed.subjects
    new = (
        select(
            subjects.c.student_id,
            func.jsonb_object_agg(CohortSubject.subject_id, subjects.c.percent, type_=JSONB).label(
                "percents"
            ),
        )
        .join(CohortSubject, CohortSubject.id == subjects.c.cohort_subject_id)
        .where(subjects.c.percent.is_not(None))
        .group_by(subjects.c.student_id)
        .cte("new_percents")
        .prefix_with("MATERIALIZED")
    )
    card, later = aliased(ReportCard), aliased(ReportCard)
    listed = (
        func.jsonb_array_elements(card.card["subjects"])
        .table_valued(column("subject", JSONB))
        .render_derived(name="listed")
    )
    percent = listed.c.subject["percent"]
    old = (
        select(func.jsonb_object_agg(listed.c.subject["subject"]["base"].astext, percent, type_=JSONB))
        .select_from(card)
        .join(listed, literal(True))
        .where(
            card.student_id == later.student_id,
            card.term_id == one(scope, "term_id"),
            card.in_force,
            percent.astext.is_not(None),
        )
        .correlate(later)
        .scalar_subquery()
    )
    is_requested = roster.c.batch_id == any_(cast(batch_ids, ARRAY(Uuid)))
    concerned: Any = later.student_id.in_(select(roster.c.student_id).where(is_requested))
    if leave_out is not None:
        concerned = or_(concerned, later.student_id == any_(cast(leave_out, ARRAY(Uuid))))
    found = (
        select(Term.display_name, Term.term, Publication.batch_id.label("id"), Student.admission_number)
        .select_from(Term)
        .join(Publication, and_(Publication.term_id == Term.id, Publication.state == PUBLISHED))
        .join(later, and_(later.publication_id == Publication.id, later.in_force))
        .join(Student, Student.id == later.student_id)
        .where(
            Term.session_id == one(scope, "session_id"),
            Term.term > one(scope, "term"),
            concerned,
            select(new.c.percents)
            .where(new.c.student_id == later.student_id)
            .correlate(later)
            .scalar_subquery()
            .is_distinct_from(old),
        )
    )
    return _results_with_students(found)


def _results_with_students(found: Any) -> Any:
    """Gather rows of a term, a batch and a student: the name of each term and batch, with the students."""
    rows = found.subquery("found")
    number = rows.c.admission_number
    named = (
        select(
            (rows.c.display_name + " of " + Classroom.name + " " + Batch.name).label("name"),
            rows.c.term,
            func.json_agg(aggregate_order_by(number, number)).label("students"),
        )
        .join(Batch, Batch.id == rows.c.id)
        .join(Cohort, Cohort.id == Batch.cohort_id)
        .join(Classroom, Classroom.id == Cohort.classroom_id)
        .group_by(rows.c.term, rows.c.display_name, Classroom.name, Batch.name)
        .subquery("named")
    )
    result = func.json_build_object("results", named.c.name, "students", named.c.students)
    return select(_array(aggregate_order_by(result, named.c.term, named.c.name))).scalar_subquery()


# Reopening


@read_model
def lock_cohort(publication_id: UUID) -> Query:
    """Lock the cohort of a publication FOR NO KEY UPDATE."""
    return (
        select(Cohort.id)
        .join(Publication, Publication.cohort_id == Cohort.id)
        .where(Publication.id == publication_id)
        .with_for_update(key_share=True, of=Cohort)
    )


@read_model
def lock_students_of(publication_id: UUID) -> Query:
    """Lock the students whose cards a publication has FOR SHARE, in order of id: none of them is being promoted."""
    students = select(ReportCard.student_id).where(ReportCard.publication_id == publication_id)
    return select(Student.id).where(Student.id.in_(students)).order_by(Student.id).with_for_update(read=True)


@read_model
def lock_cards_of(publication_id: UUID) -> Query:
    """Lock the cards of a publication FOR NO KEY UPDATE, in order of id: whoever promotes by one waits."""
    return (
        select(ReportCard.id)
        .where(ReportCard.publication_id == publication_id)
        .order_by(ReportCard.id)
        .with_for_update(key_share=True)
    )


@read_model
def reopening(publication_id: UUID) -> Query:
    """Select what decides whether a publication may be reopened, to be read once its cohort is locked.

    `later` is JSON: the names of published results of later terms of the session that rest on it: those of the batch,
    and of where its students were then. `promoted` tells whether the batch is in a live promotion, or a student whose
    latest card of the session is one of these: from an arm to which they have gone since.
    """
    later, later_term = aliased(Publication), aliased(Term)
    own, others = aliased(ReportCard), aliased(ReportCard)
    shared = (
        select(own.id)
        .join(others, others.student_id == own.student_id)
        .where(own.publication_id == Publication.id, others.publication_id == later.id, others.in_force)
        .correlate(Publication, later)
    )
    newer, newer_term = aliased(ReportCard), aliased(Term)
    replaced = (
        select(newer.id)
        .join(newer_term, newer_term.id == newer.term_id)
        .where(
            newer.student_id == own.student_id,
            newer_term.session_id == Publication.session_id,
            newer.in_force,
            newer_term.term > Term.term,
        )
        .correlate(own, Publication, Term)
    )
    decided = (
        select(PromotionDecision.student_id)
        .join(Promotion, Promotion.id == PromotionDecision.promotion_id)
        .join(own, own.student_id == PromotionDecision.student_id)
        .where(
            own.publication_id == Publication.id,
            own.in_force,
            Promotion.session_id == Publication.session_id,
            LIVE,
            ~replaced.exists(),
        )
        .correlate(Publication, Term)
    )
    batch = (
        select(PromotionBatch.batch_id)
        .where(PromotionBatch.batch_id == Publication.batch_id, PromotionBatch.live)
        .correlate(Publication)
    )
    name = later_term.display_name + " of " + Classroom.name + " " + Batch.name
    names = (
        select(_array(aggregate_order_by(name, later_term.term, Batch.name)))
        .select_from(later)
        .join(later_term, later_term.id == later.term_id)
        .join(Batch, Batch.id == later.batch_id)
        .join(Cohort, Cohort.id == Batch.cohort_id)
        .join(Classroom, Classroom.id == Cohort.classroom_id)
        .where(
            later.session_id == Publication.session_id,
            later_term.term > Term.term,
            later.state == PUBLISHED,
            or_(later.batch_id == Publication.batch_id, shared.exists()),
        )
        .correlate(Publication, Term)
    )
    return (
        select(
            Publication.state,
            Publication.version,
            Publication.batch_id,
            Publication.term_id,
            names.scalar_subquery().label("later"),
            or_(batch.exists(), decided.exists()).label("promoted"),
        )
        .join(Term, Term.id == Publication.term_id)
        .where(Publication.id == publication_id)
    )


def published_name(batch_id: Any, term_id: Any) -> Any:
    """A column: the name of a batch and a term while its results are published, else null."""
    return (
        select(Classroom.name + " " + Batch.name + ", " + Term.display_name)
        .select_from(Publication)
        .join(Batch, Batch.id == Publication.batch_id)
        .join(Cohort, Cohort.id == Batch.cohort_id)
        .join(Classroom, Classroom.id == Cohort.classroom_id)
        .join(Term, Term.id == Publication.term_id)
        .where(
            Publication.batch_id == batch_id,
            Publication.term_id == term_id,
            Publication.state == PUBLISHED,
        )
        .scalar_subquery()
    )


@read_model(judged=True)
def is_open(batch_id: UUID, term_id: UUID) -> Query:
    """Select `published`: the name of a batch and a term while its results are published, else null."""
    return select(published_name(batch_id, term_id).label("published"))


@read_model(judged=True)
def lock_cohort_in_term(cohort_id: UUID, term_id: UUID) -> Query:
    """Lock a cohort FOR NO KEY UPDATE, and before it a term FOR KEY SHARE, which is not deleted meanwhile."""
    term = select(Term.id).where(Term.id == term_id).with_for_update(read=True, key_share=True)
    return select(Cohort.id).where(Cohort.id == cohort_id, once_locked(term)).with_for_update(key_share=True)


_NOBODY: Any = literal_column("'[]'", Text())


def _array(rows: Any) -> Any:
    """Gather rows as an array, as text."""
    return func.coalesce(cast(func.json_agg(rows, type_=JSON), Text), "[]")
