"""Read models of results and broadsheets: one row each, for the answers of `answers`.

A row has the published results and, if there are none, or live figures are asked for, the entries (`class_term`): a
column that is not asked for is null, and PostgreSQL does not look it up.
"""

from __future__ import annotations

from typing import Any
from uuid import UUID

from sqlalchemy import ColumnElement, FromClause, Uuid, and_, case, cast, false, func, null, or_, select, true

from school_service.core.reach import Reach
from school_service.core.read_models import Query, read_model, school_value
from school_service.features.reach import scopes
from school_service.features.results.computing.class_term.entered import class_term
from school_service.features.results.computing.class_term.scopes import (
    scope_of_batch,
    scope_of_student,
    scope_of_subject,
    value_of,
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
    """Select the contents of a student's term result: a `card` with its `state`, or the entries, `entered`.

    `term` is the id of a term or its name in a session (`frozen.term_asked`). With a `version` it is as in that version
    of the batch's results. `user_id` is the owner of the token: if it is the student's `own`, or a guardian's, the card
    is the one in force, and there are neither live figures nor versions.
    """
    is_own, term_id = frozen.term_asked(student_id, term, session, user_id, reach)
    of = class_term(scope_of_student(student_id, term_id), reach=reach, in_reach=frozen.is_result_in_reach)
    is_live: Column = ~is_own
    card: Any = null()
    state: Any = null()
    if live is None:
        frozen_card = frozen.card_of_student(student_id, term_id, version)
        is_shown = ~is_own if version is not None else or_(~is_own, frozen_card.c.in_force)
        batch_id = cast(frozen_card.c.card["batch"].astext, Uuid)
        shown = select(frozen_card).where(is_shown, frozen.result_in_reach(reach, student_id, batch_id))
        card, state = (
            shown.with_only_columns(frozen_card.c[name]).scalar_subquery() for name in ("card", "state")
        )
        is_live = false() if version is not None else and_(is_live, ~select(frozen_card.c.state).exists())
    # Of a class out of reach nothing is computed.
    is_reached = frozen.result_in_reach(reach, student_id, value_of(of.scope, "batch_id"))
    return select(
        is_own.label("own"),
        card.label("card"),
        state.label("state"),
        *of.columns(and_(is_live, is_reached)),
    )


@read_model
def subject_in_term(
    cohort_subject_id: UUID,
    term: str,
    batch_id: UUID | None = None,
    live: bool | None = None,
    reach: Reach | None = None,
) -> Query:
    """Select the contents of the results of a cohort subject: those `published`, and the entries, `entered`.

    `term` is the id of a term or its name in the cohort's session. With a batch, of its students. `held` are the
    students without live results, since they, or their batches, are published. `by_name` has the students of
    `published` and, unless all asked for is published, of the roster, in one order.
    """

    def in_reach(reach: Reach, row: FromClause) -> Column:
        return scopes.results_in_reach(reach, cohort_subject_id, row.c.batch_id)

    scope = scope_of_subject(cohort_subject_id, term)
    of = class_term(scope, cohort_subject_id=cohort_subject_id, session=False, reach=reach, in_reach=in_reach)
    is_asked: Column = true()
    if reach is not None and batch_id is not None:
        is_asked = scopes.arms_in_reach(reach, batch_id)
    if live is not None:
        columns = (null().label(name) for name in ("published", "held", "by_name"))
        return select(*columns, *of.columns(is_asked))
    current = frozen.current_publications(of.scope, batch_id)
    cards = frozen.subject_results(current, cohort_subject_id)
    shown = select(cards)
    if reach is not None:
        shown = shown.where(in_reach(reach, cards), is_asked)
    is_some_open = frozen.is_some_open(of.scope, current, batch_id)
    is_live = value_of(select(and_(is_asked, is_some_open).label("is_live")).cte("asked"), "is_live")
    return select(
        *frozen.listed_results(shown.cte("shown"), of.people, is_live),
        case((is_live, frozen.students_without_live(current, of.people))).label("held"),
        *of.columns(is_live),
    )


@read_model
def class_in_term(batch_id: UUID, term: str, live: bool | None = None, reach: Reach | None = None) -> Query:
    """Select the contents of the broadsheet of a batch in a term: `published`, or the entries, `entered`.

    `term` is the id of a term or its name in the batch's session. `submitted` has the names of the subjects'
    submitters, by the subject's id.
    """
    of = class_term(
        scope_of_batch(batch_id, term), session=False, reach=reach, in_reach=frozen.is_of_batch_in_reach
    )
    document: Any = null()
    is_live = is_reached = frozen.batch_in_reach(reach, batch_id)
    if live is None:
        publication = published.latest_publication(batch_id, term)
        document = published.of_term(publication)
        is_live = and_(is_reached, ~select(publication.c.id).exists())
    of_scope = of.scope.c
    submitted = select(
        func.json_object_agg(Submission.cohort_subject_id, Submission.submitted_by_name)
    ).where(Submission.batch_id == batch_id, Submission.term_id == value_of(of.scope, "term_id"))
    return select(
        case((is_reached, document)).label("published"),
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
    """Select the contents of the broadsheet of a session: `published`, of its latest published term.

    `session` is its id or its name.
    """
    document = published.of_session(published.latest_of_session(batch_id, session))
    shown = case((frozen.batch_in_reach(reach, batch_id), document))
    return select(shown.label("published"), func.statement_timestamp().label("moment"))
