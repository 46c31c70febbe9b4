"""Gradebook entries as the interface shows them."""

from __future__ import annotations

from marshmallow import fields

from school_service.features.school.sessions.schemas import term_text
from school_service.features.scores.models import CATEGORIES
from school_service.web.fields import Id, Points
from school_service.web.schemas import RecordSchema, Schema, described, text_of


class GradebookEntrySchema(RecordSchema):
    """The score of a student in an assessment."""

    id = fields.UUID()
    assessment = fields.UUID()
    assessment_category = text_of(CATEGORIES)
    score = described(fields.Decimal, "From 0 to the assessment's total points.")
    student = fields.UUID()
    batch = described(fields.UUID, "Where the student was when it was entered.")
    subject = described(fields.UUID, "The cohort subject.")


class ScoreSchema(Schema):
    """A score to correct an entry with."""

    score = described(Points, "From 0 to the assessment's total points, with two decimal places at most.")


class NewGradebookEntrySchema(ScoreSchema):
    """A score to enter."""

    assessment = Id()
    student = described(Id, "In the batch, and taking the subject.")
    batch = described(
        Id, "The arm of the assessment's cohort in which the student is; a cohort's id is its first arm."
    )


class GradebookFilterSchema(Schema):
    """The gradebook entries to list."""

    batch = described(Id, "The entries of a batch; a cohort's id is its first batch.", required=False)
    student = described(Id, "The entries of a student, by id.", required=False)
    assessment = described(Id, "The entries of an assessment, by id.", required=False)
    term = term_text("any", required=False)
