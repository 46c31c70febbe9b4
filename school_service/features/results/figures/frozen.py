"""What was published of students and of subjects, made of the frozen cards alone.

A card is in force while its publication is PUBLISHED or REOPENED. What is WITHDRAWN is shown to staff, where there is
nothing in force; older versions are shown to staff who ask for them. What students see of their own is less (`as_own`):
docs/decisions.md, "Results".
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import (
    CTE,
    JSON,
    Boolean,
    ColumnElement,
    DateTime,
    FromClause,
    Integer,
    Numeric,
    Text,
    Uuid,
    case,
    cast,
    column,
    func,
    literal,
    literal_column,
    or_,
    select,
)
from sqlalchemy.dialects.postgresql import JSONB, aggregate_order_by, distinct_on
from sqlalchemy.orm import aliased

from school_service.core.reach import Reach
from school_service.core.read_models import Query
from school_service.core.sort_keys import sort_key
from school_service.features.people.guardians import kin
from school_service.features.reach import scopes
from school_service.features.results.figures.rules import one, term_of_student
from school_service.features.results.models import (
    BATCH,
    BOTH,
    COHORT,
    SUPERSEDED,
    SURNAME_FIRST,
    WITHDRAWN,
    Publication,
    ReportCard,
)
from school_service.features.school.models import Batch, Term
from school_service.features.school.sessions.service import is_term_id

Column = ColumnElement[Any]


_NO_POSITION: Column = literal_column("""'{"position": null, "of": null, "tied": false}'::jsonb""", JSONB)

_TERM_RESULT: dict[str, Any] = {
    "student": JSON(),
    "batch": Uuid(),
    "batch_name": Text(),
    "cohort": Uuid(),
    "classroom": Text(),
    "session": JSON(),
    "term": JSON(),
    "version": Integer(),
    "published_at": DateTime(timezone=True),
    "subjects": JSON(),
    "status": Text(),
    "total": Numeric(),
    "obtainable": Integer(),
    "average": Numeric(),
    "grade": Text(),
    "remark": Text(),
    "passed": Integer(),
    "failed": Integer(),
    "batch_figures": JSON(),
    "cohort_figures": JSON(),
    "cumulative": JSON(),
}
"""The members of a card that a term result has, and their types."""

_SUBJECT_RESULT: dict[str, Any] = {
    "subject": JSON(),
    "scores": JSON(),
    "status": Text(),
    "score": Numeric(),
    "points": Numeric(),
    "percent": Numeric(),
    "grade": Text(),
    "remark": Text(),
    "batch": JSON(),
    "cohort": JSON(),
}
"""The members of a subject in a card, and their types."""


def is_own(student_id: Any, user_id: Any, reach: Reach | None = None) -> Column:
    """Tell whether a student's account is this user's, or that of a guardian who may not read their results as staff.

    A guardian who is stopped for the student is none of theirs. With a `reach`, that of the user, whoever looks after
    the student's batch reads as staff.
    """
    return kin.is_own(student_id, user_id, "results", reach)


def published_cards() -> Query:
    """Select cards with what their publication says of them, joined with their terms; of every state."""
    return (
        select(
            ReportCard.student_id,
            ReportCard.code,
            ReportCard.card,
            Publication.rules,
            Publication.logo_id,
            Publication.signature_id,
        )
        .join(Publication, Publication.id == ReportCard.publication_id)
        .join(Term, Term.id == Publication.term_id)
    )


def latest_card(student_id: Any, term: Any, session: Any = None, *, withdrawn: bool) -> CTE:
    """The card of a student in a term that is in force, with what its publication says of it and `state`; or no row.

    `term` is the id of a term, or its name in `session`, by default in the student's latest session that has such a
    term. `withdrawn` tells whether to take what is withdrawn, where nothing is
    in force.
    """
    is_withdrawn = Publication.state == WITHDRAWN
    return (
        _cards_of(student_id, term, session)
        .where(or_(ReportCard.in_force, is_withdrawn) if withdrawn else ReportCard.in_force)
        .order_by(ReportCard.in_force.desc(), Publication.published_at.desc(), Publication.id)
        .limit(1)
        .cte("latest_card" if withdrawn else "card_in_force")
    )


def card_of_version(student_id: Any, term: Any, version: Any, session: Any = None) -> CTE:
    """The card of a student in a term in a version of their batch's results, with its `state`; or no row.

    Of several batches it is that in which a card is in force, else that which published it last.
    """
    return (
        _cards_of(student_id, term, session)
        .where(Publication.version == version)
        .order_by(
            _has_other_in_force(Publication.batch_id).desc(), Publication.published_at.desc(), Publication.id
        )
        .limit(1)
        .cte("card_of_version")
    )


def _has_other_in_force(batch_id: Any) -> Column:
    """Tell whether the student of a card has one of the term in force in a batch."""
    card, publication = aliased(ReportCard), aliased(Publication)
    return (
        select(card.id)
        .join(publication, publication.id == card.publication_id)
        .where(
            card.student_id == ReportCard.student_id,
            card.term_id == ReportCard.term_id,
            card.in_force,
            publication.batch_id == batch_id,
        )
        .correlate_except(card, publication)
        .exists()
    )


def _cards_of(student_id: Any, term: Any, session: Any) -> Query:
    """Select all cards of a student in a term, each with what its publication says of it and its `state`."""
    return (
        published_cards()
        .add_columns(Publication.state, ReportCard.in_force)
        .where(ReportCard.student_id == student_id, is_term_id(term_of_student(student_id, term, session)))
    )


def term_result(found: CTE) -> Query:
    """Select a term result of a card that was found, by the columns of the live one."""
    card = found.c.card
    columns = {name: _member(card, name, kind) for name, kind in _TERM_RESULT.items()}
    columns["student"] = cast(_without_dob(card["student"]), JSON)
    return _in_order(columns, found.c.state)


def own_term_result(found: CTE) -> Query:
    """Select the term result that a student sees of their own card: as much of it as the school's settings show."""
    card = found.c.card
    columns = {name: _member(card, name, kind) for name, kind in _TERM_RESULT.items()}
    subject, number = literal_column("listed.subject", JSONB), literal_column("listed.number", Integer)
    listed = (
        func.jsonb_array_elements(card["subjects"])
        .table_valued(column("subject", JSONB), with_ordinality="number")
        .render_derived(name="listed")
    )
    shown = as_own(subject, card, batch="batch", cohort="cohort").op("||")(
        func.jsonb_build_object("scores", _published_scores(subject["scores"]))
    )
    subjects = (
        select(
            func.coalesce(func.jsonb_agg(aggregate_order_by(shown, number)), literal_column("'[]'::jsonb"))
        )
        .select_from(listed)
        .correlate(found)
        .scalar_subquery()
    )
    columns["student"] = cast(_without_dob(card["student"]), JSON)
    columns["subjects"] = cast(subjects, JSON)
    figures = {"batch": "batch_figures", "cohort": "cohort_figures"}
    for name, member in figures.items():
        columns[member] = cast(_figures(card[member], card, name), JSON)
    columns["cumulative"] = cast(as_own(card["cumulative"], card, **figures), JSON)
    return _in_order(columns, found.c.state)


