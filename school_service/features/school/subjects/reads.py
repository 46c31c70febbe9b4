"""Read models of subjects."""

from __future__ import annotations

from uuid import UUID

from sqlalchemy import select

from school_service.core.read_models import Query, read_model, school_id
from school_service.features.school.models import Subject


@read_model
def subjects() -> Query:
    """Read model of SubjectSchema, by name."""
    return select(Subject.id, Subject.name, Subject.code, school_id().label("school")).order_by(
        Subject.name, Subject.id
    )


@read_model
def subject(subject_id: UUID) -> Query:
    """Read model of SubjectSchema, for one."""
    return subjects.query().where(Subject.id == subject_id)
