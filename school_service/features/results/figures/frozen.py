"""The published results of students and of subjects, made of the frozen cards alone.

A card is in force while its publication is PUBLISHED or REOPENED. A WITHDRAWN card is shown to staff if no card is in
force; older versions are shown to staff on request. Students see less of their own (`as_own`): docs/rules/results.md,
"Students and guardians".
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import (
    CTE,
    ColumnElement,
    FromClause,
    Text,
    Uuid,
    case,
    cast,
    false,
    func,
    literal,
    literal_column,
    or_,
    select,
    true,
    union_all,
)
from sqlalchemy.dialects.postgresql import aggregate_order_by, distinct_on

from school_service.core.reach import Reach
from school_service.core.read_models import Query
from school_service.core.sort_keys import sort_key
from school_service.core.texts import SURNAME_FIRST
from school_service.features.people.guardians import kin
from school_service.features.reach import scopes
from school_service.features.results.computing.class_term.entered import SORT_KEYS
from school_service.features.results.computing.class_term.scopes import (
    batch_of_card,
    subjects_of,
    term_of_student,
    value_of,
)
from school_service.features.results.models import SUPERSEDED, WITHDRAWN, Publication, ReportCard
from school_service.features.school.models import Batch, Term
from school_service.features.school.sessions.service import is_term_id
from school_service.features.scores.models import BATCH, BOTH, COHORT

Column = ColumnElement[Any]


def is_own(student_id: Any, user_id: Any, reach: Reach | None = None) -> Column:
    """Tell whether a student's account is this user's, or a guardian's who may not read their results as staff.

    A guardian stopped for the student is none of theirs. With a `reach`, the user's, a teacher of the student's batch
    reads as staff. A `user_id` of None is a client's, without an account.
    """
    return false() if user_id is None else kin.is_own(student_id, user_id, "results", reach)


def term_asked(
    student_id: Any, term: Any, session: Any, user_id: Any, reach: Reach | None = None
) -> tuple[Column, Column]:
    """Tell whether a reading is a student's own (`is_own`), and the id of the term that it is of, as text."""
    # PostgreSQL plans a condition anew wherever it stands: these stand once.
    asking = select(is_own(student_id, user_id, reach).label("own")).cte("asking")
    own = value_of(asking, "own")
    asked = select(term_of_student(student_id, term, session, own).label("term_id")).cte("asked")
    return own, value_of(asked, "term_id")


def batch_in_reach(reach: Reach | None, batch_id: Any) -> Column:
    """Tell whether the results of a batch are in reach: without a reach all are."""
    return true() if reach is None else scopes.is_form_batch(reach, batch_id)


def result_in_reach(reach: Reach | None, student_id: Any, batch_id: Any) -> Column:
    """Tell whether a term result is in reach: its student is now, or its batch of then is looked after."""
    if reach is None:
        return true()
    return or_(scopes.students_in_reach(reach, student_id), scopes.is_form_batch(reach, batch_id))


def is_of_batch_in_reach(reach: Reach, row: FromClause) -> Column:
    """Tell of a row of a roster whether its batch is in reach."""
    return batch_in_reach(reach, row.c.batch_id)


def is_result_in_reach(reach: Reach, row: FromClause) -> Column:
    """Tell of a row of a roster whether its term result is in reach."""
    return result_in_reach(reach, row.c.student_id, row.c.batch_id)


def published_cards() -> Query:
    """Select cards with the columns of their publication, joined with their terms; of every state."""
    return (
        select(
            ReportCard.student_id,
            ReportCard.code,
            ReportCard.card,
            ReportCard.photo,
            ReportCard.in_force,
            Publication.state,
            Publication.rules,
            Publication.logo_id,
            Publication.signature_id,
        )
        .join(Publication, Publication.id == ReportCard.publication_id)
        .join(Term, Term.id == Publication.term_id)
    )


def card_of_student(student_id: Any, term_id: Any, version: Any = None) -> CTE:
    """The card of a student in a term, by its id as text (`term_of_student`), as `published_cards` has it, or no row.

    It is the card in force, else the last withdrawn one. With a `version` it is the card of this version; if several
    batches have one, of the batch with a card in force, else of the batch published last.
    """
    is_meant = or_(ReportCard.in_force, Publication.state == WITHDRAWN)
    is_first: Any = ReportCard.in_force
    if version is not None:
        is_meant = Publication.version == version
        is_first = Publication.batch_id == batch_of_card(ReportCard.student_id, ReportCard.term_id)
    return (
        published_cards()
        .where(ReportCard.student_id == student_id, is_term_id(term_id), is_meant)
        .order_by(is_first.desc(), Publication.published_at.desc(), Publication.id)
        .limit(1)
        .cte("card_of_student")
    )


