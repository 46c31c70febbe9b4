"""The built-in provider's endpoints under /auth."""

from __future__ import annotations

from typing import Any

from flask.views import MethodView
from marshmallow import fields, validate

from school_service.core.database import db
from school_service.features.auth_provider.service import client_token
from school_service.web.blueprint import Blueprint
from school_service.web.fields import Choice, Schema, Text
from school_service.web.rendering import object_response
from school_service.web.request_scope import house

blp = Blueprint("auth", __name__, url_prefix="/auth", description="The built-in identity provider.")


class TokenRequestSchema(Schema):
    """The request of a client for its token."""

    client_id = Text(required=True)
    client_secret = Text(500, required=True, trim=False)
    audience = Text(500, required=True)
    grant_type = Choice(("client_credentials",), required=True)


class TokenSchema(Schema):
    """A bearer token."""

    access_token = fields.String(required=True)
    token_type = fields.String(required=True, validate=validate.OneOf(["Bearer"]))
    expires_in = fields.Integer(required=True, metadata={"description": "Seconds."})


class KeySetSchema(Schema):
    """Public keys (RFC 7517)."""

    keys = fields.List(fields.Dict(keys=fields.String(), values=fields.String()), required=True)


@blp.route("/oauth/token")
class Tokens(MethodView):
    """Tokens for machine clients."""

    @blp.public
    @blp.answers(401, 403)
    @blp.arguments(TokenRequestSchema)
    @blp.returns(TokenSchema)
    def post(self, asked: dict[str, Any]) -> Any:
        """Issue a token to a machine client by its secret (client credentials)."""
        token = client_token(
            db.engines["registry"],
            house().verifier.key,
            client_id=asked["client_id"],
            client_secret=asked["client_secret"],
            audience=asked["audience"],
            expected_audience=house().settings.auth_audience,
        )
        response = object_response(token)
        response.cache_control.no_store = True  # RFC 6749, section 5.1
        return response


@blp.route("/.well-known/jwks.json")
class Keys(MethodView):
    """The keys that the service's tokens are signed with."""

    @blp.public
    @blp.returns(KeySetSchema)
    def get(self) -> Any:
        """Show the public keys that verify the service's tokens."""
        return {"keys": [house().verifier.key.public_jwk]}
