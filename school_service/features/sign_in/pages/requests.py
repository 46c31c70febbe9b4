"""Judging an authorization request, by its query and the client's registration; free of HTTP and the database.

The request is for OAuth 2.1's authorization code with PKCE (RFC 6749 and 7636, RFC 9700), with OpenID Connect's
parameters as far as they are here.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from urllib.parse import parse_qsl, quote
from uuid import UUID

from school_service.features.sign_in.grants import PERMISSIONS, SCOPES

MOST_BYTES = 8 * 1024
"""Of the query of a request."""
PARAMETERS = (
    "client_id",
    "redirect_uri",
    "response_type",
    "code_challenge",
    "code_challenge_method",
    "scope",
    "state",
    "nonce",
    "school",
    "login_hint",
    "prompt",
    "max_age",
    "display",
    "ui_locales",
    "audience",
    "response_mode",
    "request",
    "request_uri",
    "id_token_hint",
)
"""The parameters with a meaning; each may be given once."""
_LENGTHS = {"state": 2000, "nonce": 500, "login_hint": 120}
_CHALLENGE = re.compile(r"[A-Za-z0-9_-]{43}")


class NotRedirected(Exception):
    """Client or redirect URI are not right: nobody is sent anywhere. The message is for the person at the page."""


class RequestRefused(Exception):
    """The request is not right: a redirect tells the client so, with this `error` of RFC 6749 or OpenID Connect."""

    def __init__(self, error: str, description: str) -> None:
        super().__init__(f"{error}: {description}")
        self.error = error
        self.description = description


@dataclass(frozen=True, slots=True)
class AuthorizationRequest:
    """The content of a client's request.

    `scopes` are the named ones of SCOPES, in their order. `permissions` narrow its tokens: the named permissions within
    its ceiling, else the ceiling; None if there is neither. `person` (school and user) is the only one for signing
    in: None if anybody may.
    """

    scopes: tuple[str, ...]
    permissions: tuple[str, ...] | None
    code_challenge: str
    nonce: str | None
    login_hint: str
    person: tuple[UUID, UUID] | None = None


class Query:
    """The query of a request; a parameter without a value counts as left out (RFC 6749, section 3.1)."""

    def __init__(self, query: bytes) -> None:
        self._raw = query
        text = query.decode(errors="surrogateescape")
        self._pairs = parse_qsl(text, keep_blank_values=True, errors="surrogateescape")

    def only(self, name: str) -> str | None:
        """Give a parameter with one value; None if it is absent, or there several times."""
        given = [value for key, value in self._pairs if key == name]
        return given[0] or None if len(given) == 1 else None

    def has(self, name: str) -> bool:
        """Tell whether a parameter is there, be it once, several times or without a value."""
        return any(key == name for key, _ in self._pairs)

    def of_request(self) -> Query:
        """Keep the parameters with a meaning, as they were sent: nothing else of a form belongs in an address."""
        parts = (part for part in self._raw.split(b"&") if part)
        named = zip(parts, self._pairs, strict=True)
        return Query(b"&".join(part for part, (name, _) in named if name in PARAMETERS))

    def repeated(self) -> str | None:
        """Name a parameter with a meaning and several values; None if there is none."""
        names = [name for name, _ in self._pairs]
        return next((name for name in PARAMETERS if names.count(name) > 1), None)

    @property
    def is_too_long(self) -> bool:
        """Whether it has more than MOST_BYTES."""
        return len(self._raw) > MOST_BYTES

    @property
    def as_sent(self) -> str:
        """The query as it may stand in an address."""
        return quote(self._raw, safe="%&=+;/?:@!$'()*,~")

    def address(self, school: str | None = None) -> str:
        """Write the query as an address beside the page's own, with another school, or with none.

        All else stays as it was sent.
        """
        kept = [part for part in self.as_sent.split("&") if part and _name_of(part) != "school"]
        if school is not None:
            kept.append(f"school={quote(school, safe='')}")
        return f"?{'&'.join(kept)}"


def _name_of(part: str) -> str:
    return parse_qsl(part, keep_blank_values=True)[0][0]


def judge(
    query: Query, *, ceiling: Collection[str] | None, person: tuple[UUID, UUID] | None = None
) -> AuthorizationRequest:
    """Read a request with the right client and redirect URI. Raises RequestRefused.

    `ceiling`: the most permissions of the client's tokens; None if the roles of the person alone decide. `person` is
    the person named by its `id_token_hint`: school and user.
    """
    if query.is_too_long:
        raise RequestRefused("invalid_request", f"The query is longer than {MOST_BYTES} bytes.")
    repeated = query.repeated()
    if repeated is not None:
        raise RequestRefused("invalid_request", f"The parameter {repeated} is given more than once.")
    _refuse_what_is_not_here(query)
    for name, most in _LENGTHS.items():
        if len(query.only(name) or "") > most:
            raise RequestRefused("invalid_request", f"The parameter {name} is longer than {most} characters.")
    nonce = query.only("nonce")
    if nonce is not None and not _is_text(nonce):
        raise RequestRefused("invalid_request", "The parameter nonce is no text.")
    challenge = query.only("code_challenge") or ""
    if not _CHALLENGE.fullmatch(challenge):
        raise RequestRefused(
            "invalid_request",
            "A code_challenge is needed: 43 characters of base64url, the SHA-256 of a verifier.",
        )
    if query.only("code_challenge_method") != "S256":
        raise RequestRefused("invalid_request", "The code_challenge_method must be S256.")
    named = (query.only("scope") or "").split(" ")
    permissions = _narrowed([name for name in named if name in PERMISSIONS], ceiling)
    if "none" in (query.only("prompt") or "").split(" "):
        raise RequestRefused("login_required", "Nobody is ever signed in here already.")
    return AuthorizationRequest(
        scopes=tuple(name for name in SCOPES if name in named),
        permissions=permissions,
        code_challenge=challenge,
        nonce=nonce,
        login_hint=_as_text(query.only("login_hint") or ""),
        person=person,
    )


def _is_text(value: str) -> bool:
    """Tell whether a value can be stored: it is UTF-8, without NUL."""
    return "\0" not in value and _as_text(value) == value


def _as_text(value: str) -> str:
    return value.encode(errors="surrogateescape").decode(errors="replace")


def _refuse_what_is_not_here(query: Query) -> None:
    if query.only("request") is not None:
        raise RequestRefused("request_not_supported", "The parameter request is not supported.")
    if query.only("request_uri") is not None:
        raise RequestRefused("request_uri_not_supported", "The parameter request_uri is not supported.")
    if query.only("response_mode") not in (None, "query"):
        raise RequestRefused("invalid_request", "The only response_mode is query.")
    response_type = query.only("response_type")
    if response_type is None:
        raise RequestRefused("invalid_request", "The parameter response_type is missing.")
    if response_type != "code":
        raise RequestRefused("unsupported_response_type", "The only response_type is code.")


def _narrowed(named: Collection[str], ceiling: Collection[str] | None) -> tuple[str, ...] | None:
    """Give the permissions to narrow a token to; None if nothing narrows it. Raises RequestRefused."""
    if not named:
        return None if ceiling is None else tuple(sorted(ceiling))
    within = sorted(set(named) if ceiling is None else set(named) & set(ceiling))
    if not within:
        raise RequestRefused("invalid_scope", "The client may have none of these permissions.")
    return tuple(within)
