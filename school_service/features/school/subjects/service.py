"""Subjects."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from sqlalchemy import select

from school_service.core.deletion import Deletion
from school_service.core.read_models import Query, read_model, school_id
from school_service.core.records import get
from school_service.core.statements import NewRow, insert_row
from school_service.features.audit.service import audit_change, change_audited, delete_audited
from school_service.features.school.models import IN_ORDER, Subject

ENTITY = "subject"

DELETION = Deletion(Subject, {"name": Subject.name, "code": Subject.code})


@read_model
def subjects() -> Query:
    """Read model of SubjectSchema, by position, then by name."""
    return select(
        Subject.id, Subject.name, Subject.code, Subject.position, school_id().label("school")
    ).order_by(*IN_ORDER, Subject.id)


@read_model
def subject(subject_id: UUID) -> Query:
    """Read model of SubjectSchema, for one."""
    return subjects.query().where(Subject.id == subject_id)


def create_subject(*, name: str, code: str, position: int | None = None) -> NewRow:
    """Add a subject; a code already taken is a conflict."""
    subject = insert_row(Subject, name=name, code=code, position=position)
    placed = {} if position is None else {"position": position}
    audit_change(ENTITY, subject.id, new={"name": name, "code": code, **placed})
    return subject


def change_subject(*, subject_id: UUID, **changes: Any) -> UUID:
    """Change name, code or position of a subject, in all its classes; papers published before keep the former.

    A code already taken is a conflict. Raises NotFound.
    """
    subject = get(Subject, subject_id, for_update=True)
    return change_audited(ENTITY, subject, changes)


def delete_subject(*, subject_id: UUID) -> UUID:
    """Delete a subject; one taught to a cohort, or required by a promotion rule, is a conflict. Raises NotFound."""
    return delete_audited(ENTITY, DELETION, subject_id)
