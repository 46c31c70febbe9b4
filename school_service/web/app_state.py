"""The common state of all requests of an application, and the sender of the current one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any
from uuid import UUID

from school_service.auth.principal import InvalidSchoolHeader, Principal, VerifiedToken
from school_service.auth.tokens import TokenVerifier
from school_service.config import Settings
from school_service.core.database import (
    RequestContext,
    RoutedSession,
    context_globals,
    current_application,
    request_context,
)
from school_service.core.errors import Forbidden, NoToken
from school_service.core.remembered import KnownByRegistry
from school_service.core.shares import Shares
from school_service.web.linked_accounts import LinkedAccounts, linked_accounts
from school_service.web.request_log import AUTHENTICATION_ERROR
from tenants.connections.binding import BindingOptions
from tenants.connections.sessions import bind_sessions
from tenants.registry.schools import School, find_school

SCHOOL_CACHE_SIZE = 10_000
# Seconds that a school's public details are cached; whether it is open is read in every request.
SCHOOL_CACHE_SECONDS = 5.0

AuditInsertions = Callable[[RequestContext, list[dict[str, Any]]], list[tuple[str, Any]]]


@dataclass
class AppState:
    """The common state of all requests of an application.

    `user_state` is the SELECT of a user's state in its school: a row with `permissions` and `own_permissions` (arrays
    of text), `name`, `session_number`, `must_change_password` and the user's relations, or no row if the user does not
    exist any more; its parameters are the user's id, twice, the moment, whether relations are asked for, and the
    token's session, issuer and subject: `session_number` is -1 if the session, or the link, is not there any more.
    Relations not asked for are null, unless the user has `own_permissions`. `audit_insertions` writes the statements
    to add entries and a change set to the audit log, each with its parameters. `binding_options` hold for every
    transaction.
    """

    settings: Settings
    verifier: TokenVerifier
    user_state: str
    audit_insertions: AuditInsertions
    binding_options: BindingOptions
    shares: Shares
    _schools: KnownByRegistry[UUID, School] = field(
        default_factory=lambda: KnownByRegistry(SCHOOL_CACHE_SIZE, SCHOOL_CACHE_SECONDS)
    )
    linked_accounts: LinkedAccounts = field(default_factory=linked_accounts)

    def known_school(self, authorization: str, header: str | None) -> str | None:
        """Name the school of a request by its headers Authorization and X-SCHOOL-ID, without asking a server.

        None if the token was not verified before, or does not cover the school.
        """
        token = self.verifier.find_verified(_bearer(authorization))
        try:
            return str(token.choose_school(header, required=False)) if token else None
        except (InvalidSchoolHeader, Forbidden):
            return None

    def verify(self, authorization: str) -> Exception | None:
        """Verify the token of a header Authorization, so that `known_school` knows it.

        Returns the error for `authenticate` to raise of it, if there is one.
        """
        token = _bearer(authorization)
        try:
            if token is not None:
                self.verifier.verify(token)
        except Exception as error:
            return error
        return None

    def school(self, school_id: UUID) -> School:
        """Find the public details of a school: at most SCHOOL_CACHE_SECONDS old, as long as the registry answers.

        Whether the school is open does not depend on them: its own server says so to each transaction.
        """
        return self._schools.find(school_id, partial(find_school, school_id=school_id))


def app_state() -> AppState:
    """The state of the current application."""
    state: AppState = current_application().extensions["school-service"]
    return state


# Bound once, since the applications of a process share the class of db.session.
bind_sessions(RoutedSession, lambda: app_state().binding_options)


def current_principal() -> Principal:
    """The principal of this request."""
    principal: Principal = context_globals().principal
    return principal


def current_token() -> VerifiedToken:
    """The token of this request, known from its beginning."""
    token: VerifiedToken = context_globals().token
    return token


def current_user_id() -> UUID | None:
    """The id of the user of this request's token, known from its beginning; None for a machine client."""
    return current_token().user_id


def current_school_id() -> UUID:
    """The id of this request's school."""
    return request_context().school_id


def authenticate(state: AppState, environ: dict[str, Any]) -> VerifiedToken:
    """Verify the token of a request; raises NotAuthenticated."""
    error: Exception | None = environ.get(AUTHENTICATION_ERROR)
    if error is not None:
        raise error
    token = _bearer(environ.get("HTTP_AUTHORIZATION", ""))
    if token is None:
        raise NoToken
    return state.verifier.verify(token)


def _bearer(authorization: str) -> str | None:
    scheme, _, token = authorization.partition(" ")
    return token.strip(" ") if scheme.lower() == "bearer" else None
