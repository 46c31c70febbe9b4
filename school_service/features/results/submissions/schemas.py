"""Submissions as they are answered."""

from __future__ import annotations

from typing import Any

from marshmallow import ValidationError, fields, validate, validates_schema

from school_service.features.classes.subject_teachers.schemas import teacher_names
from school_service.features.results.figures.schemas import ResultTermSchema
from school_service.features.results.models import BLANKS, REFUSE, SUBMISSION_STATES
from school_service.features.school.sessions.schemas import term_text
from school_service.web.fields import Choice, Id, free_text
from school_service.web.schemas import MineSchema, RecordSchema, Schema


class SubmissionSchema(RecordSchema):
    """The results of an arm in a cohort subject and a term: how far they are, and who handed them in."""

    cohort_subject = fields.UUID()
    base = fields.UUID(metadata={"description": "The subject that is taught."})
    subject = fields.String(metadata={"description": "Its name."})
    batch = fields.UUID(
        allow_none=True,
        metadata={
            "description": "The arm; null where it is of all arms, which is SUBMITTED when all of them are."
        },
    )
    batch_name = fields.String(allow_none=True, metadata={"description": "The arm's name."})
    term = fields.Nested(ResultTermSchema)
    state = fields.String(
        validate=validate.OneOf(SUBMISSION_STATES),
        metadata={
            "description": "SUBMITTED: scores, absences and assessments are held until it is reopened."
        },
    )
    takers = fields.Integer(metadata={"description": "How many take it."})
    assessments = fields.Integer(metadata={"description": "How many assessments count."})
    blanks = fields.Integer(
        metadata={"description": "How many scores are missing, of those who take it in what counts."}
    )
    submitted_at = fields.AwareDateTime(allow_none=True)
    submitted_by = fields.String(
        allow_none=True, metadata={"description": "The user's id, or the client's; null while open."}
    )
    submitted_by_name = fields.String(allow_none=True)
    teachers = teacher_names()


class SubmissionFilterSchema(MineSchema):
    """Whose submissions to list: those of a batch, or of all batches of a cohort."""

    batch = Id(
        required=False,
        metadata={"description": "A batch: one for each subject. A cohort's id is its first batch."},
    )
    cohort = Id(
        required=False,
        metadata={"description": "In place of a batch, a cohort: one for each subject and batch."},
    )
    term = term_text("the batch's")

    @validates_schema
    def check_one(self, filters: dict[str, Any], **_options: Any) -> None:
        """Let it be either a batch or a cohort."""
        if len(filters.keys() & {"batch", "cohort"}) != 1:
            raise ValidationError("Give either a batch or a cohort.", "batch")


def _batch() -> Id:
    return Id(
        required=False,
        metadata={
            "description": "An arm of the cohort, by its id, alone; without it, every arm that takes it."
        },
    )


class NewSubmissionSchema(Schema):
    """Which results to hand in."""

    term = term_text("the cohort's")
    batch = _batch()
    blanks = Choice(
        BLANKS,
        load_default=REFUSE,
        metadata={
            "description": "What becomes of blanks: REFUSE answers 409 and names them, ABSENT and EXCUSED make each "
            "such an absence."
        },
    )


class ReopeningSchema(Schema):
    """Which results to reopen, and why."""

    term = term_text("the cohort's")
    batch = _batch()
    reason = free_text(metadata={"description": "The audit log keeps it."})
