"""The built-in provider's endpoints: under /auth, and where RFC 8414 has a provider describe itself."""

from __future__ import annotations

from typing import Any

from flask import Response, request
from flask.views import MethodView
from marshmallow import fields, validate

from school_service.auth.login_throttle import LoginThrottle
from school_service.features.auth_provider import service
from school_service.features.auth_provider.token_form import REALM, TokenRequestParser, answer_error
from school_service.web.blueprint import Blueprint
from school_service.web.client_address import client_address, service_address
from school_service.web.fields import Choice, Text
from school_service.web.request_scope import app_state, attempted_username
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


# Seconds: a new key is published for longer than this before it signs (docs/operators.md).
KEYS_MAX_AGE = 300

ISSUER = "/auth"
TOKEN = f"{ISSUER}/oauth/token"
KEYS = f"{ISSUER}/.well-known/jwks.json"
METADATA = "/.well-known/oauth-authorization-server"

blp = Blueprint("auth", __name__, description="The built-in identity provider.")
# Attempts are counted, and errors answered, apart from those of schools' users (REALM, answer_error).
blp.ARGUMENTS_PARSER = TokenRequestParser()
blp.register_error_handler(Exception, answer_error)


@blp.route(TOKEN)
class Tokens(MethodView):
    """Tokens for machine clients."""

    @blp.public
    @blp.answers(403)
    @blp.errors_as(TokenErrorSchema, 400, 401, 413, 429, 500, 503)
    @blp.arguments(TokenRequestSchema)
    @blp.returns(TokenSchema)
    def post(self, credentials: dict[str, Any]) -> Any:
        """Issue a token to a machine client by its secret (client credentials).

        OAuth clients send a form (application/x-www-form-urlencoded) with `grant_type`, and the client's id and
        secret by HTTP Basic or in the form: then request and errors are those of RFC 6749. The audience may be left
        out of a form.
        """
        attempted_username(REALM, credentials["client_id"])
        return service.issue_token(
            app_state().verifier.key,
            client_id=credentials["client_id"],
            client_secret=credentials["client_secret"],
            audience=credentials["audience"],
            expected_audience=app_state().settings.auth_audience,
            throttle=LoginThrottle(REALM, client_address()),
        )


def forbid_old_caches(response: Response) -> Response:
    """Tell caches of HTTP/1.0 too that a token is not to be stored (RFC 6749, section 5.1)."""
    if request.method == "POST":
        response.headers["Pragma"] = "no-cache"
    return response


blp.after_request(forbid_old_caches)


@blp.route(KEYS)
class Keys(MethodView):
    """The keys that the service's tokens are signed with."""

    @blp.public
    @blp.answers(400)
    @blp.returns(KeySetSchema, max_age=KEYS_MAX_AGE)
    def get(self) -> Any:
        """Show the public keys that verify the service's tokens."""
        return {"keys": app_state().verifier.keys.public_jwks}


# A client makes the address of the one issuer that it is configured with, in one of the two ways of section 3.1 and 5.
@blp.route(METADATA, endpoint="ServiceMetadata")
@blp.route(f"{METADATA}{ISSUER}", endpoint="ProviderMetadata")
@blp.route(f"{ISSUER}{METADATA}", endpoint="MetadataBelowProvider")
class Metadata(MethodView):
    """What OAuth clients need to know of the provider."""

    @blp.public
    @blp.answers(400)
    @blp.returns(ProviderSchema)
    def get(self) -> Any:
        """Describe the built-in provider to OAuth clients (RFC 8414)."""
        base = service_address()
        return {
            "issuer": base if request.path == METADATA else f"{base}{ISSUER}",
            "token_endpoint": f"{base}{TOKEN}",
            "jwks_uri": f"{base}{KEYS}",
            # Required, and may not be empty: there is no endpoint that answers anything to a browser.
            "response_types_supported": ["none"],
            "grant_types_supported": ["client_credentials"],
            "token_endpoint_auth_methods_supported": ["client_secret_basic", "client_secret_post"],
        }
