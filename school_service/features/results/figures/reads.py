"""Read models of results and broadsheets: one row each, of which `answers` makes what is answered.

A row has what is published and, where nothing is, or live figures are asked for, what was entered (`class_term`): what
is not asked for is null, and PostgreSQL does not look it up.
"""

from __future__ import annotations

from typing import Any
from uuid import UUID

from sqlalchemy import ColumnElement, FromClause, Uuid, and_, case, cast, false, func, not_, null, or_, select

from school_service.core.reach import Reach
from school_service.core.read_models import Query, read_model, school_value
from school_service.features.reach import scopes
from school_service.features.results.computing.class_term.entered import class_term
from school_service.features.results.computing.class_term.scopes import (
    one,
    scope_of_batch,
    scope_of_student,
    scope_of_subject,
)
from school_service.features.results.figures import frozen, published
from school_service.features.school.cohorts.reads import class_name
from school_service.features.school.settings.service import time_zone
from school_service.features.scores.models import Submission

Column = ColumnElement[Any]


@read_model
def student_in_term(
    student_id: UUID,
    term: str,
    user_id: UUID | None = None,
    session: str | None = None,
    live: bool | None = None,
    version: int | None = None,
    reach: Reach | None = None,
) -> Query:
    """Select what a term result of a student is made of: a `card` with its `state`, or what was `entered`.

    `term` is the id of a term or its name in the session, by default their latest that has such a term. With a
    `version` it is that of their batch's results. `user_id` is whose token asks: where that is the student's `own`, or
    a guardian's, the card is the one in force, and there are neither live figures nor versions.
    """
    is_own = false() if user_id is None else frozen.is_own(student_id, user_id, reach)
    cards: list[tuple[Any, FromClause]] = []
    if version is not None:
        cards = [(not_(is_own), frozen.card_of_version(student_id, term, version, session))]
    elif live is None:
        cards = [(not_(is_own), frozen.latest_card(student_id, term, session, withdrawn=True))]
        if user_id is not None:
            cards.append((is_own, frozen.latest_card(student_id, term, session, withdrawn=False)))
    of = class_term(
        scope_of_student(student_id, term, session),
        in_reach=None if reach is None else lambda row: _is_reached(reach, row.c.student_id, row.c.batch_id),
    )
    is_live = false() if version is not None else not_(is_own)
    if live is None and cards:
        is_live = and_(is_live, ~select(cards[0][1].c.state).exists())
    if reach is not None:
        # Of a class out of reach nothing is computed.
        is_live = and_(is_live, _is_reached(reach, student_id, one(of.scope, "batch_id")))
    return select(
        is_own.label("own"),
        *(_of_card(cards, name, student_id, reach).label(name) for name in ("card", "state")),
        *of.columns(is_live),
    )


def _of_card(cards: list[tuple[Any, FromClause]], name: str, student_id: Any, reach: Reach | None) -> Any:
    """A column of the card that is asked for, where that is in reach."""

    def column(card: FromClause) -> Any:
        found = select(card.c[name])
        if reach is not None:
            batch_id = cast(card.c.card["batch"].astext, Uuid)
            found = found.where(_is_reached(reach, student_id, batch_id))
        return found.scalar_subquery()

    return case(*((is_asked, column(card)) for is_asked, card in cards)) if cards else null()


def _is_reached(reach: Reach, student_id: Any, batch_id: Any) -> Column:
    """Tell whether a term result is in reach: its student is now, or belonged then to a batch that is looked after."""
    return or_(scopes.students_in_reach(reach, student_id), scopes.is_form_batch(reach, batch_id))


@read_model
def subject_in_term(
    cohort_subject_id: UUID,
    term: str,
    batch_id: UUID | None = None,
    live: bool | None = None,
    reach: Reach | None = None,
) -> Query:
    """Select what the results of a cohort subject are made of: those `published`, and what was `entered`.

    `term` is the id of a term or its name in the cohort's session. With a batch, those who are in it. `held` are the
    students whose results are not live, since they, or their batches, are published. `by_name` numbers the students of
    `published` and those of the roster, all in one order.
    """
    of = class_term(
        scope_of_subject(cohort_subject_id, term),
        cohort_subject_id=cohort_subject_id,
        session=False,
        in_reach=None
        if reach is None
        else lambda row: scopes.results_in_reach(reach, cohort_subject_id, row.c.batch_id),
    )
    is_asked = None
    if reach is not None and batch_id is not None:
        is_asked = scopes.arms_in_reach(reach, batch_id)
    if live is not None:
        return select(
            null().label("published"), null().label("held"), null().label("by_name"), *of.columns(is_asked)
        )
    found = frozen.subject_results(of.people, of.scope, cohort_subject_id, batch_id)
    shown = select(found.cards)
    if reach is not None:
        shown = shown.where(scopes.results_in_reach(reach, cohort_subject_id, found.cards.c.batch_id))
        if is_asked is not None:
            shown = shown.where(is_asked)
    is_live = found.is_some_open if is_asked is None else and_(is_asked, found.is_some_open)
    return select(
        *frozen.listed_results(shown.cte("shown"), of.people),
        found.held.label("held"),
        *of.columns(is_live),
    )


@read_model
def class_in_term(batch_id: UUID, term: str, live: bool | None = None, reach: Reach | None = None) -> Query:
    """Select what the broadsheet of a batch in a term is made of: what is `published`, or what was `entered`.

    `term` is the id of a term or its name in the batch's session. `submitted` names who handed in the subjects, by id.
    """
    of = class_term(
        scope_of_batch(batch_id, term),
        session=False,
        in_reach=None if reach is None else lambda row: scopes.is_form_batch(reach, row.c.batch_id),
    )
    is_reached = None if reach is None else scopes.is_form_batch(reach, batch_id)
    found: Any = null()
    is_live = is_reached
    if live is None:
        publication = published.latest_publication(batch_id, term)
        found = published.of_term(publication)
        without = ~select(publication.c.id).exists()
        is_live = without if is_reached is None else and_(is_reached, without)
    of_scope = of.scope.c
    submitted = select(
        func.json_object_agg(Submission.cohort_subject_id, Submission.submitted_by_name)
    ).where(Submission.batch_id == batch_id, Submission.term_id == one(of.scope, "term_id"))
    return select(
        (found if is_reached is None else case((is_reached, found))).label("published"),
        submitted.scalar_subquery().label("submitted"),
        school_value("school_name", lambda school: school.name).label("school_name"),
        func.statement_timestamp().label("moment"),
        time_zone().label("time_zone"),
        select(class_name(of_scope.classroom, of_scope.batch_name, of_scope.cohort_id))
        .select_from(of.scope)
        .scalar_subquery()
        .label("class_name"),
        *of.columns(is_live),
    )


@read_model
def class_in_session(batch_id: UUID, session: str, reach: Reach | None = None) -> Query:
    """Select what the broadsheet of a session is made of: what is `published` of its latest term that is.

    `session` is its id or its name.
    """
    found = published.of_session(published.latest_of_session(batch_id, session))
    if reach is not None:
        found = case((scopes.is_form_batch(reach, batch_id), found))
    return select(found.label("published"), func.statement_timestamp().label("moment"))
