"""Read models of subjects."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from sqlalchemy import Select, select

from school_service.database import school_id
from school_service.reading import read_model
from school_service.subjects.models import Subject


@read_model
def subjects() -> Select[Any]:
    """Read model of SubjectSchema, by name."""
    return select(Subject.id, Subject.name, Subject.code, school_id().label("school")).order_by(
        Subject.name, Subject.id
    )


@read_model
def subject(subject_id: UUID) -> Select[Any]:
    """Read model of SubjectSchema, for one."""
    return subjects.query().where(Subject.id == subject_id)
