"""The built-in provider's endpoints: under /auth, and at RFC 8414's address for a provider's description of itself.

Those for signing people in are there if PUBLIC_URL gives the address of the issuer (`people_blp`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial, wraps
from typing import Any, ClassVar, TypeVar
from uuid import UUID

from flask import Response, current_app, request
from flask.views import MethodView
from marshmallow import EXCLUDE, fields

from school_service.auth.login_throttle import TOKEN_ENDPOINT, LoginThrottle, check_grants
from school_service.config import ISSUER_PATH
from school_service.core.error_types import ErrorType
from school_service.core.errors import NotAuthenticated, WrongPassword
from school_service.features.auth_provider import service
from school_service.features.auth_provider.token_form import (
    CODE_GRANT,
    OAUTH_ERRORS,
    PEOPLES_GRANTS,
    TokenFormRefused,
    TokenRequestParser,
    answer_error,
    asked_scope,
    peoples_grant,
    read_client,
    read_parameters,
)
from school_service.features.sign_in import grants
from school_service.features.sign_in.secrets import read_refresh_token, school_of_code
from school_service.web.admitting import acting_as_client, attempted_username
from school_service.web.app_state import app_state
from school_service.web.blueprint import Blueprint
from school_service.web.client_address import client_address, service_address
from school_service.web.fields import Choice, Text
from school_service.web.openapi import ERRORS, DocumentedError
from school_service.web.pages import FORM_LIMIT
from school_service.web.rendering import object_response
from school_service.web.request_log import log_of_request
from school_service.web.schemas import (
    TOKEN_TYPES,
    ErrorSchema,
    RecordSchema,
    Schema,
    described,
    text_of,
    texts,
)
from tenants.exceptions import ClientUnknown, SchoolForbidden, UnknownSchool
from tenants.registry.clients import TokenClient


class TokenRequestSchema(Schema):
    """The request of a client for its token."""

    client_id = Text()
    client_secret = Text(500, trim=False, any_characters=True)
    audience = Text(500)
    grant_type = Choice(("client_credentials",))


def _parameter(description: str, *, required: bool = False) -> Text:
    return described(Text, description, FORM_LIMIT, required=required)


class RevocationFormSchema(Schema):
    """A token to be given up, as a form (RFC 7009), in the document: token_form reads it."""

    class Meta:
        """Other parameters are not looked at (RFC 6749, section 3.2)."""

        unknown = EXCLUDE

    token = _parameter("A refresh or access token of the client.", required=True)
    token_type_hint = _parameter("Not needed, and not looked at.")
    client_id = _parameter("The client, unless it authenticates by HTTP Basic.")
    client_secret = _parameter("Its secret; a public client sends none.")


class TokenErrorSchema(ErrorSchema):
    """An error of the token endpoint: if the request was a form, with the members of RFC 6749, section 5.2."""

    error = described(fields.String, "The error, for a program: `invalid_client`.")
    error_description = described(fields.String, "The error, for a person, in ASCII.")


def _of_form(status: int, **others: Any) -> DocumentedError:
    """Document an error as forms are answered; `others` are other than everywhere."""
    error = replace(ERRORS[status], **others)
    _, name = OAUTH_ERRORS.get(status, (status, "invalid_request"))
    return replace(error, more={"error": name, "error_description": error.message})


_FORM_ERRORS = {
    **{status: _of_form(status) for status in (413, 429, 500, 503)},
    400: _of_form(
        400,
        meaning="The form is not valid, or the body is not JSON.",
        type=ErrorType.VALIDATION,
        message="The client must authenticate in one way, not in two.",
    ),
    401: _of_form(
        401,
        meaning="The client or its secret is missing or wrong.",
        type=ErrorType.WRONG_CREDENTIALS,
        message=service.WRONG,
        headers={
            "WWW-Authenticate": {
                "description": "`Basic` to a form, else `Bearer`.",
                "schema": {"type": "string"},
            }
        },
    ),
}
_JSON_ERRORS = {
    403: replace(ERRORS[403], meaning="The audience is another.", message=service.OTHER_AUDIENCE),
    422: replace(ERRORS[422], errors={"json": {"grant_type": ["Must be one of: client_credentials."]}}),
}


class ProviderSchema(RecordSchema):
    """The provider's description for OAuth clients (RFC 8414), and for OpenID Connect clients if people sign in."""

    SOMETIMES: ClassVar = frozenset(
        {
            *("authorization_endpoint", "userinfo_endpoint", "revocation_endpoint", "end_session_endpoint"),
            *("response_modes_supported", "revocation_endpoint_auth_methods_supported", "scopes_supported"),
            *("code_challenge_methods_supported", "subject_types_supported", "claims_supported"),
            *("id_token_signing_alg_values_supported", "authorization_response_iss_parameter_supported"),
            *("request_parameter_supported", "request_uri_parameter_supported"),
        }
    )

    issuer = described(fields.String, "The address that the client was configured with.")
    token_endpoint = described(fields.String, "Where tokens are asked for.")
    jwks_uri = described(fields.String, "Where the public keys are.")
    response_types_supported = texts("`code` or, without an authorization endpoint, `none`.")
    grant_types_supported = texts("How tokens are asked for, such as `client_credentials`.")
    token_endpoint_auth_methods_supported = texts("How a client shows its secret; `none` if it is public.")
    authorization_endpoint = described(fields.String, "Where people sign in: the address of the page.")
    userinfo_endpoint = described(
        fields.String, "Where people sign in: the address of the claims on a token's person."
    )
    revocation_endpoint = described(
        fields.String, "Where people sign in: the address to revoke a token at (RFC 7009)."
    )
    end_session_endpoint = described(fields.String, "Where people sign in: where they sign out.")
    response_modes_supported = texts("Where people sign in: how a code comes back.")
    revocation_endpoint_auth_methods_supported = texts(
        "Where people sign in: how a client shows its secret there."
    )
    scopes_supported = texts(
        "Where people sign in: the scopes beside the permissions, which are scopes, too."
    )
    code_challenge_methods_supported = texts("Where people sign in: how a verifier is hashed (RFC 7636).")
    subject_types_supported = texts("Where people sign in: `public`: a person is the same to every client.")
    claims_supported = texts("Where people sign in: the claims of ID tokens.")
    id_token_signing_alg_values_supported = texts("Where people sign in: how ID tokens are signed.")
    authorization_response_iss_parameter_supported = described(
        fields.Boolean, "Where people sign in: whether answers name the issuer (RFC 9207)."
    )
    request_parameter_supported = described(
        fields.Boolean, "Where people sign in: whether requests may be signed."
    )
    request_uri_parameter_supported = described(
        fields.Boolean, "Where people sign in: whether requests may be named by an address."
    )


