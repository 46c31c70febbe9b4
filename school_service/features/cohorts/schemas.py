"""Cohorts and batches as the interface shows them."""

from __future__ import annotations

from marshmallow import fields

from school_service.web.fields import Id, Schema, Text


class CohortSchema(Schema):
    """A classroom in one academic session."""

    id = fields.UUID(required=True)
    classroom = fields.String(required=True, metadata={"description": "The classroom's name."})
    session = fields.String(required=True, metadata={"description": "The id of the academic session."})


class NewCohortSchema(Schema):
    """What a cohort is made of."""

    classroom = Id(required=True)
    session_id = Text(required=True, metadata={"description": "The academic session's id or its name."})


class BatchSchema(Schema):
    """An arm of a cohort."""

    id = fields.UUID(required=True)
    number = fields.Integer(required=True, metadata={"description": "Counts the school's batches."})
    name = fields.String(required=True)
    cohort = fields.UUID(required=True)


class NewBatchSchema(Schema):
    """An arm to add to a cohort."""

    name = Text(required=True)
