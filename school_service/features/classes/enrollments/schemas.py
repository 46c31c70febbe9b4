"""What enrolling and removing take."""

from __future__ import annotations

from school_service.web.fields import Id, id_list
from school_service.web.schemas import Schema


class EnrollmentSchema(Schema):
    """Students to enroll into a batch of a cohort."""

    students = id_list(least=1)
    batch = Id(metadata={"description": "A batch of the cohort; the cohort's id is its first one."})


class RemovalSchema(Schema):
    """Students to take out of a cohort."""

    student_ids = id_list(least=1)