class TokenSchema(RecordSchema):
    """A bearer token; a person's token with further members of the session."""

    SOMETIMES: ClassVar = frozenset({"refresh_token", "scope", "school_id", "id_token"})

    access_token = fields.String()
    token_type = text_of(TOKEN_TYPES)
    expires_in = described(fields.Integer, "Seconds.")
    refresh_token = described(fields.String, "Of people: to get the next token with.")
    scope = described(fields.String, "Of people, and of clients that ask for a scope: the granted one.")
    school_id = described(fields.UUID, "Of people: the school, for X-SCHOOL-ID.")
    id_token = described(fields.String, "Of people with the scope `openid`: their ID token.")


class NothingSchema(RecordSchema):
    """An answer with nothing in it."""


class KeySetSchema(RecordSchema):
    """Public keys (RFC 7517)."""

    keys = fields.List(fields.Dict(keys=fields.String(), values=fields.String()))


# Seconds: a new key is published for longer than this before it signs (docs/operators.md).
KEYS_MAX_AGE = 300

TOKEN = f"{ISSUER_PATH}/oauth/token"
REVOCATION = f"{ISSUER_PATH}/oauth/revoke"
OPENID_METADATA = f"{ISSUER_PATH}/.well-known/openid-configuration"
KEYS = f"{ISSUER_PATH}/.well-known/jwks.json"
METADATA = "/.well-known/oauth-authorization-server"

blp = Blueprint("auth", __name__, description="The built-in identity provider.")
# Attempts are counted, and errors answered, apart from those of schools' users (TOKEN_ENDPOINT, answer_error).
blp.ARGUMENTS_PARSER = TokenRequestParser()
blp.register_error_handler(Exception, answer_error)

people_blp = Blueprint("sign-in", __name__, description="Signing in by a browser or an app.")
people_blp.register_error_handler(Exception, answer_error)

Done = TypeVar("Done")
_INVALID_GRANT = "The code or token is not valid, or not any more."


