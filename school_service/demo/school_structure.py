"""The structure of a sample school: sessions with their terms, classrooms, subjects."""

from __future__ import annotations

from datetime import timedelta

from school_service.demo.context import THIS_YEAR, DemoContext, first_day
from school_service.features.school.classrooms.service import create_classroom
from school_service.features.school.models import TERMS
from school_service.features.school.sessions.service import create_session, create_term
from school_service.features.school.subjects.service import create_subject

CLASSROOMS = tuple(
    (f"{short} {year}", level)
    for short, level in (("JSS", "Junior Secondary"), ("SSS", "Senior Secondary"))
    for year in (1, 2, 3)
)
SUBJECTS = (
    ("English Language", "ENG"),
    ("Mathematics", "MTH"),
    ("Civic Education", "CVE"),
    ("Computer Studies", "CMP"),
    ("Agricultural Science", "AGR"),
    ("Biology", "BIO"),
    ("Chemistry", "CHM"),
    ("Physics", "PHY"),
    ("Economics", "ECO"),
)
_YEAR = timedelta(weeks=46) - timedelta(days=3)  # from a Monday in September to a Friday in July


def make_sessions(context: DemoContext) -> None:
    """Make last year's session and the current one, each with its three terms."""
    for year in (THIS_YEAR - 1, THIS_YEAR):
        name, begin = f"{year}/{year + 1}", first_day(year)
        made = create_session(name=name, start_date=begin, end_date=begin + _YEAR, current=year == THIS_YEAR)
        context.sessions[name] = made.id
        for term in TERMS:
            display_name = f"{term.title()} Term {name}"
            context.terms[name, term] = create_term(
                session_id=made.id, term=term, display_name=display_name
            ).id


def make_classrooms(context: DemoContext) -> None:
    """Make the six classes of a secondary school."""
    for name, level in CLASSROOMS:
        context.classrooms[name] = create_classroom(name=name, level=level).id


def make_subjects(context: DemoContext) -> None:
    """Make the subjects, the language of the school's region among them."""
    for name, code in (*SUBJECTS, context.school.language):
        context.subjects[name] = create_subject(name=name, code=code).id
