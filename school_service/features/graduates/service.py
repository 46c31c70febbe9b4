"""Graduates: students leave the school with its last class."""

from __future__ import annotations

from uuid import UUID

from sqlalchemy import select

from school_service.core.counters import GRADUATES, next_numbers
from school_service.core.database import db
from school_service.core.errors import Conflict, Invalid
from school_service.core.records import add, get_referenced
from school_service.features.audit.service import audit_change
from school_service.features.classrooms.models import Classroom
from school_service.features.cohorts.models import Cohort, Enrollment
from school_service.features.enrollments.service import end_enrollments
from school_service.features.graduates.models import Graduate
from school_service.features.sessions.models import AcademicSession
from school_service.features.students.models import GRADUATED, WITHDRAWN, Student

ENTITY = "graduate"


def create_graduate(*, student: UUID) -> Graduate:
    """Let a student graduate: they leave every cohort; history and scores stay.

    Raises Invalid for an unknown student and for one who has withdrawn, Conflict where they have graduated.
    """
    graduating = get_referenced(Student, student, "student", for_update=True)
    if graduating.status == GRADUATED:
        reason = "has graduated already"
        raise Conflict(f"The student {reason}.", {"student": [reason]})
    if graduating.status == WITHDRAWN:
        raise Invalid.field("student", "has withdrawn")
    last_class = _last_class(student)
    end_enrollments(student_id=student)
    graduating.status = GRADUATED
    db.session.flush()
    # The number comes last: it locks the counter, and who has that lock waits for no other, so none deadlock.
    (number,) = next_numbers(GRADUATES)
    graduate = add(Graduate(number=number, student_id=student, graduation_class=last_class))
    audit_change(
        ENTITY, graduate.id, new={"number": number, "student": student, "graduation_class": last_class}
    )
    return graduate


def _last_class(student_id: UUID) -> str:
    """Name the classroom and session that a student was enrolled in last; empty where there was none."""
    found = db.session.execute(
        select(Classroom.name, AcademicSession.name)
        .select_from(Enrollment)
        .join(Cohort, Cohort.id == Enrollment.cohort_id)
        .join(Classroom, Classroom.id == Cohort.classroom_id)
        .join(AcademicSession, AcademicSession.id == Cohort.session_id)
        .where(Enrollment.student_id == student_id)
        .order_by(Enrollment.started_at.desc(), Enrollment.id.desc())
        .limit(1)
    ).one_or_none()
    return " ".join(found) if found else ""
