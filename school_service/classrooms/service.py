"""Classrooms."""

from __future__ import annotations

from school_service.classrooms.models import Classroom
from school_service.database import add


def create_classroom(*, name: str, level: str) -> Classroom:
    """Add a classroom; a name already taken is a conflict."""
    return add(Classroom(name=name, level=level))
