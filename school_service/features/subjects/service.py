"""Subjects."""

from __future__ import annotations

from uuid import UUID

from school_service.core.records import add, remove
from school_service.features.subjects.models import Subject


def create_subject(*, name: str, code: str) -> Subject:
    """Add a subject; a code already taken is a conflict."""
    return add(Subject(name=name, code=code))


def delete_subject(*, subject_id: UUID) -> UUID:
    """Remove a subject; one that is taught is a conflict. Raises NotFound."""
    return remove(Subject, subject_id)
