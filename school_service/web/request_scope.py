"""The scope of a request: token, school, transaction, work, commit (in this order, and only here)."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any
from uuid import UUID

from cachetools import TTLCache
from flask import current_app, g, request
from sqlalchemy.exc import DBAPIError

from school_service.auth.principal import InvalidSchoolHeader, Principal, VerifiedToken
from school_service.auth.tokens import TokenVerifier
from school_service.config import Settings
from school_service.core.database import (
    RequestContext,
    RoutedSession,
    current_session,
    db,
    request_context,
)
from school_service.core.errors import Forbidden, NotAuthenticated
from school_service.core.shares import Shares
from school_service.web.client_address import client_address
from school_service.web.request_log import request_id
from tenants.connections.binding import BindingOptions, SchoolBinding, registry_refusal
from tenants.connections.engines import execute_batch
from tenants.connections.sessions import begin_in_school, bind_sessions
from tenants.driver_errors import sqlstate
from tenants.exceptions import ClientUnknown
from tenants.registry.schools import School, find_school

# What a statement fails with where a migration has changed the tables that it was written for.
_SCHEMA_CHANGED = re.compile(r"42...|23502|0A000")

SCHOOL_CACHE_SIZE = 10_000
# Seconds that a school's public details are cached; whether it is open is read in every request.
SCHOOL_CACHE_SECONDS = 5.0

AuditInsertion = Callable[[RequestContext, list[dict[str, Any]]], tuple[str, dict[str, Any]]]


@dataclass
class AppState:
    """What all requests of an application share.

    `user_state` is the SELECT of a user's state in its school: a row with `permissions` (array of text), `name`,
    `session_number` and `must_change_password`, or no row where the user does not exist any more; its one parameter is
    the user's id. `audit_insertion` writes the
    statement that adds entries to the audit log, and its parameters. `binding_options` hold for every transaction.
    """

    settings: Settings
    verifier: TokenVerifier
    user_state: str
    audit_insertion: AuditInsertion
    binding_options: BindingOptions
    shares: Shares
    _schools: TTLCache[UUID, School] = field(
        default_factory=lambda: TTLCache(SCHOOL_CACHE_SIZE, SCHOOL_CACHE_SECONDS)
    )
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def known_school(self, authorization: str, header: str | None) -> str | None:
        """Name the school of a request, from its headers Authorization and X-SCHOOL-ID; asks nobody.

        None where its token was not verified before, or may not be used so.
        """
        token = self.verifier.find_verified(_bearer(authorization))
        try:
            return str(token.choose_school(header, required=False)) if token else None
        except (InvalidSchoolHeader, Forbidden):
            return None

    def school(self, school_id: UUID) -> School:
        """Find the public details of a school, at most SCHOOL_CACHE_SECONDS old."""
        with self._lock:
            school = self._schools.get(school_id)
        if school is None:
            with db.engines["registry"].connect() as connection:
                school = find_school(connection, school_id)
            with self._lock:
                self._schools[school_id] = school
        return school


def app_state() -> AppState:
    """The state of the current application."""
    state: AppState = current_app.extensions["school-service"]
    return state


# Once: the applications of a process share db.session.
bind_sessions(db.session, lambda: app_state().binding_options)


def current_principal() -> Principal:
    """The principal of this request."""
    principal: Principal = g.principal
    return principal


def current_school_id() -> UUID:
    """The id of this request's school."""
    return request_context().school_id


def authenticate() -> VerifiedToken:
    """Verify the request's token; raises NotAuthenticated."""
    token = _bearer(request.environ.get("HTTP_AUTHORIZATION", ""))
    if token is None:
        raise NotAuthenticated("A bearer token is needed.")
    return app_state().verifier.verify(token)


def _bearer(authorization: str) -> str | None:
    scheme, _, token = authorization.partition(" ")
    return token.strip(" ") if scheme.lower() == "bearer" else None


def run_in_request_scope(
    view: Callable[[], Any],
    *,
    school_required: bool,
    authorize: Callable[[Principal], None],
    audited: bool = False,
) -> Any:
    """Run a view in its request's school: one transaction, committed once, after the answer is rendered.

    `authorize` judges the principal before the view runs. Any error rolls back; GET runs read-only, unless it is
    `audited`: then it writes to the audit log. Raises Busy where the school has its share of requests.
    """
    g.token = token = authenticate()
    school_id = token.choose_school(request.environ.get("HTTP_X_SCHOOL_ID"), required=school_required)
    read_only = request.method in {"GET", "HEAD"} and not audited
    binding = token.bind_to(school_id, app_state().user_state, read_only=read_only)
    try:
        # The share comes first, so that a request that waits holds no connection.
        with app_state().shares.of(school_id), in_transaction(binding) as state:
            context = request_context()
            context.request_id = request_id()

            def admit(state: dict[str, Any] | None) -> None:
                g.principal = context.principal = principal = token.principal(state)
                authorize(principal)

            context.admit = admit
            context.address = client_address()
            admit(state)
            return view()
    except ClientUnknown:
        if token.own:
            raise NotAuthenticated("The token's client has no grant any more.") from None
        raise
    except DBAPIError as error:
        if _SCHEMA_CHANGED.fullmatch(sqlstate(error) or ""):
            _recheck_school(school_id)
        raise


def _recheck_school(school_id: UUID) -> None:
    """Check that a school is still open, at a revision that is served; raises the registry's refusal.

    Between the beginning of a transaction and its statements a migration may have been committed.
    """
    try:
        with db.engines["registry"].connect() as connection:
            connection.exec_driver_sql(
                "SELECT registry.enter(%s, %s::text[], NULL)",
                (str(school_id), list(app_state().binding_options.serves)),
            )
    except DBAPIError as error:
        refused = registry_refusal(error)
        if refused is not None:
            raise refused from None
        raise


@contextmanager
def in_transaction(binding: SchoolBinding) -> Iterator[dict[str, Any] | None]:
    """Work in a school in one transaction: commits at the end, rolls back on any error.

    Yields the row of the caller's state. What was refused (`RequestContext.refusals`) is stored either way. For code
    outside a request, such as sample data and tests, `SchoolBinding(school_id)` is enough.
    """
    session = current_session()
    state = begin_in_school(session, binding)
    context = RequestContext(binding, partial(app_state().school, binding.school_id))
    session.context = context
    try:
        yield state
        if not binding.read_only:
            _commit(session, [*context.audit_entries, *context.refusals])
        elif context.audit_entries or context.refusals:
            raise RuntimeError("A read-only transaction can't write to the audit log: the view is `audited`.")
        # What has only read has nothing to commit: closing the session ends its transaction.
    except BaseException:
        session.rollback()
        if context.refusals and not binding.read_only:
            # The request leaves nothing but that it was refused.
            begin_in_school(session, SchoolBinding(binding.school_id))
            _commit(session, context.refusals)
        raise
    finally:
        session.context = None
        session.close()


def _commit(session: RoutedSession, entries: list[dict[str, Any]]) -> None:
    """Commit a transaction; entries of the audit log go out in one message with COMMIT."""
    session.flush()
    if entries:
        connection = session.connection()
        insertion, parameters = app_state().audit_insertion(request_context(), entries)
        dialect: Any = connection.dialect
        execute_batch(connection, f"{insertion};\n{dialect.commit_statement()}", parameters)
    session.commit()
