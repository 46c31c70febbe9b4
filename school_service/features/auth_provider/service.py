"""The built-in identity provider: tokens for machine clients, and the clients asking for people's tokens."""

from __future__ import annotations

from collections.abc import Collection
from functools import partial
from typing import Any

from sqlalchemy import Connection

from school_service.auth.login_throttle import LoginThrottle
from school_service.auth.signing_key import SigningKey
from school_service.auth.tokens import issue_client_token
from school_service.core.database import registry_connection
from school_service.core.errors import Forbidden, WrongPassword
from school_service.core.permissions import Permission
from school_service.core.remembered import KnownByRegistry
from school_service.features.sign_in.grants import InvalidScope
from tenants.registry.clients import TokenClient, check_secret, find_token_client, token_claims

TOKEN_CLIENTS = "token clients"  # noqa: S105 -- it names them
"""The key of an application's TokenClients in its extensions."""
REMEMBERED = 1_000  # public clients
SECONDS = 5.0
WRONG = "The client or its secret is wrong."
OTHER_AUDIENCE = "The client may not have tokens for this audience."


def issue_token(
    key: SigningKey,
    *,
    client_id: str,
    client_secret: str,
    audience: str,
    expected_audience: str,
    throttle: LoginThrottle,
    scope: str | None = None,
) -> dict[str, Any]:
    """Issue a token to a client by its secret (OAuth 2.0 client credentials, RFC 6749 section 4.4).

    `scope` has the permissions to narrow the grant's to. Raises WrongPassword for a wrong client or secret, Forbidden
    for another audience, InvalidScope, TooManyAttempts.
    """
    throttle.check(client_id)
    with registry_connection() as connection:
        granted = token_claims(connection, client_id)
        if not check_secret(connection, client_id, client_secret):
            throttle.record_failure(client_id)
            raise WrongPassword(WRONG)
        throttle.record_success(client_id)
        if audience != expected_audience:
            raise Forbidden(OTHER_AUDIENCE)
        named = None if scope is None else _permissions_of(scope, granted.permissions)
        token = issue_client_token(
            key, client_id, granted.schools, session_number=granted.session_number, permissions=named
        )
        return token if named is None else {**token, "scope": " ".join(named)}


def _permissions_of(scope: str, granted: Collection[str] | None) -> list[str]:
    """Read the permissions of a scope, each once; raises InvalidScope for any that the grant does not cover."""
    named = list(dict.fromkeys(scope.split(" ")))
    if not {*(map(str, Permission) if granted is None else granted)}.issuperset(named):
        raise InvalidScope
    return named


class TokenClients:
    """The clients asking for people's tokens; public ones, which give their id alone, are remembered for SECONDS.

    The facts for a grant, whether the client stands, its session number and its ceiling, are read anew with the binding
    to the school.
    """

    def __init__(self) -> None:
        self._known: KnownByRegistry[str, TokenClient | None] = KnownByRegistry(REMEMBERED, SECONDS)

    def authenticate(
        self, *, client_id: str, client_secret: str | None, throttle: LoginThrottle
    ) -> TokenClient:
        """Find a client and authenticate it: a public one gives its id alone, the others show their secret.

        Raises WrongPassword, TooManyAttempts.
        """
        if client_secret is None:
            client = self._known.find(client_id, partial(_public_client, client_id=client_id))
            if client is None:
                raise WrongPassword(WRONG)
            return client
        throttle.check(client_id)
        with registry_connection() as connection:
            client = find_token_client(connection, client_id)
            if (
                client is not None
                and not client.is_public
                and check_secret(connection, client_id, client_secret)
            ):
                return client
        throttle.record_failure(client_id)
        raise WrongPassword(WRONG)


def _public_client(connection: Connection, client_id: str) -> TokenClient | None:
    client = find_token_client(connection, client_id)
    return client if client is not None and client.is_public else None


def is_public_client(client_id: str) -> bool:
    """Tell whether there is a public client of this id."""
    with registry_connection() as connection:
        return _public_client(connection, client_id) is not None
