"""Checks for overviews of attendance: why there is nothing to show."""

from __future__ import annotations

from datetime import date
from typing import Any
from uuid import UUID

from sqlalchemy import any_, select

from school_service.core.database import db
from school_service.core.errors import Invalid, NothingPublished
from school_service.core.narrowing import everybodys
from school_service.core.records import check_of_filters, get, get_referenced, unknown_reference
from school_service.features.attendance.registers.reads import cohort_of
from school_service.features.classes.models import CohortSubject
from school_service.features.people.models import Student
from school_service.features.reach import scopes
from school_service.features.school.cohorts.class_sheets import find_batch, find_term
from school_service.features.school.models import AcademicSession, Batch, Cohort, Enrollment
from school_service.features.school.sessions.service import check_term

check_day = check_of_filters(cohort=Cohort)


def check_absences(*, day: date | None = None) -> None:
    """Tell whether a day has come at the school. Raises Invalid."""
    if day is not None and day > db.session.execute(everybodys(select(scopes.today()))).scalar_one():
        raise Invalid.field("date", "is to come")


def check_summary(*, term: str, batch: UUID | None = None, cohort_subject: UUID | None = None) -> None:
    """Tell whether the given batch or cohort subject and the given term are there. Raises Invalid."""
    if batch is not None:
        if cohort_of(batch) is None:
            raise unknown_reference(Batch, "batch")
        find_term(term, find_batch(batch, field="batch"))
    if cohort_subject is not None:
        subject = get_referenced(CohortSubject, cohort_subject, "cohort_subject")
        find_term(term, get(Cohort, subject.cohort_id, judged_before=True))


def check_chronic(*, term: str, cohort: UUID | None = None, **_share: Any) -> None:
    """Tell whether the given cohort and term are there. Raises Invalid."""
    current = select(AcademicSession.id).where(AcademicSession.current).scalar_subquery()
    session: Any = current if cohort is None else get_referenced(Cohort, cohort, "cohort").session_id
    check_term(term, session)


def check_student(*, id: UUID, term: str) -> None:
    """Say why there is nothing to show of a student's attendance. Raises NotFound, and Invalid for an unknown term."""
    student = get(Student, id)
    enrolled = select(Enrollment.session_id).where(Enrollment.student_id == student.id)
    check_term(term, any_(enrolled.scalar_subquery()))
    raise NothingPublished("The school shows no attendance to families.")
