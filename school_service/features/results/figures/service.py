"""Results: whether the objects of a reading exist."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from sqlalchemy import Uuid, and_, cast, exists, or_, select, true

from school_service.auth.principal import Principal
from school_service.core.database import db, request_context
from school_service.core.errors import Forbidden, Invalid, NotFound, NothingPublished
from school_service.core.narrowing import caller_has_own, everybodys, judged_before, within
from school_service.core.records import get, get_referenced, unknown_reference
from school_service.features.classes.models import CohortSubject
from school_service.features.people.models import Student
from school_service.features.results.computing.class_term.scopes import term_of_student
from school_service.features.results.figures import frozen
from school_service.features.results.models import ReportCard
from school_service.features.school.cohorts.service import find_session
from school_service.features.school.models import CURRENT, TERMS, Batch, Cohort, Enrollment, Term
from school_service.features.school.sessions.service import check_term, is_term_id, refuse_other_term


def check_subject_results(*, id: UUID, term: str, batch: UUID | None = None, **_live: Any) -> None:
    """Tell whether there are the cohort subject, the term and the batch of a reading. Raises NotFound, Invalid."""
    subject = get(CohortSubject, id)
    _check_term(term, _session_of(subject.cohort_id), "the cohort's")
    if batch is not None and get_referenced(Batch, batch, "batch").cohort_id != subject.cohort_id:
        raise Invalid.field("batch", "is not of the cohort")


def check_term_result(
    *, id: UUID, term: str, session: str | None = None, live: bool = False, version: int | None = None
) -> None:
    """Say why a student has no term result.

    Raises NotFound, Invalid for an unknown term or session, and for a term missing in the session, Forbidden for live
    figures and versions of one's own.
    """
    student = get(Student, id)
    user_id = _current_user_id()
    own_account = user_id is not None and student.user_id == user_id
    is_own = own_account or (user_id is not None and _is_child(student.id, user_id))
    if is_own and (live or version is not None):
        whom = "Students see what is published of them" if own_account else "Guardians see what is published"
        raise Forbidden(f"{whom} alone.")
    if is_own and session is None:
        # Of a term that the school does not have yet, too.
        check_term(term)
    else:
        check_term_of_student(student_id=student.id, term=term, session=session)
    if is_own:
        raise NothingPublished("Nothing is published.")
    if version is not None:
        raise NotFound("The student has no report card of that version.")
    raise NotFound("The student belongs to no class in that term.")


def _current_user_id() -> UUID | None:
    principal = request_context().principal
    return principal.user_id if isinstance(principal, Principal) else None


def _is_child(student_id: UUID, user_id: UUID) -> bool:
    """Tell whether a user is a guardian of the student who may not read their results as staff."""
    student = cast(student_id, Uuid)
    if caller_has_own():
        is_own = within(select(true()), lambda reach: frozen.is_own(student, user_id, reach))
    else:
        is_own = judged_before(select(frozen.is_own(student, user_id)))
    return bool(db.session.scalar(is_own))


def check_broadsheet(
    *, batch: UUID, term: str | None = None, session: str | None = None, **_live: Any
) -> None:
    """Say why there is no broadsheet. Raises Invalid."""
    arm = get_referenced(Batch, batch, "batch")
    if term is not None:
        _check_term(term, _session_of(arm.cohort_id), "the batch's")
    if session is not None and find_session(session, "session") != _session_of(arm.cohort_id):
        raise Invalid.field("session", "is not the batch's")


def check_term_of_student(*, student_id: UUID, term: str, session: str | None = None) -> None:
    """Tell whether a term named by a text exists for a student, in `session` or in any. Raises Invalid.

    The name of a term is valid for a student without a session.
    """
    if session is not None:
        _check_term(term, find_session(session, "session"), "that")
        return
    is_meant = is_term_id(term_of_student(student_id, term))
    if db.session.scalar(everybodys(select(Term.id).where(is_meant))) is not None:
        return
    is_theirs = or_(
        exists().where(Enrollment.student_id == student_id, CURRENT),
        exists().where(ReportCard.student_id == student_id),
    )
    if term not in TERMS or db.session.scalar(judged_before(select(is_theirs))):
        raise unknown_reference(Term, "term")


def _session_of(cohort_id: UUID) -> UUID:
    return get(Cohort, cohort_id, judged_before=True).session_id


def _check_term(term: str, session_id: UUID, whose: str) -> None:
    is_meant = or_(is_term_id(term), and_(Term.term == term, Term.session_id == session_id))
    term_session = db.session.scalar(everybodys(select(Term.session_id).where(is_meant)))
    refuse_other_term(None if term_session is None else term_session == session_id, whose)
