"""Read models of publications."""

from __future__ import annotations

from functools import partial
from typing import Any
from uuid import UUID

from sqlalchemy import (
    ARRAY,
    CTE,
    ColumnElement,
    Integer,
    Numeric,
    Text,
    Uuid,
    and_,
    case,
    cast,
    false,
    func,
    insert,
    literal,
    literal_column,
    null,
    or_,
    select,
)
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import aliased

from school_service.core.reach import Reach
from school_service.core.read_models import Query, array_of, json_object, read_model
from school_service.core.records import is_one_of, lock_in_order, once_locked, one_of, unnest_rows
from school_service.core.statements import lock_through
from school_service.features.attendance.calendar import counts_registers
from school_service.features.attendance.overviews.reads import missing_registers
from school_service.features.classes.models import CohortSubject, SubjectEnrollment
from school_service.features.people.models import WITHDRAWN, Student, UserPhoto
from school_service.features.reach import scopes
from school_service.features.results.computing.class_term.counting import counted_by, counts
from school_service.features.results.computing.class_term.entered import class_term, microseconds, submissions
from school_service.features.results.computing.class_term.record import record
from school_service.features.results.computing.class_term.roster import (
    belongs_without_card,
    has_card,
    members,
)
from school_service.features.results.computing.class_term.scopes import scope_of_batch, subjects_of, value_of
from school_service.features.results.computing.comparing import OF_CLASS
from school_service.features.results.figures.frozen import name_order
from school_service.features.results.models import (
    IN_FORCE,
    LIVE,
    PUBLISHED,
    REOPENED,
    LeftOut,
    MetricDefinition,
    Promotion,
    PromotionBatch,
    PromotionDecision,
    Publication,
    ReportCard,
)
from school_service.features.school.cohorts.reads import CLASS, session_by_id_or_name, with_class
from school_service.features.school.models import (
    CURRENT,
    AcademicSession,
    Batch,
    Classroom,
    Cohort,
    Enrollment,
    Subject,
    Term,
    TermCalendar,
)
from school_service.features.school.sessions.service import is_term
from school_service.features.scores.models import BOTH, NOT_DELETED, OF_COHORT, Assessment, Submission


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
    cards = select(func.count()).where(ReportCard.publication_id == Publication.id)
    counted = {
        "students": cards,
        "changed": cards.where(ReportCard.changed),
        "class_figures_changed": cards.where(ReportCard.class_figures_changed),
    }
    query = (
        select(
            Publication.id,
            Publication.batch_id.label("batch"),
            _then("batch_name", Batch.name).label("batch_name"),
            Publication.cohort_id.label("cohort"),
            json_object(id=AcademicSession.id, name=_then("session_name", AcademicSession.name)).label(
                "session"
            ),
            json_object(id=Term.id, term=Term.term).label("term"),
            Publication.version,
            Publication.state,
            Publication.published_at,
            Publication.published_by,
            Publication.published_by_name,
            Publication.reopened_at,
            Publication.reopened_by_name,
            Publication.reason,
            *(of.scalar_subquery().label(name) for name, of in counted.items()),
            func.coalesce(Publication.rules["left"], literal_column("'[]'::jsonb")).label("left"),
        )
        .join(Batch, Batch.id == Publication.batch_id)
        .join(AcademicSession, AcademicSession.id == Publication.session_id)
        .join(Term, Term.id == Publication.term_id)
        .order_by(Publication.published_at.desc(), Publication.id.desc())
    )
    if reach is not None:
        query = query.where(scopes.is_form_batch(reach, Publication.batch_id))
    if batch is not None:
        query = query.where(Publication.batch_id == batch)
    if cohort is not None:
        query = query.where(Publication.cohort_id == cohort)
    if term is not None:
        query = query.where(is_term(term))
    if session is not None:
        query = query.where(Publication.session_id == session_by_id_or_name(session).scalar_subquery())
    return query