def as_own(document: Any, card: Any, *, batch: str, cohort: str) -> Column:
    """A part of a card as its student sees it: positions as the card says; `batch` and `cohort` name the figures."""
    shown: Column = document.op("||", return_type=JSONB())(
        func.jsonb_build_object(
            batch,
            _figures(document[batch], card, "batch"),
            cohort,
            _figures(document[cohort], card, "cohort"),
        )
    )
    return shown


def shows_position(card: Any, name: str) -> Column:
    """Tell whether a card shows the position in the batch, or in the cohort."""
    positions = card["positions"].astext
    return or_(positions == BOTH, positions == {"batch": BATCH, "cohort": COHORT}[name])


def printed_class(card: Any) -> Column:
    """The class as a card has it on paper: with the arm in cards of the first layout, which do not say."""
    in_full = card["classroom"].astext + " " + card["batch_name"].astext
    return func.coalesce(card["class_name"].astext, in_full)


def printed_name(card: Any) -> Column:
    """The student's name as a card has it on paper: the surname last where the card does not say."""
    student = card["student"]
    first, last = student["first_name"].astext, student["last_name"].astext
    middle = func.nullif(student["middle_name"].astext, "")
    return case(
        (card["name_order"].astext == SURNAME_FIRST, func.concat_ws(" ", last, first, middle)),
        else_=func.concat_ws(" ", first, middle, last),
    )


def subject_results(
    scope: CTE, roster: CTE, cohort_subject_id: Any, batch_id: Any, live: Query, reach: Reach | None = None
) -> Query:
    """Select the results of a cohort subject, by position, then by name: as they were published, else live.

    `scope` is of the cohort and the term, `roster` who belongs to it, `batch_id` None for all batches of the cohort;
    `live` selects the live results of the same, which are not computed where all of them are published.
    """
    current = _current_publications(scope, batch_id)
    cards = (
        select(ReportCard.card, current.c.state, current.c.version)
        # Whose card is withdrawn in a batch may have one of another that is in force.
        .ext(distinct_on(ReportCard.student_id))
        .join(current, current.c.id == ReportCard.publication_id)
        .where(or_(ReportCard.in_force, current.c.state == WITHDRAWN))
        .order_by(
            ReportCard.student_id,
            ReportCard.in_force.desc(),
            current.c.published_at.desc(),
            current.c.id,
        )
        .subquery("cards")
    )
    listed = (
        func.jsonb_array_elements(cards.c.card["subjects"])
        .table_valued(column("subject", JSONB))
        .render_derived(name="listed")
    )
    subject = listed.c.subject
    student = cards.c.card["student"]
    frozen = (
        select(
            cast(_without_dob(student), JSON).label("student"),
            *(_member(subject, name, kind).label(name) for name, kind in _SUBJECT_RESULT.items()),
            cards.c.state,
            cards.c.version,
            *_order(student, subject["batch" if batch_id is not None else "cohort"]),
        )
        .select_from(cards)
        .join(listed, literal(True))
        .where(subject["subject"]["id"].astext == cast(cohort_subject_id, Text))
    )
    if reach is not None:
        batch = cast(cards.c.card["batch"].astext, Uuid)
        frozen = frozen.where(scopes.results_in_reach(reach, cohort_subject_id, batch))
        if batch_id is not None:
            frozen = frozen.where(scopes.arms_in_reach(reach, batch_id))
    found = live.order_by(None).subquery("live")
    has_card = (
        select(ReportCard.id)
        .join(current, current.c.id == ReportCard.publication_id)
        .where(ReportCard.student_id == cast(_text(found.c.student, "id"), Uuid))
    )
    is_in_published = (
        select(roster.c.student_id)
        .join(current, current.c.batch_id == roster.c.batch_id)
        .where(roster.c.student_id == cast(_text(found.c.student, "id"), Uuid))
    )
    rest = select(
        *found.c, *_order(found.c.student, found.c.batch if batch_id is not None else found.c.cohort)
    ).where(
        _is_some_open(scope, current, batch_id),
        ~has_card.exists(),
        ~is_in_published.exists(),
    )
    either = frozen.union_all(rest).subquery("either")
    shown = [found.name for found in live.selected_columns]
    return select(*(either.c[name] for name in shown)).order_by(
        either.c.in_order.nulls_last(), *(either.c[name] for name in _BY_NAME)
    )


