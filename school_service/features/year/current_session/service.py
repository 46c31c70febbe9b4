"""The read model of the current academic session, with the term of the school's day and counts."""

from __future__ import annotations

from typing import Any

from sqlalchemy import func, select

from school_service.core.narrowing import everybodys
from school_service.core.read_models import Made, Query, json_object
from school_service.features.classes.models import CohortSubject
from school_service.features.people.models import NOT_DELETED, Employee
from school_service.features.school.models import (
    CURRENT,
    AcademicSession,
    Batch,
    Cohort,
    Enrollment,
    Term,
    TermCalendar,
)
from school_service.features.school.sessions.service import has_today, sessions, terms


def current_session() -> Made:
    """Make the answer about the current session: no counts for a caller with a reach, as they are of the school."""
    return Made(with_counts(), lambda row, reach: row if reach is None else {**row, "counts": None})


@everybodys
def with_counts() -> Query:
    """Read model of CurrentSessionSchema; no row where no session is current."""
    session = sessions.query().where(AcademicSession.current).subquery()
    term = (
        terms.query()
        .join(TermCalendar, TermCalendar.term_id == Term.id)
        .where(Term.session_id == session.c.id, has_today())
        .limit(1)
        .subquery()
    )
    return select(
        json_object(**session.c).label("session"),
        select(json_object(**term.c)).scalar_subquery().label("term"),
        _counts(session.c.id).label("counts"),
    ).select_from(session)


def _counts(session_id: Any) -> Any:
    cohorts = select(Cohort.id).where(Cohort.session_id == session_id)

    def count(table: Any, *conditions: Any) -> Any:
        return select(func.count()).select_from(table).where(*conditions).scalar_subquery()

    return json_object(
        # One student is in one arm of a session at a time.
        students=count(Enrollment, Enrollment.cohort_id.in_(cohorts), CURRENT),
        classes=count(Cohort, Cohort.session_id == session_id),
        arms=count(Batch, Batch.cohort_id.in_(cohorts)),
        subjects=count(CohortSubject, CohortSubject.cohort_id.in_(cohorts)),
        staff=count(Employee, NOT_DELETED),
    )