def _then(name: str, now: Any) -> Any:
    """A name as it was when results were published; as it is now in publications without it."""
    return func.coalesce(Publication.rules[name].astext, now)


@read_model
def publication(publication_id: UUID, reach: Reach | None = None) -> Query:
    """Read model of PublicationSchema, for one."""
    return publications.query(reach=reach).where(Publication.id == publication_id)


@read_model
def new_publications(publication_ids: list[UUID]) -> Query:
    """Read model of PublicationSchema, for those made at once, by the batch's name."""
    is_one = Publication.id == one_of(publication_ids)
    return publications.query().where(is_one).order_by(None).order_by(Batch.name, Publication.id)


@read_model
def changes(publication_id: UUID, reach: Reach | None = None) -> Query:
    """Select the cards of a publication with changes since the version before, by name: pairs of the card and that.

    `changed` is null without one; the card before is null if the student had none.
    """
    earlier, before = aliased(Publication), aliased(ReportCard)
    pair = func.json_build_array(ReportCard.card, before.card)
    query = (
        select(array_of(pair, *name_order(ReportCard.card["student"])).label("changed"))
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
    )
    return query if reach is None else query.where(scopes.is_form_batch(reach, Publication.batch_id))


@read_model
def cards_of(publication_id: UUID, reach: Reach | None = None) -> Query:
    """Read model of PublishedCardSchema: the cards of a publication, by name."""
    student = ReportCard.card["student"]
    query = (
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
    return query if reach is None else query.where(scopes.is_form_batch(reach, Publication.batch_id))


# Publishing


@read_model
def lock_cohorts(batch_ids: list[UUID], term: str | None = None) -> Query:
    """Lock the cohorts of batches FOR NO KEY UPDATE, in order of id: nobody comes, goes or reopens a subject.

    Before, a term of their sessions FOR KEY SHARE, if one is given: it is not deleted meanwhile.
    """
    cohorts = select(Batch.cohort_id).where(Batch.id == one_of(batch_ids))
    locking = lock_in_order(Cohort, Cohort.id.in_(cohorts))
    if term is None:
        return locking
    sessions = select(Cohort.session_id).where(Cohort.id.in_(cohorts))
    terms = select(Term.id).where(Term.session_id.in_(sessions), is_term(term)).order_by(Term.id)
    return locking.where(once_locked(terms.with_for_update(read=True, key_share=True)))


@read_model
def lock_students(batch_ids: list[UUID], others: list[UUID]) -> Query:
    """Lock the students of the batches' cohorts FOR SHARE, in order of id: nobody takes an elective up or withdraws.

    They are the students enrolled there, those with a card of it in force, and `others`.
    """
    cohorts = select(Batch.cohort_id).where(Batch.id == one_of(batch_ids))
    students = select(Enrollment.student_id).where(Enrollment.cohort_id.in_(cohorts), CURRENT)
    with_card = (
        select(ReportCard.student_id)
        .join(Publication, Publication.id == ReportCard.publication_id)
        .where(Publication.cohort_id.in_(cohorts), ReportCard.in_force)
    )
    named = select(Student.id).where(Student.id == one_of(others))
    return lock_in_order(Student, Student.id.in_(students.union(with_card, named)), shared=True)


@read_model
def publishing(
    batch_id: UUID,
    batch_ids: list[UUID],
    term: str,
    leave_out: list[UUID] | None = None,
    take_in: list[UUID] | None = None,
    rehearsed: bool | None = None,
) -> Query:
    """Select the basis of a publication, to be read once it is locked: the entries, and the other contents of cards.

    `batch_id` is the first of the batches: all have to be of its cohort. `leave_out` and `take_in` are students who
    belong to them no more, and again. The facts for the decision are JSON:

    `batches`     the known ones, each with the `state` of the publication in force, the `latest` version, and the
                  subjects that it was without
    `leaving`     the members of the batches among `leave_out`: the student's id and the batch's
    `coming`      students of `take_in`, left out of them before and members now, likewise
    `submissions` of the cohort's subjects in the term (`entered.submissions`)
    `stays`       the enrollments of the roster in the cohort: the person's number, the batch, the moment of the end
    `earlier`     the results of earlier terms to be published first, with the students
    `later`       published results of later terms, with their basis in this one

    Moments are microseconds. A dry run, `rehearsed`, has the `registers_missing` too, the `trait_types` in use, and the
    numbers of the people `with_photo`.
    """
    roster = partial(members, left_out=leave_out, taken_in=take_in, batch_ids=batch_ids)
    of = class_term(scope_of_batch(batch_id, term), roster=roster)
    scope, people = of.scope, of.people
    return select(
        *of.columns(),
        record(of).label("record"),
        _requested(scope, batch_ids).label("batches"),
        (null() if leave_out is None else _leaving(scope, batch_ids, leave_out)).label("leaving"),
        (null() if take_in is None else _coming(scope, people, batch_ids, take_in)).label("coming"),
        submissions(scope).label("submissions"),
        _stays(scope, people).label("stays"),
        _earlier(scope, people, batch_ids).label("earlier"),
        _later(scope, people, batch_ids, leave_out).label("later"),
        (null() if rehearsed is None else _registers_missing(scope, batch_ids)).label("registers_missing"),
        (null() if rehearsed is None else _trait_types()).label("trait_types"),
        (null() if rehearsed is None else _with_photo(people)).label("with_photo"),
    ).select_from(scope)


def _requested(scope: CTE, batch_ids: Any) -> Any:
    publication = and_(Publication.batch_id == Batch.id, Publication.term_id == scope.c.term_id)
    in_force = select(Publication.state).where(publication, IN_FORCE)
    latest = select(func.max(Publication.version)).where(publication)
    without = (
        select(Publication.rules["without_subjects"])
        .where(publication)
        .order_by(Publication.version.desc())
        .limit(1)
    )
    batch = json_object(
        id=Batch.id,
        name=CLASS,
        arm=Batch.name,
        cohort=Batch.cohort_id,
        state=in_force.correlate(Batch, scope).scalar_subquery(),
        latest=func.coalesce(latest.correlate(Batch, scope).scalar_subquery(), 0),
        without_subjects=without.correlate(Batch, scope).scalar_subquery(),
    )
    query = with_class(select(array_of(batch, Batch.name, Batch.id)).select_from(Batch))
    return query.where(Batch.id == one_of(batch_ids)).correlate(scope).scalar_subquery()


def _leaving(scope: CTE, batch_ids: Any, leave_out: Any) -> Any:
    """The members of the batches among `leave_out`: arrays of the student's id and the batch's."""
    belonging = members(value_of(scope, "cohort_id"), value_of(scope, "term_id"))
    pair = func.json_build_array(belonging.c.student_id, belonging.c.batch_id)
    return (
        select(array_of(pair))
        .select_from(belonging)
        .where(belonging.c.student_id == one_of(leave_out), belonging.c.batch_id == one_of(batch_ids))
        .scalar_subquery()
    )


def _coming(scope: CTE, people: CTE, batch_ids: Any, take_in: Any) -> Any:
    """The students of `take_in` left out of the batches before, and members of them now."""
    was_left_out = and_(
        LeftOut.student_id == people.c.student_id,
        LeftOut.batch_id == people.c.batch_id,
        LeftOut.term_id == value_of(scope, "term_id"),
    )
    return (
        select(array_of(func.json_build_array(people.c.student_id, people.c.batch_id)))
        .select_from(people)
        .join(LeftOut, was_left_out)
        .where(people.c.student_id == one_of(take_in), people.c.batch_id == one_of(batch_ids))
        .scalar_subquery()
    )


def _stays(scope: CTE, people: CTE) -> Any:
    stay = func.json_build_array(people.c.number, Enrollment.batch_id, microseconds(Enrollment.ended_at))
    return (
        select(array_of(stay))
        .select_from(Enrollment)
        .join(people, people.c.student_id == Enrollment.student_id)
        .where(Enrollment.cohort_id == value_of(scope, "cohort_id"))
        .scalar_subquery()
    )


def _earlier(scope: CTE, people: CTE, batch_ids: Any) -> Any:
    """List the results of earlier terms to be published first: of the batches of the members in those terms.

    These members have no card in force of a term with an assessment that counts in the cohort. Each is the name of the
    results and the admission number of a student, in their order.
    """
    counted = counted_by(select(scope.c.cohort_id.label("id"), scope.c.level).cte("class_to_publish"))
    has_counting = (
        select(Assessment.id)
        .join(counted, literal(True))
        .where(
            Assessment.cohort_id == value_of(scope, "cohort_id"),
            Assessment.term_id == Term.id,
            NOT_DELETED,
            *counts(counted),
        )
    )
    name, number = results_of(Term), Student.admission_number
    query = (
        select(array_of(func.json_build_array(name, number), Term.term, name, number))
        .select_from(Term)
        .join(Enrollment, and_(Enrollment.session_id == Term.session_id, CURRENT))
        .join(people, people.c.student_id == Enrollment.student_id)
        .join(Student, and_(Student.id == Enrollment.student_id, Student.status != WITHDRAWN))
        .join(Batch, Batch.id == Enrollment.batch_id)
        .where(
            Term.session_id == value_of(scope, "session_id"),
            # The alphabet has the terms in their order: FIRST, SECOND, THIRD.
            Term.term < value_of(scope, "term"),
            has_counting.correlate(Term).exists(),
            people.c.batch_id == one_of(batch_ids),
            belongs_without_card(Term.id),
        )
    )
    return with_class(query).scalar_subquery()


def _later(scope: CTE, people: CTE, batch_ids: Any, leave_out: Any) -> Any:
    """List published results of later terms of the students concerned, with the percents under them.

    Each is the name of the results, the student's id and admission number, and the percents of the subjects on their
    card of this term in force, by base subject, null without one; in the order of the results and of the numbers.
    """
    card, later = aliased(ReportCard), aliased(ReportCard)
    listed = subjects_of(card.card["subjects"])
    percent = listed.c.subject["percent"]
    rested_on = (
        select(func.json_object_agg(listed.c.subject["subject"]["base"].astext, percent))
        .select_from(card)
        .join(listed, literal(True))
        .where(
            card.student_id == later.student_id,
            card.term_id == value_of(scope, "term_id"),
            card.in_force,
            percent.astext.is_not(None),
        )
        .correlate(later)
        .scalar_subquery()
    )
    is_requested = people.c.batch_id == one_of(batch_ids)
    concerned: Any = later.student_id.in_(select(people.c.student_id).where(is_requested))
    if leave_out is not None:
        concerned = or_(concerned, later.student_id == one_of(leave_out))
    name, number = results_of(Term), Student.admission_number
    query = (
        select(array_of(func.json_build_array(name, Student.id, number, rested_on), Term.term, name, number))
        .select_from(Term)
        .join(Publication, and_(Publication.term_id == Term.id, Publication.state == PUBLISHED))
        .join(later, and_(later.publication_id == Publication.id, later.in_force))
        .join(Student, Student.id == later.student_id)
        .join(Batch, Batch.id == Publication.batch_id)
        .where(
            Term.session_id == value_of(scope, "session_id"), Term.term > value_of(scope, "term"), concerned
        )
    )
    return with_class(query).scalar_subquery()


def _registers_missing(scope: CTE, batch_ids: Any) -> Any:
    """The registers not submitted of the term's days until today; null unless they count for cards."""

    def of_term(day: Any) -> Any:
        return select(day).where(TermCalendar.term_id == value_of(scope, "term_id")).scalar_subquery()

    first, last = of_term(TermCalendar.start_date), of_term(TermCalendar.end_date)
    missing = missing_registers.query(first, last).order_by(None).subquery("missing")
    # MORNING comes before AFTERNOON.
    query = select(array_of(missing.table_valued(), missing.c.date, missing.c.part.desc()))
    return case((counts_registers(), query.where(missing.c.batch == one_of(batch_ids)).scalar_subquery()))


def _trait_types() -> Any:
    """The types of traits with definitions."""
    return select(array_of(MetricDefinition.metric_type.distinct())).scalar_subquery()


def _with_photo(people: CTE) -> Any:
    query = select(array_of(people.c.number)).join(Student, Student.id == people.c.student_id)
    return query.join(UserPhoto, UserPhoto.user_id == Student.user_id).scalar_subquery()


# Freezing


@read_model
def freezing(ids: list[str], codes: list[str], publication_ids: list[UUID], cards: list[str]) -> Query:
    """Store cards, each a text of JSON, and select the same as `comparing`; they are marked afterwards."""
    given = _cards_to_be(cards, id=(Uuid, ids), code=(Uuid, codes), publication_id=(Uuid, publication_ids))
    card = given.c.card
    values: dict[str, Any] = {
        **{name: given.c[name] for name in ("id", "code", "publication_id", "student_id", "term_id", "card")},
        "average": cast(card["average"].astext, Numeric),
        "position": cast(card["batch_figures"]["position"].astext, Integer),
        "in_force": literal(True),
        "changed": literal(False),
        "class_figures_changed": literal(False),
        "photo": _photo_of(given),
    }
    storing = insert(ReportCard).from_select([*values], select(*values.values()), include_defaults=False)
    return _differing(given).add_cte(storing.cte("stored"))


def _photo_of(given: CTE) -> Any:
    """The photo of the student of a card that shows it."""
    shown = and_(Student.id == given.c.student_id, given.c.card["show_photo"].as_boolean())
    query = select(UserPhoto.image).join(Student, Student.user_id == UserPhoto.user_id).where(shown)
    return query.correlate(given).scalar_subquery()


@read_model
def comparing(cards: list[str]) -> Query:
    """Select the students whose card to be differs from their `old` one, of the version before."""
    return _differing(_cards_to_be(cards))


def _cards_to_be(cards: Any, **columns: tuple[Any, Any]) -> CTE:
    texts = unnest_rows("texts", None, card=(Text, cards), **columns)
    read = select(*(texts.c[name] for name in columns), cast(texts.c.card, JSONB).label("card"))
    given = read.cte("given_cards").prefix_with("MATERIALIZED")
    of = given.c.card
    return (
        select(
            given,
            cast(of["student"]["id"].astext, Uuid).label("student_id"),
            cast(of["batch"].astext, Uuid).label("batch_id"),
            cast(of["term"]["id"].astext, Uuid).label("term_id"),
            cast(of["version"].astext, Integer).label("version"),
        )
        .cte("cards_to_be")
        .prefix_with("MATERIALIZED")
    )


def _differing(given: CTE) -> Query:
    before = (
        select(ReportCard.student_id, ReportCard.card)
        .join(Publication, Publication.id == ReportCard.publication_id)
        .where(
            Publication.batch_id == given.c.batch_id,
            Publication.term_id == given.c.term_id,
            Publication.version == given.c.version - 1,
            ReportCard.student_id == given.c.student_id,
        )
        .correlate(given)
        .lateral("before")
    )
    of_class = cast(list(OF_CLASS), ARRAY(Text))
    same = given.c.card.op("-")(of_class) == before.c.card.op("-")(of_class)
    return (
        select(given.c.student_id.label("student"), before.c.card.label("old"))
        .select_from(given)
        .outerjoin(before, literal(True))
        .where(given.c.version > 1, ~func.coalesce(same, False))
    )


# Reopening


lock_cohort_of = lock_through(Publication.cohort_id, Cohort)
"""Locks the cohort of a publication."""


@read_model
def lock_students_of(publication_id: UUID) -> Query:
    """Lock the students with cards of a publication FOR SHARE, in order of id: none of them is being promoted."""
    students = select(ReportCard.student_id).where(ReportCard.publication_id == publication_id)
    return lock_in_order(Student, Student.id.in_(students), shared=True)


@read_model
def lock_cards_of(publication_id: UUID) -> Query:
    """Lock the cards of a publication FOR NO KEY UPDATE, in order of id: a promotion by one of them waits."""
    return lock_in_order(ReportCard, ReportCard.publication_id == publication_id)


@read_model
def reopening(publication_id: UUID) -> Query:
    """Select the facts for reopening a publication, to be read once its cohort is locked.

    `later` names the published results of later terms of the session that rest on it: of the batch, and of the batches
    of its students then. `promoted` tells whether the batch is in a live promotion, or a student with one of these as
    their latest card of the session: from another arm, after a move.
    """
    in_promotion = (
        select(PromotionBatch.batch_id)
        .where(PromotionBatch.batch_id == Publication.batch_id, PromotionBatch.live)
        .correlate(Publication)
    )
    return (
        select(
            Publication.state,
            Publication.version,
            _later_published().label("later"),
            or_(in_promotion.exists(), _promoted_by_card().exists()).label("promoted"),
        )
        .join(Term, Term.id == Publication.term_id)
        .where(Publication.id == publication_id)
    )


@read_model
def chain(publication_id: UUID, subjects: list[UUID] | None = None) -> Query:
    """Select the facts for `chains.chain_of`: the `state` of a publication, and as JSON

    `subjects`      the ids of its cohort's subjects
    `publications`  itself and those to be published again with it, by term: those of later terms that rest on it and,
                    if subjects are to be changed, those of other arms with positions in the cohort
    `submitted`     the subjects that are submitted in its batch and term
    `open`          subjects that count in one of these, or are to be changed, and are not submitted now, with batch and
                    term
    """
    of, term = aliased(Publication), aliased(Term)
    chained = _chained(publication_id, of_every_arm=subjects is not None)
    of_id: Any = of.id
    judged = reopening.query(of_id).lateral("judged")
    publication = json_object(
        id=of.id, batch=of.batch_id, term=of.term_id, state=of.state, promoted=judged.c.promoted
    )
    publications = (
        select(array_of(publication, term.term, Batch.name, of.id))
        .select_from(chained)
        .join(of, of.id == chained.c.id)
        .join(term, term.id == of.term_id)
        .join(Batch, Batch.id == of.batch_id)
        .join(judged, literal(True))
    )
    own = aliased(Publication)
    subjects_of_cohort = select(array_of(CohortSubject.id)).where(CohortSubject.cohort_id == own.cohort_id)
    submitted = select(array_of(Submission.cohort_subject_id)).where(
        Submission.batch_id == own.batch_id, Submission.term_id == own.term_id
    )
    return select(
        own.state,
        subjects_of_cohort.correlate(own).scalar_subquery().label("subjects"),
        publications.scalar_subquery().label("publications"),
        submitted.correlate(own).scalar_subquery().label("submitted"),
        _open_subjects(chained, publication_id, [] if subjects is None else subjects).label("open"),
    ).where(own.id == publication_id)


def _chained(publication_id: UUID, *, of_every_arm: bool) -> CTE:
    """The publications to be published again with one: itself, and those that rest on one to be reopened."""
    own, beside = aliased(Publication), aliased(Publication)
    first = select(beside.id).join(
        own, or_(own.id == beside.id, _is_beside(own, beside) if of_every_arm else false())
    )
    chained = first.where(own.id == publication_id).cte("chained", recursive=True)
    before, later = aliased(Publication), aliased(Publication)
    before_term, later_term = aliased(Term), aliased(Term)
    resting = (
        select(later.id)
        .select_from(chained)
        .join(before, before.id == chained.c.id)
        .join(before_term, before_term.id == before.term_id)
        .join(later, later.session_id == before.session_id)
        .join(later_term, later_term.id == later.term_id)
        .where(
            or_(before.state == PUBLISHED, before.id == publication_id),
            is_one_of(later.state, (PUBLISHED, REOPENED)),
            # The alphabet has the terms in their order: FIRST, SECOND, THIRD.
            later_term.term > before_term.term,
            or_(later.batch_id == before.batch_id, _share_students(before, later)),
        )
    )
    return chained.union(resting)


def _is_beside(own: Any, beside: Any) -> Any:
    """Tell whether a publication in force shows positions among all arms with another: of its cohort and term."""
    return and_(
        beside.cohort_id == own.cohort_id,
        beside.term_id == own.term_id,
        is_one_of(beside.state, (PUBLISHED, REOPENED)),
        is_one_of(func.coalesce(beside.rules["positions"].astext, BOTH), OF_COHORT),
    )


def _share_students(before: Any, later: Any) -> Any:
    own, others = aliased(ReportCard), aliased(ReportCard)
    return (
        select(own.id)
        .join(others, others.student_id == own.student_id)
        .where(own.publication_id == before.id, others.publication_id == later.id, others.in_force)
        .correlate(before, later)
        .exists()
    )


def _open_subjects(chained: CTE, publication_id: UUID, subjects: list[UUID]) -> Any:
    """The subjects of publications that count and are open, each with a batch in which a member takes it, and the term.

    So are the `subjects` to be changed in the term of a publication, in which nothing may count yet. Positions in the
    cohort rest on every batch of it.
    """
    of, term = aliased(Publication), aliased(Term)
    classes = select(Cohort.id, Classroom.level).join(Classroom, Classroom.id == Cohort.classroom_id)
    counted = counted_by(
        classes.where(Cohort.id.in_(select(of.cohort_id).join(chained, chained.c.id == of.id))).cte("classes")
    )
    has_counting = (
        select(Assessment.id)
        .join(counted, counted.c.id == Assessment.cohort_id)
        .where(
            Assessment.cohort_subject_id == CohortSubject.id,
            Assessment.term_id == of.term_id,
            NOT_DELETED,
            *counts(counted),
        )
        .correlate(CohortSubject, of)
    )
    changed_term = select(Publication.term_id).where(Publication.id == publication_id).scalar_subquery()
    is_changed = and_(CohortSubject.id == one_of(subjects), of.term_id == changed_term)
    is_of_every_arm = is_one_of(func.coalesce(of.rules["positions"].astext, BOTH), OF_COHORT)
    is_submitted = (
        select(Submission.id)
        .where(
            Submission.cohort_subject_id == CohortSubject.id,
            Submission.batch_id == Batch.id,
            Submission.term_id == of.term_id,
        )
        .correlate(Batch, CohortSubject, of)
    )
    each = (
        select(
            CohortSubject.id.label("cohort_subject"),
            Batch.id.label("batch"),
            of.term_id.label("term"),
            term.term.label("term_name"),
            Subject.position,
            Subject.name,
            Batch.name.label("arm"),
        )
        .distinct()
        .select_from(chained)
        .join(of, of.id == chained.c.id)
        .join(term, term.id == of.term_id)
        .join(CohortSubject, CohortSubject.cohort_id == of.cohort_id)
        .join(Subject, Subject.id == CohortSubject.subject_id)
        .join(Batch, and_(Batch.cohort_id == of.cohort_id, or_(Batch.id == of.batch_id, is_of_every_arm)))
        .where(
            or_(has_counting.exists(), is_changed),
            _is_taken(of),
            ~is_submitted.exists(),
        )
        .subquery("open_subjects")
    )
    columns = each.c
    row = json_object(cohort_subject=columns.cohort_subject, batch=columns.batch, term=columns.term)
    order = (
        columns.term_name,
        columns.position,
        columns.name,
        columns.cohort_subject,
        columns.arm,
        columns.batch,
    )
    return select(array_of(row, *order)).select_from(each).scalar_subquery()


def _is_taken(of: Any) -> ColumnElement[bool]:
    """Tell whether a member of a batch, in the term of a publication, takes a cohort subject."""
    is_without_card = and_(Student.status != WITHDRAWN, belongs_without_card(of.term_id))
    is_taken = (
        select(SubjectEnrollment.student_id)
        .join(Enrollment, and_(Enrollment.student_id == SubjectEnrollment.student_id, CURRENT))
        .join(Student, Student.id == Enrollment.student_id)
        .where(
            Enrollment.batch_id == Batch.id,
            SubjectEnrollment.cohort_subject_id == CohortSubject.id,
            or_(has_card(Student.id, of.term_id), is_without_card),
        )
        .correlate(Batch, CohortSubject, of)
    )
    card, publication = aliased(ReportCard), aliased(Publication)
    subject_id = func.jsonb_build_object("id", CohortSubject.id)
    of_card = func.jsonb_build_array(func.jsonb_build_object("subject", subject_id))
    # Of a card of this release, its takers are as they were.
    was_taken = (
        select(card.id)
        .join(publication, publication.id == card.publication_id)
        .where(
            publication.batch_id == Batch.id,
            publication.term_id == of.term_id,
            publication.takers_changed.is_not(None),
            card.in_force,
            card.card["subjects"].contains(of_card),
        )
        .correlate(Batch, CohortSubject, of)
    )
    return or_(is_taken.exists(), was_taken.exists())


def _later_published() -> Any:
    """Name the published results of later terms of a publication's batch, and of the batches of its students then."""
    later, later_term = aliased(Publication), aliased(Term)
    query = (
        select(array_of(results_of(later_term), later_term.term, Batch.name))
        .select_from(later)
        .join(later_term, later_term.id == later.term_id)
        .join(Batch, Batch.id == later.batch_id)
        .where(
            later.session_id == Publication.session_id,
            later_term.term > Term.term,
            later.state == PUBLISHED,
            or_(later.batch_id == Publication.batch_id, _share_students(Publication, later)),
        )
    )
    return with_class(query).correlate(Publication, Term).scalar_subquery()


def _promoted_by_card() -> Query:
    """Select the students in a live promotion with a publication's card as their latest of the session."""
    own = aliased(ReportCard)
    latest = latest_card(own.student_id, Publication.session_id)
    return (
        select(PromotionDecision.student_id)
        .join(Promotion, Promotion.id == PromotionDecision.promotion_id)
        .join(own, own.student_id == PromotionDecision.student_id)
        .join(latest, latest.c.publication == own.publication_id)
        .where(own.publication_id == Publication.id, Promotion.session_id == Publication.session_id, LIVE)
        .correlate(Publication)
    )


def latest_card(student_id: Any, session_id: Any) -> Any:
    """The latest card in force of a student in a session, by the term, of any class."""
    return (
        select(ReportCard.card, ReportCard.publication_id.label("publication"), Publication.version)
        .join(Publication, Publication.id == ReportCard.publication_id)
        .join(Term, Term.id == ReportCard.term_id)
        .where(ReportCard.student_id == student_id, Term.session_id == session_id, ReportCard.in_force)
        # The alphabet has the terms in their order: FIRST, SECOND, THIRD.
        .order_by(Term.term.desc())
        .limit(1)
        .correlate_except(ReportCard, Publication, Term)
        .lateral("latest_card")
    )


def results_of(term: Any) -> Any:
    """The name of the results of a term in refusals, in a query of the batch (`with_class`)."""
    return term.display_name + " of " + CLASS
