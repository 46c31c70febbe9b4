"""Health as the interface shows it."""

from __future__ import annotations

from marshmallow import fields, validate

from school_service.web.schemas import RecordSchema


class HealthSchema(RecordSchema):
    """Whether the service and its database are up."""

    status = fields.String(validate=validate.OneOf(["ok", "unavailable"]))
    version = fields.String()
    database = fields.String(validate=validate.OneOf(["ok", "unreachable"]))


class LifeSchema(RecordSchema):
    """That the process answers."""

    status = fields.String(validate=validate.OneOf(["ok"]))
    version = fields.String()
