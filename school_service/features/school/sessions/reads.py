"""Read models of academic sessions and terms."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from sqlalchemy import ColumnElement, Text, cast, func, or_, select

from school_service.core.read_models import Query, read_model
from school_service.features.school.models import AcademicSession, Term


def is_term(term: Any) -> ColumnElement[bool]:
    """Tell whether a row of Term is the one of this id or name."""
    return or_(is_term_id(term), Term.term == term)


def is_term_id(term: Any) -> ColumnElement[bool]:
    """Tell whether a row of Term is the one of this id."""
    return cast(Term.id, Text) == func.lower(term)


@read_model
def sessions() -> Query:
    """Read model of SessionSchema, the newest first."""
    return select(
        AcademicSession.id,
        AcademicSession.name,
        AcademicSession.start_date,
        AcademicSession.end_date,
        AcademicSession.current,
    ).order_by(AcademicSession.start_date.desc(), AcademicSession.id)


@read_model
def session(session_id: UUID) -> Query:
    """Read model of SessionSchema, for one."""
    return sessions.query().where(AcademicSession.id == session_id)


@read_model
def terms(session_id: UUID | None = None) -> Query:
    """Read model of TermSchema, all or those of a session, in the order of the calendar."""
    found = (
        select(Term.id, Term.term, Term.session_id.label("sessionId"), Term.display_name.label("displayName"))
        .join(AcademicSession, AcademicSession.id == Term.session_id)
        # FIRST, SECOND, THIRD: the order of the alphabet is that of the year.
        .order_by(AcademicSession.start_date, AcademicSession.id, Term.term, Term.id)
    )
    return found if session_id is None else found.where(Term.session_id == session_id)


@read_model
def term(term_id: UUID) -> Query:
    """Read model of TermSchema, for one."""
    return terms.query().where(Term.id == term_id)