def _exchange(grant: str) -> dict[str, Any] | None:
    """Exchange the code or refresh token in a request's form for tokens; None if it is refused."""
    client = _authenticated()
    # A client that has shown a secret is no stranger.
    given = read_parameters(grant, counts=client.is_public)
    state = app_state()
    if state.settings.issuer is None:
        raise RuntimeError("Without an issuer nobody's tokens are asked for.")
    issuer = grants.Issuer(state.settings.issuer, state.verifier.key)
    if grant == CODE_GRANT:
        code = given["code"]
        school_id = school_of_code(code)
        if school_id is None:
            return None
        return _in_school(
            client,
            school_id,
            lambda client: grants.exchange_code(
                code,
                client=client,
                verifier=given["code_verifier"],
                redirect_uri=given.get("redirect_uri"),
                issuer=issuer,
            ),
        )
    token = read_refresh_token(given["refresh_token"])
    if token is None:
        return None
    scope = given["scope"].split(" ") if "scope" in given else None
    try:
        return _in_school(
            client,
            token.school_id,
            lambda client: grants.refresh(token, client=client, scope=scope, issuer=issuer),
        )
    except grants.InvalidScope:
        raise TokenFormRefused(
            "invalid_scope", "The scope has more than was granted when the person signed in."
        ) from None


def _authenticated() -> TokenClient:
    """Find and authenticate the client of a form; raises WrongPassword, TokenFormRefused, TooManyAttempts."""
    address = client_address()
    check_grants(address)
    client_id, secret = read_client()
    if secret is not None:
        attempted_username(TOKEN_ENDPOINT, client_id)
    known: service.TokenClients = current_app.extensions[service.TOKEN_CLIENTS]
    client = known.authenticate(
        client_id=client_id, client_secret=secret, throttle=LoginThrottle(TOKEN_ENDPOINT, address)
    )
    log_of_request(client=client.id)
    return client


def _in_school(client: TokenClient, school_id: UUID, work: Callable[[TokenClient], Done]) -> Done | None:
    """Work in a school as a client, as it is now; None if it has no such school. Raises WrongPassword."""
    try:
        with acting_as_client(client.id, school_id) as grant:
            if grant["is_public"] == client.is_public:
                of_now = {name: grant[name] for name in ("session_number", "user_permissions")}
                return work(client._replace(**of_now))
    except (SchoolForbidden, UnknownSchool):
        return None
    except ClientUnknown:
        pass  # It was revoked since it was looked for.
    raise WrongPassword(service.WRONG)


def exchanges_forms(view: Callable[..., Any]) -> Callable[..., Any]:
    """Decorate the token endpoint: forms asking for a person's tokens are answered before those for a client's."""
    dumper = TokenSchema()

    @wraps(view)
    def exchanging(*arguments: Any, **parameters: Any) -> Any:
        grant = peoples_grant()
        if grant is None:
            return view(*arguments, **parameters)
        answer = _exchange(grant)
        if answer is None:
            raise TokenFormRefused("invalid_grant", _INVALID_GRANT)
        return object_response(dumper.dump(answer))

    return exchanging


@blp.route(TOKEN)
class Tokens(MethodView):
    """Tokens for machine clients, and for people signed in by a client."""

    @blp.public
    @exchanges_forms
    @blp.errors_as(TokenErrorSchema, _FORM_ERRORS)
    @blp.errors_as(ErrorSchema, _JSON_ERRORS)
    # Its form is told in words: of an operation with two bodies openapi-python-client makes a function without types.
    @blp.arguments(TokenRequestSchema)
    @blp.returns(TokenSchema)
    def post(self, credentials: dict[str, Any]) -> Any:
        """Issue a token to a machine client by its secret, or to a client for a person who has signed in by it.

        OAuth clients send a form (application/x-www-form-urlencoded) with `grant_type`, and the client's id and
        secret by HTTP Basic or in the form: then request and errors are those of RFC 6749. The audience may be left
        out of a form. `scope` of a form narrows the token to some of the grant's permissions; others are 400
        `invalid_scope`. People's tokens are asked for by a form alone, with `grant_type` authorization_code (`code`,
        `code_verifier`) or refresh_token (`refresh_token`, perhaps less `scope`); public clients send their
        `client_id` and no secret.
        """
        attempted_username(TOKEN_ENDPOINT, credentials["client_id"])
        try:
            return service.issue_token(
                app_state().verifier.key,
                client_id=credentials["client_id"],
                client_secret=credentials["client_secret"],
                audience=credentials["audience"],
                expected_audience=app_state().settings.auth_audience,
                throttle=LoginThrottle(TOKEN_ENDPOINT, client_address()),
                scope=asked_scope(),
            )
        except grants.InvalidScope:
            raise TokenFormRefused("invalid_scope", "The scope has more than the client's grant.") from None


def forbid_old_caches(response: Response) -> Response:
    """Tell caches of HTTP/1.0 too not to store a token (RFC 6749, section 5.1)."""
    if request.method == "POST":
        response.headers["Pragma"] = "no-cache"
    return response


blp.after_request(forbid_old_caches)
people_blp.after_request(forbid_old_caches)


