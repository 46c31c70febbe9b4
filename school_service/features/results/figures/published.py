"""The contents of broadsheets of published results: parts of the frozen cards, and their publication."""

from __future__ import annotations

from typing import Any

from sqlalchemy import (
    CTE,
    ColumnElement,
    FromClause,
    Integer,
    Text,
    Uuid,
    cast,
    column,
    func,
    literal_column,
    or_,
    select,
)
from sqlalchemy.dialects.postgresql import JSONB, aggregate_order_by, distinct_on

from school_service.core.read_models import Query, json_object
from school_service.features.results.computing.class_term.scopes import subjects_of
from school_service.features.results.figures.frozen import name_order
from school_service.features.results.models import IN_FORCE, WITHDRAWN, Publication, ReportCard
from school_service.features.school.cohorts.reads import session_by_id_or_name
from school_service.features.school.models import TERMS, Term
from school_service.features.school.sessions.service import is_term

Column = ColumnElement[Any]

_TRUE: Column = literal_column("true")
_OF_CLASS = (
    "batch", "batch_name", "cohort", "classroom", "class_name", "session", "term", "term_name", "letterhead",
    "positions", "name_order", "time_zone",
)  # fmt: skip
"""The members for the class on any card of a batch."""
_OF_STUDENT = ("total", "average", "grade", "status", "obtainable", "batch_figures", "cohort_figures")


def latest_publication(batch_id: Any, term: Any) -> CTE:
    """The newest version of a batch's results in a term, in any state: one row, or none."""
    return (
        _publications()
        .where(Publication.batch_id == batch_id, is_term(term))
        .order_by(Publication.version.desc())
        .limit(1)
        .cte("publication")
    )


def latest_of_session(batch_id: Any, session: Any) -> CTE:
    """The newest version of a batch's latest term of a session with published or reopened results."""
    return (
        _publications()
        .where(
            Publication.batch_id == batch_id,
            Publication.session_id == session_by_id_or_name(session).scalar_subquery(),
            IN_FORCE,
        )
        # The alphabet has the terms in their order: FIRST, SECOND, THIRD.
        .order_by(Term.term.desc())
        .limit(1)
        .cte("publication")
    )


def _publications() -> Query:
    return select(
        Publication.id,
        Publication.session_id,
        Term.term,
        Publication.state,
        Publication.version,
        Publication.published_at,
        Publication.rules,
    ).join(Term, Term.id == Publication.term_id)


def of_term(publication: CTE) -> Column:
    """A column: the contents of the broadsheet of a published term, or null."""
    cards = _cards(publication, *_OF_STUDENT, "subjects")
    subjects = subjects_of(cards.c.subjects)
    subject = subjects.c.subject
    result = json_object(
        subject=json_object(id=subject["subject"]["id"]),
        **_members(subject, "percent", "grade", "status", "batch"),
    )
    results = select(func.json_agg(result)).select_from(subjects).correlate(cards)
    query = (
        select(
            subject["subject"].label("subject"),
            cast(subject["subject"]["id"].astext, Uuid).label("id"),
            cards.c.student_id,
        )
        .select_from(cards.join(subjects, _TRUE))
        .subquery("subjects_of_cards")
    )
    said = _members(cards.c, "student", *_OF_STUDENT)
    card = json_object(**said, subjects=results.scalar_subquery())
    return _published(publication, cards, card, query)


