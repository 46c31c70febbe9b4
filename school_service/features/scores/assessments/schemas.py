"""Assessments as the interface shows them."""

from __future__ import annotations

from marshmallow import fields

from school_service.features.school.sessions.schemas import term_text
from school_service.features.scores.models import CATEGORIES, FILE_NAME_LENGTH
from school_service.web.fields import (
    Choice,
    Id,
    IsoDate,
    Points,
    StrictBoolean,
    Text,
    free_text,
    id_list,
)
from school_service.web.schemas import RecordSchema, Schema, described, text_of

MAX_SUBJECTS = 100  # that get an assessment at once


class AssessmentSchema(RecordSchema):
    """An exam, a test or a continuous assessment."""

    id = fields.UUID()
    subject = described(fields.UUID, "The cohort subject.")
    name = fields.String()
    abbreviation = fields.String()
    due_date = fields.Date()
    total_points = described(fields.Decimal, "The maximum score.")
    term = fields.UUID()
    include_in_final = described(fields.Boolean, "Whether it counts in the final grade.")
    publish_scores = described(fields.Boolean, "Whether its scores are published.")
    category = text_of(CATEGORIES)
    file_name = fields.String()


class _AssessmentFieldsSchema(Schema):
    category = Choice(CATEGORIES)
    name = Text()
    abbreviation = Text()
    due_date = IsoDate()
    total_points = described(Points, "The maximum score, with two decimal places at most.", zero=False)
    term = term_text("the cohort's", as_id=True)
    description = free_text(least=0)
    file_name = Text(FILE_NAME_LENGTH, any_characters=True)
    include_in_final = StrictBoolean()
    publish_scores = StrictBoolean()


class NewAssessmentSchema(_AssessmentFieldsSchema):
    """An assessment to create."""

    subject = described(Id, "The cohort subject.")


class NewAssessmentsSchema(_AssessmentFieldsSchema):
    """The same assessment, to create for several subjects of a cohort."""

    subjects = described(id_list, "Cohort subjects, of one cohort.", least=1, most=MAX_SUBJECTS)


class AssessmentChangesSchema(_AssessmentFieldsSchema):
    """The members of an assessment to change: any of them but the cohort subject."""


class AssessmentFilterSchema(Schema):
    """The assessments to list."""

    cohort = described(Id, "A batch of the cohort, or the cohort.")
    subject = described(Id, "The cohort subject, or the subject that is taught.")
    term = term_text("the cohort's", as_id=True)
