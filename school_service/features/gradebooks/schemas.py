"""Gradebook entries as the interface shows them."""

from __future__ import annotations

from marshmallow import fields, validate

from school_service.features.assessments.models import CATEGORIES
from school_service.web.fields import Id, Points, Schema


class GradebookEntrySchema(Schema):
    """The score of a student in an assessment."""

    id = fields.UUID(required=True)
    assessment = fields.UUID(required=True)
    assessment_category = fields.String(required=True, validate=validate.OneOf(CATEGORIES))
    score = fields.Decimal(
        required=True, metadata={"description": "From 0 to the assessment's total points."}
    )
    student = fields.UUID(required=True)
    batch = fields.UUID(required=True, metadata={"description": "Where the student was when it was entered."})
    subject = fields.UUID(required=True, metadata={"description": "The cohort subject."})


class NewGradebookEntrySchema(Schema):
    """A score to enter."""

    assessment = Id(required=True)
    score = Points(
        required=True,
        metadata={"description": "From 0 to the assessment's total points, with two decimal places at most."},
    )
    student = Id(required=True, metadata={"description": "In the batch, and taking the subject."})
    batch = Id(required=True, metadata={"description": "Of the assessment's cohort."})


class GradebookFilterSchema(Schema):
    """Which gradebook entries to list."""

    batch = Id(metadata={"description": "Those of a batch; a cohort's id is its first batch."})