def of_session(publication: CTE) -> Column:
    """A column: the contents of the broadsheet of a session, or null: of students with a card in its latest term.

    A subject has its id in the term of the publication, and else the base subject's.
    """
    cards = _cards(publication, "status", "cumulative", "subjects")
    subjects = subjects_of(cards.c.cumulative["subjects"])
    subject = subjects.c.subject
    taught = (
        func.jsonb_each(cast(select(publication.c.rules["subjects"]).scalar_subquery(), JSONB))
        .table_valued(column("key", Text), column("value", JSONB))
        .render_derived(name="taught")
    )
    query = (
        select(
            subject.op("||")(func.jsonb_build_object("elective", taught.c.value["elective"])).label(
                "subject"
            ),
            cast(func.coalesce(taught.c.key, subject["base"].astext), Uuid).label("id"),
            cards.c.student_id,
        )
        .select_from(cards.join(subjects, _TRUE))
        .outerjoin(taught, taught.c.value["base"].astext == subject["base"].astext)
        .subquery("subjects_of_cards")
    )
    of_term = subjects_of(cards.c.subjects)
    bases = select(func.json_agg(of_term.c.subject["subject"]["base"])).select_from(of_term).correlate(cards)
    said = _members(cards.c, "student", "status", "cumulative")
    card = json_object(**said, bases=bases.scalar_subquery(), averages=_averages(publication, cards))
    return _published(publication, cards, card, query)


def _published(publication: CTE, cards: CTE, card: Any, subjects: FromClause) -> Column:
    """Gather the publication, the cards by name, and each subject as the first of the cards has it, in order."""
    of_subjects = cast(select(publication.c.rules["subjects"]).scalar_subquery(), JSONB)
    position = cast(of_subjects[cast(subjects.c.id, Text)]["position"].astext, Integer)
    first = (
        select(subjects.c.id, subjects.c.subject, position.label("position"))
        .ext(distinct_on(subjects.c.id))
        .order_by(subjects.c.id, subjects.c.student_id)
        .subquery("first_of_cards")
    )
    in_order = aggregate_order_by(
        func.json_build_array(first.c.id, first.c.subject),
        first.c.position,
        first.c.subject["name"].astext,
        first.c.id,
    )
    any_card = select(json_object(**_members(cards.c, *_OF_CLASS))).order_by(cards.c.student_id)
    by_name = aggregate_order_by(card, *name_order(cards.c.student))
    document = json_object(
        **_members(publication.c, "state", "version", "published_at", "rules"),
        **{"class": any_card.limit(1).scalar_subquery()},
        subjects=select(func.json_agg(in_order)).select_from(first).scalar_subquery(),
        cards=select(func.json_agg(by_name)).select_from(cards).scalar_subquery(),
    )
    return (
        select(document).select_from(publication).where(select(cards.c.student_id).exists()).scalar_subquery()
    )


def _cards(publication: CTE, *members: str) -> CTE:
    """The cards of a publication in force; all of a withdrawn one. Each member is a column.

    The members are the student, those of the class, and `members`: PostgreSQL unpacks a stored card once for all of
    them.
    """
    cards = (
        select(ReportCard.student_id, ReportCard.card)
        .join(publication, publication.c.id == ReportCard.publication_id)
        .where(or_(ReportCard.in_force, publication.c.state == WITHDRAWN))
        .subquery("stored")
    )
    columns = [column(name, JSONB) for name in ("student", *_OF_CLASS, *members)]
    said = func.jsonb_to_record(cards.c.card).table_valued(*columns).render_derived("said", with_types=True)
    return select(cards.c.student_id, *said.c).select_from(cards.join(said, _TRUE)).cte("cards")


def _averages(publication: CTE, cards: CTE) -> Any:
    """The averages of the session's terms until this one as they were published: an object by the name of the term."""
    earlier = (
        select(Term.term, ReportCard.average)
        .join(Term, Term.id == ReportCard.term_id)
        .where(
            ReportCard.student_id == cards.c.student_id,
            Term.session_id == select(publication.c.session_id).scalar_subquery(),
            ReportCard.in_force,
            # Who went to another batch may have a card of a later term there, which is not in this session result.
            Term.term <= select(publication.c.term).scalar_subquery(),
        )
        .correlate(cards)
        .subquery("earlier")
    )
    of_terms = {term: func.max(earlier.c.average).filter(earlier.c.term == term) for term in TERMS}
    return select(json_object(**of_terms)).scalar_subquery()


def _members(document: Any, *names: str) -> dict[str, Any]:
    return {name: document[name] for name in names}
