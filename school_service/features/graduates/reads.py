"""Read models of graduates."""

from __future__ import annotations

from uuid import UUID

from sqlalchemy import select

from school_service.core.read_models import Query, read_model, school_value
from school_service.features.graduates.models import Graduate
from school_service.features.students.models import Student


@read_model
def graduates() -> Query:
    """Read model of GraduateSchema, by number."""
    return (
        select(
            Graduate.number.label("id"),
            Student.number.label("student"),
            Graduate.graduation_class,
            school_value("school", lambda school: school.name).label("school"),
        )
        .join(Student, Student.id == Graduate.student_id)
        .order_by(Graduate.number)
    )


@read_model
def graduate(graduate_id: UUID) -> Query:
    """Read model of GraduateSchema, for one."""
    return graduates.query().where(Graduate.id == graduate_id)
