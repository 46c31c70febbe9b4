"""Classrooms."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from sqlalchemy import select

from school_service.core.deletion import Deletion
from school_service.core.read_models import Query, read_model, school_id
from school_service.core.records import get
from school_service.core.statements import NewRow, insert_row
from school_service.features.audit.service import audit_change, change_audited, delete_audited
from school_service.features.school.models import Classroom

ENTITY = "classroom"

DELETION = Deletion(Classroom, {"name": Classroom.name, "level": Classroom.level})


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


def create_classroom(*, name: str, level: str) -> NewRow:
    """Add a classroom; a name already taken is a conflict."""
    classroom = insert_row(Classroom, name=name, level=level)
    audit_change(ENTITY, classroom.id, new={"name": name, "level": level})
    return classroom


def change_classroom(*, classroom_id: UUID, **changes: Any) -> UUID:
    """Change any of a classroom's members; its cohorts keep it. A name already taken is a conflict. Raises NotFound."""
    classroom = get(Classroom, classroom_id, for_update=True)
    return change_audited(ENTITY, classroom, changes)


def delete_classroom(*, classroom_id: UUID) -> UUID:
    """Delete a classroom; one with a cohort, now or ever, is a conflict. Raises NotFound."""
    return delete_audited(ENTITY, DELETION, classroom_id)