def shows_position(card: Any, name: str) -> Column:
    """Tell whether a card shows the position in the batch, or in the cohort."""
    positions = card["positions"].astext
    return or_(positions == BOTH, positions == {"batch": BATCH, "cohort": COHORT}[name])


def printed_class(card: Any) -> Column:
    """The class as a card has it on paper: with the arm in cards of the first layout, without `class_name`."""
    in_full = card["classroom"].astext + " " + card["batch_name"].astext
    return func.coalesce(card["class_name"].astext, in_full)


def printed_name(card: Any) -> Column:
    """The student's name as a card has it on paper: the surname last if the card gives no order."""
    student = card["student"]
    first, last = student["first_name"].astext, student["last_name"].astext
    middle = func.nullif(student["middle_name"].astext, "")
    return case(
        (card["name_order"].astext == SURNAME_FIRST, func.concat_ws(" ", last, first, middle)),
        else_=func.concat_ws(" ", first, middle, last),
    )


def subject_results(current: CTE, cohort_subject_id: Any) -> CTE:
    """The results of a cohort subject on the cards of `current_publications`: those in force, else those withdrawn."""
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
    listed = subjects_of(cards.c.card["subjects"])
    return (
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


def students_without_live(current: CTE, people: CTE) -> Column:
    """The students without live results: they have a card of `current_publications`, or belong to its batches."""
    with_card = select(ReportCard.student_id).join(current, current.c.id == ReportCard.publication_id)
    of_batch = select(people.c.student_id).join(current, current.c.batch_id == people.c.batch_id)
    students = with_card.union(of_batch).subquery("held")
    return select(func.json_agg(students.c.student_id)).scalar_subquery()


def listed_results(cards: CTE, people: CTE, is_live: Any) -> tuple[Any, Any]:
    """Columns `published`, the results on cards, and `by_name`, the students of cards and the people in one order.

    The people are those of live results: there are none unless `is_live`. Each of `by_name` is an array: whether a card
    is meant, and the student's id.
    """
    of_cards = zip(SORT_KEYS, name_order(cards.c.student), strict=True)
    named = union_all(
        select(
            literal(True).label("is_card"),
            cards.c.student_id,
            *(part.collate("C").label(name) for name, part in of_cards),
        ),
        select(
            literal(False),
            people.c.student_id,
            *(cast(people.c[name], Text).collate("C") for name in SORT_KEYS),
        ).where(is_live),
    ).subquery("named")
    student = func.json_build_array(named.c.is_card, named.c.student_id)
    by_name = select(func.json_agg(aggregate_order_by(student, *(named.c[name] for name in SORT_KEYS))))
    said = func.json_build_array(cards.c.student, cards.c.subject, cards.c.state, cards.c.version)
    published = select(func.json_agg(said)).select_from(cards)
    return published.scalar_subquery().label("published"), by_name.scalar_subquery().label("by_name")


def current_publications(scope: CTE, batch_id: Any) -> CTE:
    """The newest version of each batch of the scope's cohort in its term, or of one batch: in force, or withdrawn."""
    newer = Publication.__table__.alias("newer")
    replaced = select(newer.c.id).where(
        newer.c.batch_id == Publication.batch_id,
        newer.c.term_id == Publication.term_id,
        newer.c.version > Publication.version,
    )
    query = select(
        Publication.id,
        Publication.batch_id,
        Publication.state,
        Publication.version,
        Publication.published_at,
    ).where(
        Publication.cohort_id == value_of(scope, "cohort_id"),
        Publication.term_id == value_of(scope, "term_id"),
        Publication.state != SUPERSEDED,
        ~replaced.exists(),
    )
    if batch_id is not None:
        query = query.where(Publication.batch_id == batch_id)
    return query.cte("current_publications")


def is_some_open(scope: CTE, current: CTE, batch_id: Any) -> Column:
    """Tell whether a batch of the cohort, or the one, has no publication: it has nothing to do with a row."""
    published = select(current.c.id).where(current.c.batch_id == Batch.id)
    query = select(Batch.id).where(Batch.cohort_id == value_of(scope, "cohort_id"), ~published.exists())
    if batch_id is not None:
        query = query.where(Batch.id == batch_id)
    return query.exists()


def name_order(student: Any) -> tuple[Column, ...]:
    """Order students by name as a result or a card names them, JSON, in the order of a list of students."""
    return (
        sort_key(_text(student, "last_name"), _text(student, "first_name")),
        _text(student, "admission_number").collate("C"),
        _text(student, "id").collate("C"),
    )


def _text(document: Any, member: str) -> Column:
    text: Column = document.op("->>", return_type=Text())(literal_column(f"'{member}'"))
    return text