def _current_publications(scope: CTE, batch_id: Any) -> CTE:
    """The newest version of each batch of the scope's cohort in its term, or of one batch: in force, or withdrawn."""
    newer = Publication.__table__.alias("newer")
    replaced = select(newer.c.id).where(
        newer.c.batch_id == Publication.batch_id,
        newer.c.term_id == Publication.term_id,
        newer.c.version > Publication.version,
    )
    found = select(
        Publication.id,
        Publication.batch_id,
        Publication.state,
        Publication.version,
        Publication.published_at,
    ).where(
        Publication.cohort_id == one(scope, "cohort_id"),
        Publication.term_id == one(scope, "term_id"),
        Publication.state != SUPERSEDED,
        ~replaced.exists(),
    )
    if batch_id is not None:
        found = found.where(Publication.batch_id == batch_id)
    return found.cte("current_publications")


def _is_some_open(scope: CTE, current: CTE, batch_id: Any) -> Column:
    """Tell whether a batch of the cohort, or the one, has no publication: it has nothing to do with a row."""
    published = select(current.c.id).where(current.c.batch_id == Batch.id)
    found = select(Batch.id).where(Batch.cohort_id == one(scope, "cohort_id"), ~published.exists())
    if batch_id is not None:
        found = found.where(Batch.id == batch_id)
    return found.exists()


def _order(student: Any, figures: Any) -> list[Any]:
    """The columns that results are ordered by."""
    return [
        cast(_text(figures, "position"), Integer).label("in_order"),
        *(part.label(name) for name, part in zip(_BY_NAME, name_order(student), strict=True)),
    ]


_BY_NAME = ("by_name", "by_number", "by_id")


def name_order(student: Any) -> tuple[Column, ...]:
    """Order students by name as a result or a card names them, JSON, in the order of a list of students."""
    return (
        sort_key(_text(student, "last_name"), _text(student, "first_name")),
        _text(student, "admission_number").collate("C"),
        _text(student, "id").collate("C"),
    )


def _figures(figures: Any, card: Any, name: str) -> Column:
    """Class figures, without the position where the card does not show it to its student."""
    return case((shows_position(card, name), figures), else_=figures.op("||")(_NO_POSITION))


def _published_scores(scores: Any) -> Column:
    """Those scores of an array that are published singly, in their order."""
    one_score, number = literal_column("shown.score", JSONB), literal_column("shown.number", Integer)
    listed: FromClause = (
        func.jsonb_array_elements(scores)
        .table_valued(column("score", JSONB), with_ordinality="number")
        .render_derived(name="shown")
    )
    return (
        select(
            func.coalesce(
                func.jsonb_agg(aggregate_order_by(one_score, number)), literal_column("'[]'::jsonb")
            )
        )
        .select_from(listed)
        .where(cast(one_score["publish"], Boolean))
        .scalar_subquery()
    )


def _in_order(columns: dict[str, Any], state: Column) -> Query:
    """Select the columns of a term result in the order that the live one has them."""
    names = list(columns)
    names.insert(names.index("version"), "state")
    return select(*({**columns, "state": state}[name].label(name) for name in names))


def _member(document: Any, name: str, kind: Any) -> Column:
    value = document[name]
    return cast(value, JSON) if isinstance(kind, JSON) else cast(value.astext, kind)


def _without_dob(student: Any) -> Column:
    """A student, as results name them: their date of birth is for the card alone."""
    found: Column = student.op("-", return_type=JSONB())(literal_column("'dob'::text"))
    return found


def _text(document: Any, member: str) -> Column:
    found: Column = document.op("->>", return_type=Text())(literal_column(f"'{member}'"))
    return found
