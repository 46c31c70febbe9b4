"""Read models of term calendars."""

from __future__ import annotations

from uuid import UUID

from sqlalchemy import func, select

from school_service.core.read_models import Query, read_model
from school_service.features.results.models import TermCalendar, TermComment
from school_service.features.school.models import AcademicSession, Term

CALENDAR = (
    TermCalendar.start_date,
    TermCalendar.end_date,
    TermCalendar.times_opened,
    TermCalendar.next_term_begins,
    TermCalendar.notice,
)
"""What a calendar says, null where it was never set."""


@read_model
def term_calendar(term_id: UUID) -> Query:
    """Read model of TermCalendarSchema, of one term."""
    term = func.json_build_object("id", Term.id, "term", Term.term)
    return (
        select(term.label("term"), *CALENDAR)
        .select_from(Term)
        .outerjoin(TermCalendar, TermCalendar.term_id == Term.id)
        .where(Term.id == term_id)
    )


@read_model
def stored(term_id: UUID) -> Query:
    """Select what decides about a term's calendar, and the one that it has; no row without the term."""
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
def locking(term_id: UUID) -> Query:
    """Lock a term FOR NO KEY UPDATE: its calendar, and who was present how often, are compared with each other."""
    return select(Term.id).where(Term.id == term_id).with_for_update(key_share=True)
