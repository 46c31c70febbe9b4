"""Read model of transcripts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from sqlalchemy import JSON, Date, and_, case, cast, func, literal, literal_column, or_, select
from sqlalchemy.dialects.postgresql import JSONB, aggregate_order_by, distinct_on

from school_service.core.reach import Reach
from school_service.core.read_models import Query, array_of, json_object, read_model
from school_service.features.people.models import Student, User
from school_service.features.reach import scopes
from school_service.features.results.computing.class_term.entered import STUDENT
from school_service.features.results.computing.class_term.record import letterhead
from school_service.features.results.figures.frozen import is_own, printed_class, shows_position
from school_service.features.results.models import (
    LEFT_OUT,
    LIVE,
    Graduate,
    Promotion,
    PromotionDecision,
    Publication,
    ReportCard,
)
from school_service.features.school.models import (
    LETTERHEAD_TEXTS,
    TERMS,
    AcademicSession,
    Batch,
    Classroom,
    Cohort,
    Term,
)
from school_service.features.school.settings.service import time_zone
from school_service.features.scores.models import ResultSettings
from school_service.features.scores.result_settings.reads import bands, setting

_NO_IDS: Any = literal_column("'{}'::uuid[]")


@read_model
def transcript(student_id: UUID, user_id: UUID | None = None, reach: Reach | None = None) -> Query:
    """Read model of PublishedRecordSchema: the published results of a student, of the frozen cards alone.

    The student's particulars and the letterhead are those of the newest card, of the present without one; the dates of
    admission and leaving, and the former school, are of the present. `user_id` is the owner of the token: the student's
    own account is shown positions as each card says, and nothing if nothing is published.
    """
    own: Any = literal(False) if user_id is None else is_own(student_id, user_id, reach)
    query = _transcript(student_id, own, on_paper=False)
    return query if reach is None else query.where(scopes.students_in_reach(reach, Student.id))


def printed_transcript(student_id: Any, user_id: Any, moment: Any, for_school: Any) -> Query:
    """Select a transcript on paper at a moment, in one row: the contents of the answer, and those for paper alone.

    `school` has the pictures, too, by their hash; sessions the name of the class as it is printed, and of the student's
    next class. `own` tells whether the student's own account asks, `bands` is the key to grades of the newest card, and
    `card_ids` are its report cards. The student has the reason for leaving too if the paper is `for_school`, asked for
    by its staff. No row if `transcript` has none.
    """
    own = is_own(student_id, user_id)
    reason = {"leaving_reason": case((and_(for_school, ~own), Student.leaving_reason))}
    return _transcript(student_id, own, on_paper=True, moment=moment, facts=reason)


def _transcript(
    student_id: Any, own: Any, *, on_paper: bool, moment: Any = None, facts: dict[str, Any] | None = None
) -> Query:
    cards = (
        select(
            ReportCard.id,
            ReportCard.card,
            ReportCard.student_id,
            Publication.version,
            Publication.published_at,
            Publication.session_id,
            AcademicSession.start_date,
            Term.term,
        )
        # A student who came from another batch may have two cards of a term: the later one counts.
        .ext(distinct_on(Publication.term_id))
        .join(Publication, Publication.id == ReportCard.publication_id)
        .join(Term, Term.id == Publication.term_id)
        .join(AcademicSession, AcademicSession.id == Publication.session_id)
        .where(ReportCard.student_id == student_id, ReportCard.in_force)
        .cte("cards")
    )
    # The alphabet has the terms in their order: FIRST, SECOND, THIRD.
    in_order = (cards.c.start_date, cards.c.session_id, cards.c.term)
    newest = select(cards.c.card).order_by(*(column.desc() for column in in_order)).limit(1).cte("newest")
    about: Any = func.to_jsonb(STUDENT).op("||")(func.jsonb_build_object("dob", Student.dob))
    known = {name: getattr(Student, name) for name in ("admitted_on", "left_on", "former_school")} | (
        facts or {}
    )
    student = func.coalesce(newest.c.card["student"], about, type_=JSONB())
    of_school = func.jsonb_build_object(*(part for fact in known.items() for part in fact))
    head: Any = func.coalesce(newest.c.card["letterhead"], cast(letterhead(), JSONB), type_=JSONB())
    members = (*LETTERHEAD_TEXTS, "logo", "signature") if on_paper else LETTERHEAD_TEXTS
    more = _of_paper(cards, newest, own, moment) if on_paper else []
    return (
        select(
            cast(student.op("||")(of_school), JSON).label("student"),
            json_object(**{name: head[name] for name in members}).label("school"),
            _sessions(cards, own, on_paper=on_paper).label("sessions"),
            _of_graduate(Graduate.graduation_class).label("graduation_class"),
            *more,
        )
        .select_from(Student)
        .join(User, User.id == Student.user_id)
        .outerjoin(newest, literal(True))
        .outerjoin(ResultSettings, literal(True))
        .where(Student.id == student_id, or_(~own, newest.c.card.is_not(None)))
    )


def _of_graduate(column: Any) -> Any:
    return select(column).where(Graduate.student_id == Student.id).scalar_subquery()


def _of_paper(cards: Any, newest: Any, own: Any, moment: Any) -> list[Any]:
    """The contents for paper alone: settings of now, the key to grades, and the day."""
    return [
        own.label("own"),
        *(setting(name).label(name) for name in ("verification", "name_order", "signatures")),
        time_zone().label("time_zone"),
        func.coalesce(newest.c.card["bands"], bands(), type_=JSONB()).label("bands"),
        cast(func.timezone(time_zone(), moment), Date).label("issued_on"),
        select(func.coalesce(func.array_agg(aggregate_order_by(cards.c.id, cards.c.id)), _NO_IDS))
        .scalar_subquery()
        .label("card_ids"),
    ]


def _sessions(cards: Any, own: Any, *, on_paper: bool) -> Any:
    """The sessions, the oldest first, each with its terms, and the session result of the latest of them."""
    card = cards.c.card
    published = {"version": cards.c.version, "published_at": cards.c.published_at}
    places = ("position", "of", "tied") if on_paper else ("position", "of")
    term = json_object(term=card["term"], **_figures(card, card, own, places), **published)
    terms = (
        select(cards.c.session_id, array_of(term, cards.c.term).label("terms"))
        .group_by(cards.c.session_id)
        .subquery("terms_of_session")
    )
    latest = (
        select(cards.c.card, cards.c.student_id, cards.c.session_id, cards.c.start_date)
        .ext(distinct_on(cards.c.session_id))
        .order_by(cards.c.session_id, cards.c.term.desc())
        .subquery("latest")
    )
    card = latest.c.card
    whose = (latest.c.student_id, latest.c.session_id, latest)
    more = {"class_name": printed_class(card), "outcome_class": class_of_outcome(*whose)} if on_paper else {}
    session = json_object(
        **{name: card[name] for name in ("session", "classroom", "batch_name")},
        terms=terms.c.terms,
        subjects=_subjects(card["cumulative"]["subjects"], latest),
        **_figures(card["cumulative"], card, own, places),
        outcome=outcome_of(*whose),
        **more,
    )
    return (
        select(array_of(session, latest.c.start_date, latest.c.session_id))
        .select_from(latest)
        .join(terms, terms.c.session_id == latest.c.session_id)
        .scalar_subquery()
    )


def outcome_of(student_id: Any, session_id: Any, rows: Any) -> Any:
    """The outcome of a student of `rows` at a session's end, of the live promotion; null for a student left out."""
    return _of_decision(PromotionDecision.outcome, student_id, session_id, rows)


