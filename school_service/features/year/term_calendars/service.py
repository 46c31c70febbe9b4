"""Term calendars: when a term begins and ends, how often school opened, the notice to parents.

Writing a calendar locks the term FOR NO KEY UPDATE; entering how often students were present locks it FOR SHARE. So
nobody was present more often than school opened.
"""

from __future__ import annotations

from typing import Any
from uuid import UUID

from sqlalchemy import func, select

from school_service.core.errors import Conflict, Invalid
from school_service.core.read_models import BoundQuery, Query, json_object, read_model
from school_service.core.records import get, not_found, once_locked
from school_service.core.statements import execute, in_one_round_trip, put_row
from school_service.features.audit.service import audit_member_changes
from school_service.features.school.models import AcademicSession, Term, TermCalendar
from school_service.features.year.models import TermComment

CALENDAR = (
    TermCalendar.start_date,
    TermCalendar.end_date,
    TermCalendar.times_opened,
    TermCalendar.next_term_begins,
    TermCalendar.notice,
)
"""The columns of a calendar, null until they are set."""


ENTITY = "term-calendar"
_DATES = ("start_date", "end_date")


@read_model
def term_calendar(term_id: UUID) -> Query:
    """Read model of TermCalendarSchema, of one term."""
    term = json_object(id=Term.id, term=Term.term)
    return (
        select(term.label("term"), *CALENDAR)
        .select_from(Term)
        .outerjoin(TermCalendar, TermCalendar.term_id == Term.id)
        .where(Term.id == term_id)
    )


@read_model
def bounds_of_calendar(term_id: UUID) -> Query:
    """Select the bounds for a term's calendar, and the present one; no row without the term."""
    present = (
        select(func.max(TermComment.times_present)).where(TermComment.term_id == term_id).scalar_subquery()
    )
    return (
        select(
            *CALENDAR,
            AcademicSession.start_date.label("session_start"),
            AcademicSession.end_date.label("session_end"),
            present.label("most_present"),
        )
        .select_from(Term)
        .join(AcademicSession, AcademicSession.id == Term.session_id)
        .outerjoin(TermCalendar, TermCalendar.term_id == Term.id)
        .where(Term.id == term_id)
    )


@read_model
def lock_term(term_id: UUID) -> Query:
    """Lock a term FOR NO KEY UPDATE: its calendar, and the times students were present, are compared with each other.

    Before, its session FOR SHARE: a change of the session's dates waits, or is waited for.
    """
    session_id = select(Term.session_id).where(Term.id == term_id).scalar_subquery()
    session = select(AcademicSession.id).where(AcademicSession.id == session_id).with_for_update(read=True)
    return select(Term.id).where(Term.id == term_id, once_locked(session)).with_for_update(key_share=True)


def check_term(*, id: UUID) -> None:
    """Tell whether the term of a calendar exists; raises NotFound."""
    get(Term, id)


def set_calendar(*, term_id: UUID, **calendar: Any) -> BoundQuery:
    """Set the calendar of a term, all of its members.

    Returns its read model; the calendar is stored in the read model's round trip. Raises NotFound, Invalid if the term
    ends before it starts or lies outside of its session, and Conflict if a student was present more often than school
    opened.
    """
    read = term_calendar(term_id)
    current = execute(lock_term(term_id), bounds_of_calendar(term_id))
    if current is None:
        raise not_found(Term)
    _check_dates(calendar, current)
    opened, present = calendar["times_opened"], current["most_present"]
    if opened is not None and present is not None and present > opened:
        reason = f"a student was present {present} times in the term"
        raise Conflict(f"School opened {opened} times, but {reason}.", {"times_opened": [reason]})
    old = {name: current[name] for name in calendar}
    if calendar == old:
        return read
    audit_member_changes(ENTITY, term_id, old, calendar)
    return in_one_round_trip(put_row(TermCalendar, "term_id", term_id=term_id, **calendar), read=read)


def _check_dates(calendar: dict[str, Any], stored: dict[str, Any]) -> None:
    first, last = stored["session_start"], stored["session_end"]
    outside = [name for name in _DATES if calendar[name] is not None and not first <= calendar[name] <= last]
    if outside:
        raise Invalid.fields(dict.fromkeys(outside, f"is not within the session, {first} to {last}"))
    start, end = (calendar[name] for name in _DATES)
    if start is not None and end is not None and end < start:
        raise Invalid.field("end_date", "must not be before start_date")
