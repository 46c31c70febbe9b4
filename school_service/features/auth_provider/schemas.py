"""Token requests, tokens and key sets as OAuth 2.0 has them."""

from __future__ import annotations

from marshmallow import fields, validate

from school_service.web.fields import Choice, Text
from school_service.web.schemas import TOKEN_TYPES, ErrorSchema, RecordSchema, Schema


class TokenRequestSchema(Schema):
    """The request of a client for its token."""

    client_id = Text()
    client_secret = Text(500, trim=False, any_characters=True)
    audience = Text(500)
    grant_type = Choice(("client_credentials",))


class TokenErrorSchema(ErrorSchema):
    """An error of the token endpoint: where the request was a form, with the members of RFC 6749, section 5.2."""

    error = fields.String(metadata={"description": "What is wrong, for a program: `invalid_client`."})
    error_description = fields.String(metadata={"description": "What is wrong, for a person, in ASCII."})


class ProviderSchema(RecordSchema):
    """What OAuth clients need to know of the provider (RFC 8414)."""

    issuer = fields.String(metadata={"description": "The address that the client was configured with."})
    token_endpoint = fields.String(metadata={"description": "Where tokens are asked for."})
    jwks_uri = fields.String(metadata={"description": "Where the public keys are."})
    response_types_supported = fields.List(
        fields.String(), metadata={"description": "`none`: there is no authorization endpoint."}
    )
    grant_types_supported = fields.List(
        fields.String(), metadata={"description": "How tokens are asked for: `client_credentials`."}
    )
    token_endpoint_auth_methods_supported = fields.List(
        fields.String(), metadata={"description": "How a client shows its secret."}
    )


class TokenSchema(RecordSchema):
    """A bearer token."""

    access_token = fields.String()
    token_type = fields.String(validate=validate.OneOf(TOKEN_TYPES))
    expires_in = fields.Integer(metadata={"description": "Seconds."})


class KeySetSchema(RecordSchema):
    """Public keys (RFC 7517)."""

    keys = fields.List(fields.Dict(keys=fields.String(), values=fields.String()))
