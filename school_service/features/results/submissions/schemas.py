"""Submissions as they are answered."""

from __future__ import annotations

from marshmallow import fields, validate

from school_service.features.results.figures.schemas import ResultTermSchema, term_text
from school_service.features.results.models import BLANKS, REFUSE, SUBMISSION_STATES
from school_service.web.fields import Choice, Id, free_text
from school_service.web.schemas import RecordSchema, Schema


class SubmissionSchema(RecordSchema):
    """The results of a cohort subject in a term: how far they are, and who handed them in."""

    cohort_subject = fields.UUID()
    base = fields.UUID(metadata={"description": "The subject that is taught."})
    subject = fields.String(metadata={"description": "Its name."})
    term = fields.Nested(ResultTermSchema)
    state = fields.String(
        validate=validate.OneOf(SUBMISSION_STATES),
        metadata={
            "description": "SUBMITTED: scores, absences and assessments are held until it is reopened."
        },
    )
    takers = fields.Integer(metadata={"description": "How many of the cohort take it."})
    assessments = fields.Integer(metadata={"description": "How many assessments count."})
    blanks = fields.Integer(
        metadata={"description": "How many scores are missing, of those who take it in what counts."}
    )
    submitted_at = fields.AwareDateTime(allow_none=True)
    submitted_by = fields.String(
        allow_none=True, metadata={"description": "The user's id, or the client's; null while open."}
    )
    submitted_by_name = fields.String(allow_none=True)


class SubmissionFilterSchema(Schema):
    """Whose submissions to list."""

    batch = Id(metadata={"description": "A batch of the cohort; a cohort's id is its first batch."})
    term = term_text("the batch's")


class NewSubmissionSchema(Schema):
    """Which results to hand in."""

    term = term_text("the cohort's")
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
    reason = free_text(metadata={"description": "The audit log keeps it."})
