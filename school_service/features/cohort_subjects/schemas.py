"""Cohort subjects as the interface shows them."""

from __future__ import annotations

from marshmallow import fields

from school_service.web.fields import Flag, Id, Schema, Text


class CohortSubjectSchema(Schema):
    """A subject taught to a cohort."""

    id = fields.UUID(required=True)
    elective = fields.Boolean(required=True, metadata={"description": "Taken only by those who chose it."})
    subject = fields.String(required=True, metadata={"description": "The subject's name."})
    code = fields.String(required=True, metadata={"description": "The subject's code."})
    cohort = fields.UUID(required=True)


class NewCohortSubjectSchema(Schema):
    """A subject to teach to a cohort."""

    cohort_id = Id(required=True)
    subject_id = Id(required=True)
    elective = Flag(required=True)


class CohortSubjectFilterSchema(Schema):
    """Which cohort subjects to list."""

    batch = Id(metadata={"description": "A cohort, or any batch of it."})
    base = Id(metadata={"description": "The subject that is taught."})
    session = Text(metadata={"description": "The academic session's id or its name."})
