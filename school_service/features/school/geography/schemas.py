"""Reference data as the interface shows it."""

from __future__ import annotations

from marshmallow import fields

from school_service.web.fields import Id
from school_service.web.schemas import RecordSchema, Schema


class NationalitySchema(RecordSchema):
    """A country, as a nationality."""

    id = fields.UUID()
    name = fields.String()
    code = fields.String(metadata={"description": "ISO 3166-1 alpha-2."})


class StateSchema(RecordSchema):
    """A state of Nigeria."""

    id = fields.UUID()
    name = fields.String()
    code = fields.String(metadata={"description": "ISO 3166-2, without the country."})


class LgaSchema(RecordSchema):
    """A local government area of a state."""

    id = fields.UUID()
    name = fields.String()
    state = fields.UUID()


class LgaFilterSchema(Schema):
    """Which local government areas to list."""

    state = Id(required=False)
