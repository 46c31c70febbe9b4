"""Token requests, tokens and key sets as OAuth 2.0 has them."""

from __future__ import annotations

from marshmallow import fields, validate

from school_service.web.fields import Choice, Text
from school_service.web.schemas import RecordSchema, Schema


class TokenRequestSchema(Schema):
    """The request of a client for its token."""

    client_id = Text()
    client_secret = Text(500, trim=False, any_characters=True)
    audience = Text(500)
    grant_type = Choice(("client_credentials",))


class TokenSchema(RecordSchema):
    """A bearer token."""

    access_token = fields.String()
    token_type = fields.String(validate=validate.OneOf(["Bearer"]))
    expires_in = fields.Integer(metadata={"description": "Seconds."})


class KeySetSchema(RecordSchema):
    """Public keys (RFC 7517)."""

    keys = fields.List(fields.Dict(keys=fields.String(), values=fields.String()))
