"""Term calendars: when a term begins and ends, how often school opened, what parents are told.

Whoever writes a calendar locks the term FOR NO KEY UPDATE; whoever enters how often students were present locks it FOR
SHARE. So nobody was present more often than school opened.
"""

from __future__ import annotations

from typing import Any
from uuid import UUID

from school_service.core.errors import Conflict, Invalid
from school_service.core.read_models import BoundQuery
from school_service.core.records import get, not_found
from school_service.core.statements import execute, in_one_message, put_row
from school_service.features.audit.service import audit_member_changes
from school_service.features.results.models import TermCalendar
from school_service.features.results.term_calendars import reads
from school_service.features.school.models import Term

ENTITY = "term-calendar"
_DATES = ("start_date", "end_date")


def check_term(*, id: UUID) -> None:
    """Tell whether there is the term whose calendar is asked for; raises NotFound."""
    get(Term, id)


def set_calendar(*, term_id: UUID, **calendar: Any) -> BoundQuery:
    """Set the calendar of a term, all of its members.

    Returns its read model, which is stored in one message with being read. Raises NotFound, Invalid where the term ends
    before it starts or lies outside of its session, and Conflict where a student was present more often than school
    opened.
    """
    read = reads.term_calendar(term_id)
    stored = execute(reads.locking(term_id), reads.stored(term_id))
    if stored is None:
        raise not_found(Term)
    _check_dates(calendar, stored)
    opened, present = calendar["times_opened"], stored["most_present"]
    if opened is not None and present is not None and present > opened:
        reason = f"a student was present {present} times in the term"
        raise Conflict(f"School opened {opened} times, but {reason}.", {"times_opened": [reason]})
    old = {name: stored[name] for name in calendar}
    if calendar == old:
        return read
    audit_member_changes(ENTITY, term_id, old, calendar)
    return in_one_message(put_row(TermCalendar, "term_id", term_id=term_id, **calendar), read=read)


def _check_dates(calendar: dict[str, Any], stored: dict[str, Any]) -> None:
    first, last = stored["session_start"], stored["session_end"]
    outside = [name for name in _DATES if calendar[name] is not None and not first <= calendar[name] <= last]
    if outside:
        raise Invalid.fields(dict.fromkeys(outside, f"is not within the session, {first} to {last}"))
    start, end = (calendar[name] for name in _DATES)
    if start is not None and end is not None and end < start:
        raise Invalid.field("end_date", "must not be before start_date")
