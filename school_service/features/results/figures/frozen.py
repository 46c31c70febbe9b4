"""What was published of students and of subjects, made of the frozen cards alone.

A card is in force while its publication is PUBLISHED or REOPENED. What is WITHDRAWN is shown to staff, where there is
nothing in force; older versions are shown to staff who ask for them. What students see of their own is less (`as_own`):
docs/rules/results.md, "Students and guardians".
"""

from __future__ import annotations

from typing import Any, NamedTuple

from sqlalchemy import (
    CTE,
    ColumnElement,
    Text,
    Uuid,
    and_,
    case,
    cast,
    column,
    func,
    literal,
    literal_column,
    or_,
    select,
    union_all,
)
from sqlalchemy.dialects.postgresql import JSONB, aggregate_order_by, distinct_on
from sqlalchemy.orm import aliased

from school_service.core.reach import Reach
from school_service.core.read_models import Query
from school_service.core.sort_keys import sort_key
from school_service.features.people.guardians import kin
from school_service.features.results.computing.class_term.entered import SORT_KEYS
from school_service.features.results.computing.class_term.scopes import one, term_of_student
from school_service.features.results.models import SUPERSEDED, WITHDRAWN, Publication, ReportCard
from school_service.features.school.models import Batch, Term
from school_service.features.school.sessions.service import is_term_id
from school_service.features.scores.models import BATCH, BOTH, COHORT, SURNAME_FIRST

Column = ColumnElement[Any]


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


class PublishedSubject(NamedTuple):
    """What is published of a cohort subject in a term.

    `cards`: what the cards in force say of it, or those withdrawn of who has none. `held`: the students whose results
    are not live, since they have a card, or belong to a batch that is published. `is_some_open` tells whether results
    of a batch are not published.
    """

    cards: CTE
    held: Column
    is_some_open: Column


def subject_results(people: CTE, scope: CTE, cohort_subject_id: Any, batch_id: Any) -> PublishedSubject:
    """Find what is published of a cohort subject in the term of a scope; of all batches, or of the one.

    `people` are those on the roster of the scope.
    """
    current = _current_publications(scope, batch_id)
    cards = (
        select(ReportCard.student_id, ReportCard.card, current.c.state, current.c.version)
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
        .subquery("newest_cards")
    )
    listed = (
        func.jsonb_array_elements(cards.c.card["subjects"])
        .table_valued(column("subject", JSONB))
        .render_derived(name="listed")
    )
    found = (
        select(
            cards.c.student_id,
            cards.c.card["student"].label("student"),
            cast(cards.c.card["batch"].astext, Uuid).label("batch_id"),
            listed.c.subject,
            cards.c.state,
            cards.c.version,
        )
        .select_from(cards)
        .join(listed, literal(True))
        .where(listed.c.subject["subject"]["id"].astext == cast(cohort_subject_id, Text))
        .cte("published_results")
    )
    with_card = select(ReportCard.student_id).join(current, current.c.id == ReportCard.publication_id)
    of_batch = select(people.c.student_id).join(current, current.c.batch_id == people.c.batch_id)
    held = with_card.union(of_batch).subquery("held")
    return PublishedSubject(
        found,
        select(func.json_agg(held.c.student_id)).scalar_subquery(),
        _is_some_open(scope, current, batch_id),
    )


def listed_results(cards: CTE, people: CTE) -> tuple[Any, Any]:
    """Columns `published` and `by_name`: what cards say, and the places of the people, all in one order by name."""
    order = [*zip(SORT_KEYS, name_order(cards.c.student), strict=True)]
    named = union_all(
        select(
            literal(True).label("is_card"),
            cards.c.student_id,
            *(part.collate("C").label(name) for name, part in order),
        ),
        select(
            literal(False),
            people.c.student_id,
            *(cast(people.c[name], Text).collate("C") for name in SORT_KEYS),
        ),
    ).subquery("named")
    place = func.row_number().over(order_by=[named.c[name] for name, _ in order]).label("place")
    numbered = select(named.c.is_card, named.c.student_id, place).cte("numbered")
    is_card = and_(numbered.c.is_card, numbered.c.student_id == cards.c.student_id)
    is_person = and_(~numbered.c.is_card, numbered.c.student_id == people.c.student_id)
    row = func.json_build_array(
        cards.c.student, cards.c.subject, cards.c.state, cards.c.version, numbered.c.place
    )
    published = select(func.json_agg(row)).select_from(cards).join(numbered, is_card)
    by_name = (
        select(func.json_agg(aggregate_order_by(numbered.c.place, people.c.number)))
        .select_from(people)
        .join(numbered, is_person)
    )
    return published.scalar_subquery().label("published"), by_name.scalar_subquery().label("by_name")


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


def name_order(student: Any) -> tuple[Column, ...]:
    """Order students by name as a result or a card names them, JSON, in the order of a list of students."""
    return (
        sort_key(_text(student, "last_name"), _text(student, "first_name")),
        _text(student, "admission_number").collate("C"),
        _text(student, "id").collate("C"),
    )


def _text(document: Any, member: str) -> Column:
    found: Column = document.op("->>", return_type=Text())(literal_column(f"'{member}'"))
    return found
