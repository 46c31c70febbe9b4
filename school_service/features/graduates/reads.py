"""Read models of graduates."""

from __future__ import annotations

from uuid import UUID

from sqlalchemy import select

from school_service.core.read_models import Query, read_model
from school_service.core.records import school_value
from school_service.features.graduates.models import Graduate
from school_service.features.students.models import Student


@read_model
def graduates(graduate_id: UUID | None = None) -> Query:
    """Read model of GraduateSchema, by number: all, or one."""
    found = (
        select(
            Graduate.number.label("id"),
            Student.number.label("student"),
            Graduate.graduation_class,
            school_value("school", lambda school: str(school.name)).label("school"),
        )
        .join(Student, Student.id == Graduate.student_id)
        .order_by(Graduate.number)
    )
    return found if graduate_id is None else found.where(Graduate.id == graduate_id)
