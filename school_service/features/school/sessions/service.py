"""Academic sessions, one of them current, and their terms."""

from __future__ import annotations

from datetime import date
from typing import Any
from uuid import UUID

from sqlalchemy import ColumnElement, Text, and_, cast, func, or_, select, update

from school_service.core.database import db
from school_service.core.deletion import Deletion
from school_service.core.errors import Conflict, Invalid
from school_service.core.narrowing import everybodys
from school_service.core.read_models import Query, read_model
from school_service.core.records import check_of_filters, get, get_referenced, lock_table, unknown_reference
from school_service.core.statements import NewRow, insert_row
from school_service.features.audit.service import audit_change, change_audited, delete_audited
from school_service.features.reach import scopes
from school_service.features.school.models import TERMS, AcademicSession, Term, TermCalendar

ENTITY, TERM = "session", "term"

EARLIEST, MOST_YEARS = date(1900, 1, 1), 20
"""The first day that a session may have, and how long it may be: work that is done for each of its days has bounds."""

_TOLD = ("name", "start_date", "end_date", "current")
DELETION = Deletion(AcademicSession, {name: getattr(AcademicSession, name) for name in _TOLD})
TERM_DELETION = Deletion(
    Term, {"session": Term.session_id, "term": Term.term, "display_name": Term.display_name}
)


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
    query = (
        select(Term.id, Term.term, Term.session_id.label("sessionId"), Term.display_name.label("displayName"))
        .join(AcademicSession, AcademicSession.id == Term.session_id)
        # The alphabet has the terms in their order: FIRST, SECOND, THIRD.
        .order_by(AcademicSession.start_date, AcademicSession.id, Term.term, Term.id)
    )
    return query if session_id is None else query.where(Term.session_id == session_id)


def has_today() -> ColumnElement[bool]:
    """Tell whether the school's day is in the term of a row of TermCalendar."""
    return scopes.today().between(TermCalendar.start_date, TermCalendar.end_date)


def is_term(term: Any) -> ColumnElement[bool]:
    """Tell whether a row of Term is the one of this id or name."""
    return or_(is_term_id(term), Term.term == term)


def is_term_id(term: Any) -> ColumnElement[bool]:
    """Tell whether a row of Term is the one of this id."""
    return cast(Term.id, Text) == func.lower(term)


@read_model
def term(term_id: UUID) -> Query:
    """Read model of TermSchema, for one."""
    return terms.query().where(Term.id == term_id)


def create_session(*, name: str, start_date: date, end_date: date, current: bool = False) -> NewRow:
    """Add an academic session; a current one ends the currency of the other.

    A name already taken is a conflict. Raises Invalid if the session ends before it starts, starts before 1900, or is
    too long.
    """
    _check_dates(start_date, end_date)
    lock_table(AcademicSession)  # Which is current concerns them all.
    if current:
        _end_current()
    values = {"name": name, "start_date": start_date, "end_date": end_date, "current": current}
    session = insert_row(AcademicSession, **values)
    audit_change(ENTITY, session.id, new=values)
    return session


def change_session(*, session_id: UUID, **changes: Any) -> UUID:
    """Change any of `name`, `start_date`, `end_date` and `current` of an academic session.

    To make it current ends the currency of the other. A name already taken is a conflict, and so are dates with a day
    of a term's calendar outside them. Raises NotFound, and Invalid for dates that a new session may not have.
    """
    lock_table(AcademicSession)
    session = get(AcademicSession, session_id, for_update=True)
    start, end = changes.get("start_date", session.start_date), changes.get("end_date", session.end_date)
    if changes.keys() & {"start_date", "end_date"}:
        _check_dates(start, end)
    if start > session.start_date or end < session.end_date:
        _refuse_calendars_beyond(session_id, start, end)
    if changes.get("current") and not session.current:
        _end_current()
    return change_audited(ENTITY, session, changes)


