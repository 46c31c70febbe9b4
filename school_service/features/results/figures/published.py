"""Broadsheets of what was published: made of the frozen cards alone, and of the publication that they belong to."""

from __future__ import annotations

from typing import Any

from sqlalchemy import (
    CTE,
    JSON,
    Boolean,
    ColumnElement,
    FromClause,
    Integer,
    Label,
    Numeric,
    Text,
    Uuid,
    cast,
    column,
    func,
    literal,
    null,
    or_,
    select,
)
from sqlalchemy.dialects.postgresql import JSONB, distinct_on

from school_service.core.read_models import Query
from school_service.features.classes.subject_teachers.reads import NOBODY
from school_service.features.results.figures.broadsheets import broadsheet_of
from school_service.features.results.figures.frozen import name_order, printed_class
from school_service.features.results.figures.rules import mean_over, one
from school_service.features.results.models import (
    GRADED,
    IN_FORCE,
    SURNAME_FIRST,
    WITHDRAWN,
    Publication,
    ReportCard,
)
from school_service.features.school.cohorts.reads import session_by_id_or_name
from school_service.features.school.models import TERMS, Term
from school_service.features.school.sessions.service import is_term

Column = ColumnElement[Any]


def latest_publication(batch_id: Any, term: Any) -> CTE:
    """The newest version of a batch's results in a term, in whichever state: one row, or none."""
    return (
        _publications()
        .where(Publication.batch_id == batch_id, is_term(term))
        .order_by(Publication.version.desc())
        .limit(1)
        .cte("publication")
    )


def latest_of_session(batch_id: Any, session: Any) -> CTE:
    """The newest version of the latest term of a session in which a batch's results are published, or reopened."""
    return (
        _publications()
        .where(
            Publication.batch_id == batch_id,
            Publication.session_id == session_by_id_or_name(session).scalar_subquery(),
            IN_FORCE,
        )
        # The terms' own order is that of the alphabet: FIRST, SECOND, THIRD.
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
        Publication.rules["subjects"].label("subjects"),
        cast(Publication.rules["pass_mark"].astext, Numeric).label("pass_mark"),
        cast(Publication.rules["percent_places"].astext, Integer).label("places"),
    ).join(Term, Term.id == Publication.term_id)