@blp.route(KEYS)
class Keys(MethodView):
    """The keys for signing the service's tokens."""

    @blp.public
    @blp.answers(400)
    @blp.returns(KeySetSchema, max_age=KEYS_MAX_AGE)
    def get(self) -> Any:
        """Show the public keys that verify the service's tokens."""
        return {"keys": app_state().verifier.keys.public_jwks}


@people_blp.route(REVOCATION)
class Revocation(MethodView):
    """Giving tokens up."""

    @people_blp.public
    @people_blp.errors_as(TokenErrorSchema, _FORM_ERRORS)
    @people_blp.describes_form(RevocationFormSchema)
    @people_blp.returns(NothingSchema)
    def post(self) -> Any:
        """End the session of a refresh or access token of the client that asks (RFC 7009).

        A form with `token`, and the client's id and secret as for the token endpoint. Any other token is answered
        likewise, and nothing happens.
        """
        client = _authenticated()
        token = read_parameters("revocation", counts=client.is_public)["token"]
        of_refresh = read_refresh_token(token)
        if of_refresh is not None:
            _in_school(client, of_refresh.school_id, partial(grants.revoke_refresh_token, of_refresh))
            return {}
        try:
            shown = app_state().verifier.verify(token)
        except NotAuthenticated:
            return {}
        if shown.session_id is not None and shown.schools:
            work = partial(grants.revoke_session, shown.session_id)
            _in_school(client, next(iter(shown.schools)), work)
        return {}


def _describe(issuer: str, base: str) -> dict[str, Any]:
    """Describe the provider as an issuer, with its endpoints below an address."""
    methods = ["client_secret_basic", "client_secret_post"]
    return {
        "issuer": issuer,
        "token_endpoint": f"{base}{TOKEN}",
        "jwks_uri": f"{base}{KEYS}",
        # Required, and may not be empty: there is no endpoint that answers anything to a browser.
        "response_types_supported": ["none"],
        "grant_types_supported": ["client_credentials"],
        "token_endpoint_auth_methods_supported": methods,
    }


def _describe_for_people(issuer: str) -> dict[str, Any]:
    """Describe the provider as people and their apps find it."""
    state = app_state()
    base = state.settings.public_url
    description = _describe(issuer, f"{base}")
    methods = [*description["token_endpoint_auth_methods_supported"], "none"]
    return description | {
        "authorization_endpoint": f"{issuer}/authorize",
        "userinfo_endpoint": f"{issuer}/userinfo",
        "revocation_endpoint": f"{base}{REVOCATION}",
        "end_session_endpoint": f"{issuer}/logout",
        "response_types_supported": ["code"],
        "response_modes_supported": ["query"],
        "grant_types_supported": [*PEOPLES_GRANTS, "client_credentials"],
        "token_endpoint_auth_methods_supported": methods,
        "revocation_endpoint_auth_methods_supported": methods,
        "scopes_supported": list(grants.SCOPES),
        "code_challenge_methods_supported": ["S256"],
        "subject_types_supported": ["public"],
        "claims_supported": list(grants.CLAIMS),
        "id_token_signing_alg_values_supported": [state.verifier.key.algorithm],
        "authorization_response_iss_parameter_supported": True,
        "request_parameter_supported": False,
        # Its default is true (OpenID Connect Discovery, section 3).
        "request_uri_parameter_supported": False,
    }


# A client makes the address of the one issuer that it is configured with, in one of the ways of RFC 8414 (section 3.1
# and 5) or, below, of OpenID Connect Discovery.
@blp.route(METADATA, endpoint="ServiceMetadata")
@blp.route(f"{METADATA}{ISSUER_PATH}", endpoint="ProviderMetadata")
@blp.route(f"{ISSUER_PATH}{METADATA}", endpoint="MetadataBelowProvider")
class Metadata(MethodView):
    """The provider's description for OAuth clients."""

    @blp.public
    @blp.answers(400)
    @blp.returns(ProviderSchema)
    def get(self) -> Any:
        """Describe the built-in provider to OAuth clients (RFC 8414)."""
        issuer, base = app_state().settings.issuer, service_address()
        if request.path == METADATA:
            return _describe(base, base)
        return _describe(f"{base}{ISSUER_PATH}", base) if issuer is None else _describe_for_people(issuer)


@people_blp.route(OPENID_METADATA)
class OpenidMetadata(MethodView):
    """The provider's description for OpenID Connect clients."""

    @people_blp.public
    @people_blp.answers(400)
    @people_blp.returns(ProviderSchema)
    def get(self) -> Any:
        """Describe the built-in provider to OpenID Connect clients."""
        issuer = app_state().settings.issuer
        return _describe_for_people(f"{issuer}")
