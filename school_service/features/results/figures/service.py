"""Results: whether there is what a reading asks for."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from sqlalchemy import ColumnElement, Text, and_, cast, or_, select

from school_service.core.database import db, is_current_user
from school_service.core.errors import Forbidden, Invalid, NotFound
from school_service.core.records import get, get_referenced, unknown_reference
from school_service.features.classes.models import CohortSubject
from school_service.features.people.models import Student
from school_service.features.school.cohorts.reads import session_by_id_or_name
from school_service.features.school.models import (
    CURRENT,
    TERMS,
    AcademicSession,
    Batch,
    Cohort,
    Enrollment,
    Term,
)


def check_subject_results(*, id: UUID, term: str, batch: UUID | None = None, **_live: Any) -> None:
    """Tell whether there are the cohort subject, the term and the batch of a reading. Raises NotFound, Invalid."""
    subject = get(CohortSubject, id)
    _check_term(term, subject.cohort_id, "the cohort's")
    if batch is not None and get_referenced(Batch, batch, "batch").cohort_id != subject.cohort_id:
        raise Invalid.field("batch", "is not of the cohort")


def check_term_result(*, id: UUID, term: str, live: bool = False, version: int | None = None) -> None:
    """Say why a student has no term result. Raises NotFound, Invalid for an unknown term, and for one that the
    student's session does not have, Forbidden for live figures and versions of one's own.
    """
    student = get(Student, id)
    is_own = is_current_user(student.user_id)
    if is_own and (live or version is not None):
        raise Forbidden("Students see what is published of them alone.")
    check_term(term)
    if is_own:
        raise NotFound("Nothing is published.")
    if version is not None:
        raise NotFound("The student has no report card of that version.")
    if term in TERMS:
        _check_latest_session(student.id, term)
    raise NotFound("The student belongs to no class in that term.")


def check_broadsheet(
    *, batch: UUID, term: str | None = None, session: str | None = None, **_live: Any
) -> None:
    """Say why there is no broadsheet. Raises Invalid."""
    found = get_referenced(Batch, batch, "batch")
    if term is not None:
        _check_term(term, found.cohort_id, "the batch's")
    if session is not None:
        _check_session(session, found.cohort_id)


def check_term(term: str) -> None:
    """Tell whether a term can be meant, whatever the session: FIRST, SECOND and THIRD always can. Raises Invalid."""
    if term not in TERMS and db.session.scalar(select(Term.id).where(_is_id(Term.id, term))) is None:
        raise unknown_reference(Term, "term")


def _check_latest_session(student_id: UUID, term: str) -> None:
    """Tell whether the session that a student is in has a term of this name. Raises Invalid."""
    latest = (
        select(Enrollment.session_id)
        .where(Enrollment.student_id == student_id, CURRENT)
        .order_by(Enrollment.started_at.desc(), Enrollment.id.desc())
        .limit(1)
    )
    session_id = db.session.scalar(latest)
    has_term = select(Term.id).where(Term.session_id == session_id, Term.term == term)
    if session_id is not None and db.session.scalar(has_term) is None:
        raise unknown_reference(Term, "term")


def _check_term(term: str, cohort_id: UUID, whose: str) -> None:
    session_id = db.session.scalar(select(Cohort.session_id).where(Cohort.id == cohort_id))
    is_term = or_(_is_id(Term.id, term), and_(Term.term == term, Term.session_id == session_id))
    found = db.session.scalar(select(Term.session_id).where(is_term))
    if found is None:
        raise unknown_reference(Term, "term")
    if found != session_id:
        raise Invalid.field("term", f"is not of {whose} session")


def _is_id(column: Any, text: str) -> ColumnElement[bool]:
    return cast(column, Text) == text.lower()


def _check_session(session: str, cohort_id: UUID) -> None:
    session_id = db.session.scalar(session_by_id_or_name(session))
    if session_id is None:
        raise unknown_reference(AcademicSession, "session")
    if db.session.scalar(select(Cohort.session_id).where(Cohort.id == cohort_id)) != session_id:
        raise Invalid.field("session", "is not the batch's")
