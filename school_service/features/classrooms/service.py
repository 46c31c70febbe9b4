"""Classrooms."""

from __future__ import annotations

from school_service.core.records import add
from school_service.features.audit.service import audit_change
from school_service.features.classrooms.models import Classroom


def create_classroom(*, name: str, level: str) -> Classroom:
    """Add a classroom; a name already taken is a conflict."""
    classroom = add(Classroom(name=name, level=level))
    audit_change("classroom", classroom.id, new={"name": name, "level": level})
    return classroom