def class_of_outcome(student_id: Any, session_id: Any, rows: Any) -> Any:
    """The next classroom of a student of `rows` at a session's end; null without one."""
    classroom = (
        select(Classroom.name)
        .join(Cohort, Cohort.classroom_id == Classroom.id)
        .join(Batch, Batch.cohort_id == Cohort.id)
        .where(Batch.id == PromotionDecision.to_batch_id)
        .correlate(PromotionDecision)
        .scalar_subquery()
    )
    return _of_decision(classroom, student_id, session_id, rows)


def _of_decision(value: Any, student_id: Any, session_id: Any, rows: Any) -> Any:
    """A value of the decision about a student in the live promotion of a session."""
    return (
        select(value)
        .select_from(PromotionDecision)
        .join(Promotion, Promotion.id == PromotionDecision.promotion_id)
        .where(
            PromotionDecision.student_id == student_id,
            PromotionDecision.outcome != LEFT_OUT,
            Promotion.session_id == session_id,
            LIVE,
        )
        .order_by(Promotion.committed_at.desc(), Promotion.id)
        .limit(1)
        .correlate(rows)
        .scalar_subquery()
    )


def _figures(of: Any, card: Any, own: Any, places: Sequence[str]) -> dict[str, Any]:
    """Average, grade and position of a part of a card, as members of an object."""
    figures = of["batch_figures"]
    shown = or_(~own, shows_position(card, "batch"))
    return {
        "average": of["average"],
        "grade": of["grade"],
        **{name: case((shown, figures[name])) for name in places},
    }


def _subjects(subjects: Any, latest: Any) -> Any:
    subject: Any = literal_column("listed.subject", JSONB)
    number: Any = literal_column("listed.number")
    listed = (
        func.jsonb_array_elements(subjects)
        .table_valued("subject", with_ordinality="number")
        .render_derived(name="listed")
    )
    of_terms = {name: subject["terms"][name] for name in TERMS}
    shown = json_object(
        name=subject["name"],
        code=subject["code"],
        **of_terms,
        percent=subject["percent"],
        grade=subject["grade"],
    )
    return select(array_of(shown, number)).select_from(listed).correlate(latest).scalar_subquery()