def published_broadsheet(publication: CTE, *, printed: bool) -> Query:
    """Select the broadsheet of a published term, by the columns of the live one."""
    cards = _cards(publication)
    card, pass_mark = cards.c.card, one(publication, "pass_mark")
    average = _number(card["average"])
    students = select(
        *_whose(cards),
        _number(card["total"]).label("total"),
        average.label("average"),
        card["grade"].astext.label("grade"),
        *_places(card),
        (cast(card["obtainable"].astext, Integer) // 100).label("graded"),
        card["status"].astext.label("status"),
        (average >= pass_mark).label("passed"),
    ).cte("published_students")
    subject = _listed(card["subjects"], "subject")
    shown = subject.c.subject
    percent = _number(shown["percent"])
    results = (
        select(
            cards.c.student_id,
            cast(shown["subject"]["id"].astext, Uuid).label("id"),
            shown["subject"].label("subject"),
            percent.label("percent"),
            shown["grade"].astext.label("grade"),
            cast(shown["batch"]["position"].astext, Integer).label("position"),
            shown["status"].astext.label("status"),
            (percent >= pass_mark).label("passed"),
            *_class_figures(shown["batch"]),
        )
        .select_from(cards.join(subject, literal(True)))
        .cte("published_results")
    )
    return _broadsheet(publication, cards, students=students, results=results, printed=printed, of_term=True)


def session_broadsheet(publication: CTE, *, printed: bool) -> Query:
    """Select the broadsheet of a session: of those who have a card in its latest published term, what that says."""
    cards = _cards(publication)
    card, pass_mark = cards.c.card, one(publication, "pass_mark")
    cumulative = card["cumulative"]
    average = _number(cumulative["average"])
    subject = _listed(cumulative["subjects"], "subject")
    shown = subject.c.subject
    has = func.jsonb_build_object("subject", func.jsonb_build_object("base", shown["base"]))
    taught = (
        func.jsonb_each(one(publication, "subjects"))
        .table_valued(column("key", Text), column("value", JSONB))
        .render_derived(name="taught")
    )
    is_elective = func.coalesce(cast(taught.c.value["elective"], Boolean), literal(False))
    percents = (
        select(
            cards.c.student_id,
            cast(func.coalesce(taught.c.key, shown["base"].astext), Uuid).label("id"),
            shown.op("||")(func.jsonb_build_object("elective", is_elective)).label("subject"),
            _number(shown["percent"]).label("percent"),
            shown["grade"].astext.label("grade"),
            # A subject that was dropped earlier is shown, and not averaged.
            card["subjects"].contains(func.jsonb_build_array(has, type_=JSONB)).label("averaged"),
        )
        .select_from(cards.join(subject, literal(True)))
        .outerjoin(taught, taught.c.value["base"].astext == shown["base"].astext)
        .cte("percents")
    )
    whole: dict[str, Any] = {"partition_by": percents.c.id}
    percent = percents.c.percent
    results = select(
        *percents.c,
        cast(null(), Integer).label("position"),
        literal(GRADED, Text).label("status"),
        (percent >= pass_mark).label("passed"),
        mean_over(percent, percents.c.id).label("class_average"),
        func.min(percent).over(**whole).label("class_lowest"),
        func.max(percent).over(**whole).label("class_highest"),
    ).cte("published_results")
    averaged = (
        select(
            percents.c.student_id,
            func.sum(percent).filter(percents.c.averaged).label("total"),
            func.count(percent).filter(percents.c.averaged).label("graded"),
        )
        .group_by(percents.c.student_id)
        .cte("averaged")
    )
    students = (
        select(
            *_whose(cards),
            func.coalesce(averaged.c.total, 0).label("total"),
            average.label("average"),
            cumulative["grade"].astext.label("grade"),
            *_places(cumulative),
            func.coalesce(averaged.c.graded, 0).label("graded"),
            card["status"].astext.label("status"),
            (average >= pass_mark).label("passed"),
            _averages(publication, cards).label("averages"),
        )
        .select_from(cards)
        .outerjoin(averaged, averaged.c.student_id == cards.c.student_id)
        .cte("published_students")
    )
    return _broadsheet(publication, cards, students=students, results=results, printed=printed, of_term=False)


def _broadsheet(
    publication: CTE, cards: CTE, *, students: CTE, results: CTE, printed: bool, of_term: bool
) -> Query:
    subject = results.c.subject
    # A term's subject is named by itself, a session's by what it was published as.
    base = subject["base"].astext
    first = (
        select(results.c.id, subject.label("subject"), cast(base, Uuid).label("base"))
        .ext(distinct_on(results.c.id))
        .order_by(results.c.id, results.c.student_id)
        .subquery("first")
    )
    submission = cast(one(publication, "subjects"), JSONB)[cast(first.c.id, Text)]
    taught = select(
        first.c.id,
        first.c.base,
        first.c.subject["name"].astext.label("name"),
        first.c.subject["code"].astext.label("code"),
        cast(first.c.subject["elective"], Boolean).label("elective"),
        # Nothing else is published.
        literal(True).label("submitted"),
        submission["submitted_by_name"].astext.label("submitted_by"),
        func.coalesce(submission["teachers"], NOBODY).label("teachers"),
    ).subquery("taught")
    card = select(cards.c.card).order_by(cards.c.student_id).limit(1).cte("any_card").c.card
    columns = broadsheet_of(students=students, results=results, taught=taught, printed=printed)
    more: tuple[Label[Any], ...] = ()
    if printed:
        more = (
            card["letterhead"]["name"].astext.label("school_name"),
            (card["term_name"].astext if of_term else cast(null(), Text)).label("term_name"),
            publication.c.places.label("places"),
            func.statement_timestamp().label("moment"),
            printed_class(card).label("class_name"),
            card["positions"].astext.label("positions"),
            # Broadsheets of cards that do not say have the surname first, and days in UTC, as they had.
            func.coalesce(card["name_order"].astext, SURNAME_FIRST).label("name_order"),
            func.coalesce(card["time_zone"].astext, "UTC").label("time_zone"),
        )
    return select(
        cast(card["batch"].astext, Uuid).label("batch"),
        card["batch_name"].astext.label("batch_name"),
        cast(card["cohort"].astext, Uuid).label("cohort"),
        card["classroom"].astext.label("classroom"),
        cast(card["session"], JSON).label("session"),
        (cast(card["term"], JSON) if of_term else cast(null(), JSON)).label("term"),
        publication.c.state,
        publication.c.version,
        publication.c.published_at,
        *columns,
        *more,
    ).select_from(publication.join(card.table, literal(True)))


def _cards(publication: CTE) -> CTE:
    """The cards of a publication that are in force; all of one that is withdrawn."""
    return (
        select(ReportCard.student_id, ReportCard.card)
        .join(publication, publication.c.id == ReportCard.publication_id)
        .where(or_(ReportCard.in_force, publication.c.state == WITHDRAWN))
        .cte("cards")
    )


def _whose(cards: CTE) -> tuple[Label[Any], ...]:
    """The columns of whose card it is: nothing is told of a student here but what results name."""
    student = cards.c.card["student"]
    return (
        cards.c.student_id.label("student_id"),
        cast(student.op("-")(literal("dob", Text)), JSON).label("student"),
        func.row_number().over(order_by=name_order(student)).label("by_name"),
    )


def _places(card: Any) -> tuple[Label[Any], ...]:
    figures = card["batch_figures"]
    return (
        cast(figures["position"].astext, Integer).label("position"),
        cast(figures["tied"], Boolean).label("tied"),
        cast(card["cohort_figures"]["position"].astext, Integer).label("cohort_position"),
        *_class_figures(figures),
    )


def _class_figures(figures: Any) -> tuple[Label[Any], ...]:
    return tuple(_number(figures[name]).label(f"class_{name}") for name in ("average", "lowest", "highest"))


def _averages(publication: CTE, cards: CTE) -> Any:
    """The averages of the session's terms until this one as they were published: an object by the name of the term."""
    earlier = (
        select(Term.term, ReportCard.average)
        .join(Term, Term.id == ReportCard.term_id)
        .where(
            ReportCard.student_id == cards.c.student_id,
            Term.session_id == one(publication, "session_id"),
            ReportCard.in_force,
            # Who went to another batch may have a card of a later term there, which is not in this session result.
            Term.term <= one(publication, "term"),
        )
        .correlate(cards)
        .subquery("earlier")
    )
    of_term = [
        part for term in TERMS for part in (term, func.max(earlier.c.average).filter(earlier.c.term == term))
    ]
    return select(func.json_build_object(*of_term, type_=JSON)).scalar_subquery()


def _listed(array: Any, name: str) -> FromClause:
    elements = func.jsonb_array_elements(array).table_valued(column(name, JSONB))
    return elements.render_derived(name="listed")


def _number(value: Any) -> Column:
    return cast(value.astext, Numeric)
