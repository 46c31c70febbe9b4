"""Gradebook entries as the interface shows them."""

from __future__ import annotations

from marshmallow import fields, validate

from school_service.features.school.sessions.schemas import term_text
from school_service.features.scores.models import CATEGORIES
from school_service.web.fields import Id, Points
from school_service.web.schemas import RecordSchema, Schema


class GradebookEntrySchema(RecordSchema):
    """The score of a student in an assessment."""

    id = fields.UUID()
    assessment = fields.UUID()
    assessment_category = fields.String(validate=validate.OneOf(CATEGORIES))
    score = fields.Decimal(metadata={"description": "From 0 to the assessment's total points."})
    student = fields.UUID()
    batch = fields.UUID(metadata={"description": "Where the student was when it was entered."})
    subject = fields.UUID(metadata={"description": "The cohort subject."})


class ScoreSchema(Schema):
    """A score to correct an entry with."""

    score = Points(
        metadata={"description": "From 0 to the assessment's total points, with two decimal places at most."}
    )


class NewGradebookEntrySchema(ScoreSchema):
    """A score to enter."""

    assessment = Id()
    student = Id(metadata={"description": "In the batch, and taking the subject."})
    batch = Id(
        metadata={
            "description": "The arm of the assessment's cohort in which the student is; a cohort's id is its first arm."
        }
    )


class GradebookFilterSchema(Schema):
    """The gradebook entries to list."""

    batch = Id(
        required=False, metadata={"description": "Those of a batch; a cohort's id is its first batch."}
    )
    student = Id(required=False, metadata={"description": "Those of a student, by id."})
    assessment = Id(required=False, metadata={"description": "Those of an assessment, by id."})
    term = term_text("any", required=False)
