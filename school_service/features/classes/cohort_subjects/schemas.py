"""Cohort subjects as the interface shows them."""

from __future__ import annotations

from marshmallow import fields

from school_service.web.fields import Id, StrictBoolean, sought_text
from school_service.web.schemas import MineSchema, RecordSchema, Schema


class CohortSubjectSchema(RecordSchema):
    """A subject taught to a cohort."""

    id = fields.UUID()
    elective = fields.Boolean(metadata={"description": "Taken only by those who chose it."})
    subject = fields.String(metadata={"description": "The subject's name."})
    code = fields.String(metadata={"description": "The subject's code."})
    cohort = fields.UUID()


class NewCohortSubjectSchema(Schema):
    """A subject to teach to a cohort."""

    cohort_id = Id()
    subject_id = Id()
    elective = StrictBoolean()


class CohortSubjectFilterSchema(MineSchema):
    """The cohort subjects to list."""

    batch = Id(required=False, metadata={"description": "A cohort, or any batch of it."})
    base = Id(required=False, metadata={"description": "The subject that is taught."})
    session = sought_text(required=False, metadata={"description": "The academic session's id or its name."})
