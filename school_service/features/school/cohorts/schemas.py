"""Cohorts and batches as the interface shows them."""

from __future__ import annotations

from marshmallow import fields

from school_service.web.fields import Id, Text, sought_text
from school_service.web.schemas import RecordSchema, Schema


class CohortSchema(RecordSchema):
    """A classroom in one academic session."""

    id = fields.UUID()
    classroom = fields.String(metadata={"description": "The classroom's name."})
    session = fields.String(metadata={"description": "The id of the academic session."})


class NewCohortSchema(Schema):
    """What a cohort is made of."""

    classroom = Id()
    session_id = sought_text(metadata={"description": "The academic session's id or its name."})


class BatchSchema(RecordSchema):
    """An arm of a cohort."""

    id = fields.UUID()
    number = fields.Integer(metadata={"description": "Counts the school's batches."})
    name = fields.String()
    cohort = fields.UUID()


class NewBatchSchema(Schema):
    """An arm to add to a cohort."""

    name = Text()
