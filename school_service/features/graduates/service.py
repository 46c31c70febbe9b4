"""Graduates: students leave the school with its last class."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from uuid import UUID, uuid4

from sqlalchemy import insert, select, update

from school_service.core.counters import GRADUATES, number_taken
from school_service.core.errors import Conflict, Invalid
from school_service.core.records import unknown_reference
from school_service.core.statements import execute, statement
from school_service.features.audit.service import audit_change
from school_service.features.enrollments.reads import lock_students
from school_service.features.enrollments.service import leaving
from school_service.features.graduates import reads
from school_service.features.graduates.models import Graduate
from school_service.features.students.models import GRADUATED, WITHDRAWN, Student
from tenants.clock import now

ENTITY = "graduate"


def create_graduate(*, student: UUID) -> UUID:
    """Let a student graduate: they leave every cohort; history and scores stay. Returns the graduate's id.

    Raises Invalid for an unknown student and for one who has withdrawn, Conflict where they have graduated.
    """
    found = execute(lock_students([student]), reads.graduating(student))
    if found is None:
        raise unknown_reference(Student, "student")
    if found["status"] == GRADUATED:
        reason = "has graduated already"
        raise Conflict(f"The student {reason}.", {"student": [reason]})
    if found["status"] == WITHDRAWN:
        raise Invalid.field("student", "has withdrawn")
    graduate_id, last_class = uuid4(), found["last_class"]
    # The number comes last: it locks the counter, and who has that lock waits for no other, so none deadlock.
    made = execute(
        *leaving(student_id=student, enrollments=found["enrollments"]),
        _end_status(student),
        _insert(graduate_id, student, last_class, now()),
    )
    number = made["number"] if made else None
    audit_change(
        ENTITY, graduate_id, new={"number": number, "student": student, "graduation_class": last_class}
    )
    return graduate_id


@statement
def _end_status(student_id: UUID) -> Any:
    return update(Student).where(Student.id == student_id).values(status=GRADUATED)


@statement
def _insert(graduate_id: UUID, student_id: UUID, last_class: str, moment: datetime) -> Any:
    """Insert a graduate with the next number; answers it."""
    number = number_taken(GRADUATES)
    values = select(graduate_id, number.c.value, student_id, last_class, moment)  # type: ignore[call-overload]
    columns = ["id", "number", "student_id", "graduation_class", "created_at"]
    return insert(Graduate).from_select(columns, values).returning(Graduate.number)
