"""Subjects."""

from __future__ import annotations

from uuid import UUID

from sqlalchemy import select

from school_service.core.read_models import Query, read_model, school_id
from school_service.core.records import get, remove
from school_service.core.statements import NewRow, insert_row
from school_service.features.audit.service import audit_change
from school_service.features.school.models import Subject

ENTITY = "subject"


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


def create_subject(*, name: str, code: str) -> NewRow:
    """Add a subject; a code already taken is a conflict."""
    subject = insert_row(Subject, name=name, code=code)
    audit_change(ENTITY, subject.id, new={"name": name, "code": code})
    return subject


def delete_subject(*, subject_id: UUID) -> UUID:
    """Remove a subject; one that is taught is a conflict. Raises NotFound."""
    subject = get(Subject, subject_id, for_update=True)
    audit_change(ENTITY, subject.id, old={"name": subject.name, "code": subject.code})
    return remove(subject)