def delete_session(*, session_id: UUID) -> UUID:
    """Delete an academic session; one with terms or cohorts, or a promotion, is a conflict. Raises NotFound.

    If it was the current one, none is current afterwards.
    """
    return delete_audited(ENTITY, DELETION, session_id)


check_term_filter = check_of_filters(session_id=AcademicSession)


def check_term(term: str, session_id: Any = None) -> None:
    """Tell whether there is the term meant by a text: by its id or, in a session, by its name. Raises Invalid.

    The session may be an expression. Without one FIRST, SECOND and THIRD can always be meant.
    """
    if session_id is None and term in TERMS:
        return
    by_name = and_(Term.term == term, Term.session_id == session_id)
    meant = select(Term.id).where(or_(is_term_id(term), by_name)).limit(1)
    if db.session.scalar(everybodys(meant)) is None:
        raise unknown_reference(Term, "term")


def refuse_other_term(of_session: bool | None, whose: str) -> None:
    """Refuse a term that is not of the session of `whose`, or, with None, not there at all. Raises Invalid."""
    if of_session is None:
        raise unknown_reference(Term, "term")
    if not of_session:
        raise Invalid.field("term", f"is not of {whose} session")


def create_term(*, session_id: UUID, term: str, display_name: str) -> NewRow:
    """Add a term (FIRST, SECOND or THIRD) to a session; a second of the same in the session is a conflict.

    Raises Invalid for an unknown session.
    """
    session = get_referenced(AcademicSession, session_id, "session_id")
    made = insert_row(Term, session_id=session.id, term=term, display_name=display_name)
    audit_change(TERM, made.id, new={"session": session.id, "term": term, "display_name": display_name})
    return made


def change_term(*, term_id: UUID, term: str | None = None, display_name: str | None = None) -> UUID:
    """Change a term's place in its session, or its name; papers published before keep the former words.

    A term already in the session is a conflict, and so is another place in the session for a term with anything
    submitted or published: the consequences of the order of terms are on paper. Raises NotFound.
    """
    if term is None:
        record = get(Term, term_id, for_update=True)
    else:
        deletable = TERM_DELETION.lock(term_id)
        if term != deletable.values["term"]:
            deletable.refuse_if_in_use("publications", "submissions")
        record = get(Term, term_id)
    given = {"term": term, "display_name": display_name}
    return change_audited(TERM, record, {name: value for name, value in given.items() if value is not None})


def delete_term(*, term_id: UUID) -> UUID:
    """Delete a term, and its calendar with it; one with anything else is a conflict. Raises NotFound."""
    return delete_audited(TERM, TERM_DELETION, term_id)


def _check_dates(start_date: date, end_date: date) -> None:
    if end_date < start_date:
        raise Invalid.field("end_date", "must not be before start_date")
    if start_date < EARLIEST:
        raise Invalid.field("start_date", f"is before {EARLIEST.year}")
    if end_date.year - start_date.year > MOST_YEARS:
        raise Invalid.field("end_date", f"is more than {MOST_YEARS} years later")


def _refuse_calendars_beyond(session_id: UUID, start: date, end: date) -> None:
    """Refuse dates of a session with a day of a term's calendar outside them; raises Conflict."""
    days = (TermCalendar.start_date, TermCalendar.end_date)
    beyond = or_(*(or_(day < start, day > end) for day in days))
    names = db.session.scalars(
        select(Term.display_name)
        .join(TermCalendar, TermCalendar.term_id == Term.id)
        .where(Term.session_id == session_id, beyond)
        .order_by(Term.term)
    ).all()
    if names:
        raise Conflict(f"The calendar of {', '.join(names)} is not within {start} to {end}: change it first.")


def _end_current() -> None:
    ending = update(AcademicSession).where(AcademicSession.current).values(current=False)
    for session_id in db.session.scalars(ending.returning(AcademicSession.id)):
        audit_change(ENTITY, session_id, old={"current": True}, new={"current": False})
