"""Assessments as the interface shows them."""

from __future__ import annotations

from marshmallow import fields, validate

from school_service.features.assessments.models import CATEGORIES, LONGEST_FILE_NAME
from school_service.web.fields import Choice, Day, Flag, Id, Points, Schema, Text, free_text


class AssessmentSchema(Schema):
    """An exam, a test or a continuous assessment."""

    id = fields.UUID(required=True)
    subject = fields.UUID(required=True, metadata={"description": "The cohort subject."})
    name = fields.String(required=True)
    abbreviation = fields.String(required=True)
    due_date = fields.Date(required=True)
    total_points = fields.Decimal(required=True, metadata={"description": "The maximum score."})
    term = fields.UUID(required=True)
    include_in_final = fields.Boolean(
        required=True, metadata={"description": "Whether it counts in the final grade."}
    )
    publish_scores = fields.Boolean(
        required=True, metadata={"description": "Whether its scores are published."}
    )
    category = fields.String(required=True, validate=validate.OneOf(CATEGORIES))
    file_name = fields.String(required=True)


class NewAssessmentSchema(Schema):
    """An assessment to create."""

    category = Choice(CATEGORIES, required=True)
    subject = Id(required=True, metadata={"description": "The cohort subject."})
    name = Text(required=True)
    abbreviation = Text(required=True)
    due_date = Day(required=True)
    total_points = Points(
        zero=False,
        required=True,
        metadata={"description": "The maximum score, with two decimal places at most."},
    )
    term = Id(required=True, metadata={"description": "A term of the cohort's session."})
    description = free_text(required=True)
    file_name = Text(LONGEST_FILE_NAME, required=True)
    include_in_final = Flag(required=True)
    publish_scores = Flag(required=True)


class AssessmentFilterSchema(Schema):
    """Which assessments to list."""

    cohort = Id(required=True, metadata={"description": "A batch of the cohort, or the cohort."})
    subject = Id(
        required=True, metadata={"description": "The cohort subject, or the subject that is taught."}
    )
    term = Id(required=True)
