"""Reference data as the interface shows it."""

from __future__ import annotations

from marshmallow import fields

from school_service.web.fields import Id, Schema


class NationalitySchema(Schema):
    """A country, as a nationality."""

    id = fields.UUID(required=True)
    name = fields.String(required=True)
    code = fields.String(required=True, metadata={"description": "ISO 3166-1 alpha-2."})


class StateSchema(Schema):
    """A state of Nigeria."""

    id = fields.UUID(required=True)
    name = fields.String(required=True)
    code = fields.String(required=True, metadata={"description": "ISO 3166-2, without the country."})


class LgaSchema(Schema):
    """A local government area of a state."""

    id = fields.UUID(required=True)
    name = fields.String(required=True)
    state = fields.UUID(required=True)


class LgaFilterSchema(Schema):
    """Which local government areas to list."""

    state = Id()
