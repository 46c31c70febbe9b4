"""Read models of classrooms."""

from __future__ import annotations

from uuid import UUID

from sqlalchemy import select

from school_service.core.read_models import Query, read_model, school_id
from school_service.features.school.models import Classroom


@read_model
def classrooms() -> Query:
    """Read model of ClassroomSchema, by name."""
    return select(Classroom.id, Classroom.name, school_id().label("school")).order_by(
        Classroom.name, Classroom.id
    )


@read_model
def classroom(classroom_id: UUID) -> Query:
    """Read model of ClassroomSchema, for one."""
    return classrooms.query().where(Classroom.id == classroom_id)
