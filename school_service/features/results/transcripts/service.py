"""Transcripts: whether there is one."""

from __future__ import annotations

from uuid import UUID

from school_service.core.errors import NothingPublished
from school_service.core.records import get
from school_service.features.people.models import Student


def check_transcript(*, id: UUID) -> None:
    """Say why there is no transcript of a student; raises NotFound.

    The school's staff get one of everybody. Students get one of their published results.
    """
    get(Student, id)
    raise NothingPublished("Nothing is published.")
