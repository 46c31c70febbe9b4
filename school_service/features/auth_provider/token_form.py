"""Token requests as RFC 6749 has them: a form, HTTP Basic, and errors for OAuth clients to understand.

A request in JSON is the interface's own and is read and answered like every other; the tokens for a person's code or
refresh token are asked for by a form alone.
"""

from __future__ import annotations

import base64
import re
from typing import Any
from urllib.parse import unquote_plus

from flask import Request, Response, request

from school_service.auth.login_throttle import TOKEN_ENDPOINT, check_grants, count_refused_grant
from school_service.core.errors import Invalid, TooManyAttempts, WrongPassword
from school_service.features.auth_provider import service
from school_service.web.app_state import app_state
from school_service.web.body_parser import BodyParser
from school_service.web.client_address import client_address
from school_service.web.error_responses import handle
from school_service.web.pages import FORM, FORM_LIMIT
from school_service.web.rendering import object_response
from tenants.exceptions import SchoolSuspended
from tenants.names import is_storable

# Section 3.2: other parameters are ignored, and none of these may come twice.
PARAMETERS = ("grant_type", "client_id", "client_secret", "audience", "scope")
CODE_GRANT, REFRESH_GRANT = PEOPLES_GRANTS = ("authorization_code", "refresh_token")
"""The grants for people's tokens."""
# The parameters of those, and of a revocation (RFC 7009, section 2.1), beside the client's.
_OF_PEOPLE = {
    CODE_GRANT: ("code", "code_verifier", "redirect_uri"),
    REFRESH_GRANT: ("refresh_token", "scope"),
    "revocation": ("token", "token_type_hint"),
}
_NEEDED = ("code", "code_verifier", "refresh_token", "token")
# RFC 7636, section 4.1.
_VERIFIER = re.compile(r"[A-Za-z0-9._~-]{43,128}")

# Statuses of other operations, as status and error of section 5.2; statuses that are not here stay, and are an
# invalid_request. `invalid_target` is of RFC 8707, the last two are registered for such cases too.
OAUTH_ERRORS = {
    401: (401, "invalid_client"),
    403: (400, "invalid_target"),
    422: (400, "invalid_request"),
    429: (429, "temporarily_unavailable"),
    500: (500, "server_error"),
    503: (503, "temporarily_unavailable"),
}
# Characters that a description may not have: quotes, backslashes, and all beyond ASCII.
_UNSAID = re.compile(r"[^\x20\x21\x23-\x5b\x5d-\x7e]")


class TokenFormRefused(Invalid):
    """A form asks for something impossible, or is none; `error` is the code of RFC 6749, section 5.2.

    `counts`: whether it does among the refusals of its address.
    """

    counts = True

    def __init__(self, error: str, message: str) -> None:
        super().__init__(message)
        self.error = error


class TokenRequestParser(BodyParser):
    """Reads a token request, JSON or a form."""

    def load_json(self, req: Request, schema: Any) -> Any:
        """Read the members; raises TokenFormRefused and WrongPassword of a form."""
        if _is_form(req):
            return _read_form(req)
        members = super().load_json(req, schema)
        grant = members.get("grant_type") if isinstance(members, dict) else None
        if grant in PEOPLES_GRANTS and app_state().settings.issuer is not None:
            raise TokenFormRefused("invalid_request", f"The grant {grant} is sent as a form.")
        return members


def answer_error(error: Exception) -> Response:
    """Answer an error; for a form with the members and the status of RFC 6749 beside the members of every error.

    So is JSON in place of a form answered. Each refusal of a form counts for its address, for any reason,
    and is 429 beyond the limit: all of them pass here.
    """
    if not (_is_form(request) or isinstance(error, TokenFormRefused)):
        return handle(error)
    answer = _answer_as_oauth(error)
    if 400 <= answer.status_code < 429 and getattr(error, "counts", True):
        try:
            count_refused_grant(client_address())
        except TooManyAttempts as too_many:
            return _answer_as_oauth(too_many)
    return answer


def _answer_as_oauth(error: Exception) -> Response:
    response = handle(error)
    body = response.get_json()
    status, name = OAUTH_ERRORS.get(response.status_code, (response.status_code, "invalid_request"))
    fields = body.pop("errors", {}).get("json", {})
    words = [f"{field}: {' '.join(reasons)}" for field, reasons in fields.items()] or [body["message"]]
    if isinstance(error, TokenFormRefused):
        name = error.error
    elif isinstance(error, SchoolSuspended):
        name = "temporarily_unavailable"
    form_response = object_response(
        {
            **body,
            "code": status,
            "status": "Bad Request" if status == 400 else body["status"],
            "error": name,
            "error_description": _UNSAID.sub("'", " ".join(words)),
        }
    )
    form_response.status_code = status
    if status == 401:
        form_response.headers["WWW-Authenticate"] = f'Basic realm="{TOKEN_ENDPOINT}", charset="UTF-8"'
    if "Retry-After" in response.headers:
        form_response.headers["Retry-After"] = response.headers["Retry-After"]
    return form_response


def _is_form(req: Request) -> bool:
    return req.mimetype == FORM


def peoples_grant() -> str | None:
    """Tell the grant of PEOPLES_GRANTS by which the form of this request asks for tokens; None for all else."""
    if app_state().settings.issuer is None or not _is_form(request):
        return None
    request.max_content_length = FORM_LIMIT
    named = request.form.getlist("grant_type")
    return named[0] if len(named) == 1 and named[0] in PEOPLES_GRANTS else None


def asked_scope() -> str | None:
    """Read the scope that the form of this request asks for; None without one, and for JSON."""
    return (request.form.get("scope") or None) if _is_form(request) else None


def read_client() -> tuple[str, str | None]:
    """Read the client of a form about a person's tokens, and its secret if it gave one.

    Raises TokenFormRefused and WrongPassword.
    """
    request.max_content_length = FORM_LIMIT
    if not (_is_form(request) and any(request.form.values())):
        raise TokenFormRefused("invalid_request", f"The request must be a form, {FORM}, that says something.")
    return _client_of(request, _form_parameters(request, ("client_id", "client_secret")), secret_needed=False)


def read_parameters(kind: str, *, counts: bool) -> dict[str, str]:
    """Read the parameters of one of PEOPLES_GRANTS, or of a `revocation`.

    Raises TokenFormRefused; `counts`: whether it does among the refusals of its address.
    """
    try:
        given = _form_parameters(request, _OF_PEOPLE[kind])
        for name in _OF_PEOPLE[kind]:
            if name in _NEEDED and name not in given:
                raise TokenFormRefused("invalid_request", f"The parameter {name} is missing.")
        if kind == CODE_GRANT and not _VERIFIER.fullmatch(given["code_verifier"]):
            raise TokenFormRefused("invalid_request", "The parameter code_verifier is none of RFC 7636.")
    except TokenFormRefused as refused:
        refused.counts = counts
        raise
    return given


def _form_parameters(req: Request, parameters: tuple[str, ...]) -> dict[str, str]:
    """Read the parameters of a form; one without a value counts as left out. Raises TokenFormRefused."""
    for name in parameters:
        if len(req.form.getlist(name)) > 1:
            raise TokenFormRefused("invalid_request", f"The parameter {name} is given more than once.")
    return {name: req.form[name] for name in parameters if req.form.get(name)}


def _read_form(req: Request) -> dict[str, str | None]:
    """Read a form as the members of a token request."""
    req.max_content_length = FORM_LIMIT
    given = _form_parameters(req, PARAMETERS)
    grant_type = given.get("grant_type")
    if grant_type is None:
        raise TokenFormRefused("invalid_request", "The parameter grant_type is missing.")
    if grant_type != "client_credentials":
        others = f", {' and '.join(PEOPLES_GRANTS)}" if app_state().settings.issuer else ""
        raise TokenFormRefused(
            "unsupported_grant_type",
            f"The grants are client_credentials{others}."
            if others
            else "The only grant is client_credentials.",
        )
    try:
        client_id, client_secret = _client_of(req, given)
    except WrongPassword:
        named, secret = _client_of(req, given, secret_needed=False)
        check_grants(client_address())
        if secret is None and service.is_public_client(named):
            raise TokenFormRefused(
                "unauthorized_client", "A public client has no tokens of its own."
            ) from None
        raise
    return {
        "grant_type": grant_type,
        "client_id": client_id,
        "client_secret": client_secret,
        # RFC 6749 has no audience; the service has only one.
        "audience": given.get("audience", app_state().settings.auth_audience),
    }


def _client_of(req: Request, given: dict[str, str], *, secret_needed: bool = True) -> tuple[str, str | None]:
    """Find the client's id and secret, by HTTP Basic or in the form (section 2.3.1); None if it gave no secret.

    Raises WrongPassword if it has to give one, and for an impossible id; TokenFormRefused.
    """
    client_id, secret = _credentials(req, given, secret_needed=secret_needed)
    if not is_storable(client_id):
        raise WrongPassword(service.WRONG)
    return client_id, secret


def _credentials(req: Request, given: dict[str, str], *, secret_needed: bool) -> tuple[str, str | None]:
    scheme, _, credentials = req.headers.get("Authorization", "").partition(" ")
    if scheme.lower() != "basic":
        if "client_id" in given and ("client_secret" in given or not secret_needed):
            return given["client_id"], given.get("client_secret")
        raise WrongPassword("The client must authenticate, by HTTP Basic or client_id and client_secret.")
    try:
        text = base64.b64decode(credentials.strip(), validate=True).decode()
        # Each of the two is encoded as in a form before they are put together.
        encoded_id, colon, encoded_secret = text.partition(":")
        client_id, client_secret = (
            unquote_plus(part, errors="strict") for part in (encoded_id, encoded_secret)
        )
    except ValueError:
        raise WrongPassword("The credentials of HTTP Basic can't be read.") from None
    if not (colon and client_id and (client_secret or not secret_needed)):
        raise WrongPassword("HTTP Basic needs the client's id and its secret.")
    if "client_secret" in given:
        raise TokenFormRefused("invalid_request", "The client must authenticate in one way, not in two.")
    if given.get("client_id", client_id) != client_id:
        raise TokenFormRefused("invalid_request", "The parameter client_id is not the client of HTTP Basic.")
    return client_id, client_secret or None
