"""Admitting the sender of a request: by their token and their state, or by the acting client."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from sqlalchemy.exc import DBAPIError

from school_service.auth.login_throttle import TOKEN_ENDPOINT, hash_username
from school_service.auth.policies import Admission, Policy
from school_service.auth.principal import VerifiedToken
from school_service.core.database import context_globals, request_context
from school_service.core.reach import CallersRelations
from school_service.web.app_state import app_state
from school_service.web.client_address import client_address, take_told_address
from school_service.web.request_log import request_id
from school_service.web.transactions import find_reason, in_transaction
from tenants.connections.binding import SchoolBinding


def admit(token: VerifiedToken, policy: Policy, state: Mapping[str, Any] | None) -> Admission:
    """Make the request's principal of their state, and judge them; raises NotAuthenticated, Forbidden."""
    context, known = request_context(), context_globals()
    context.principal = known.principal = principal = token.principal(state)
    known.school_id = context.school_id
    context.request_id = request_id()
    if state is not None and state.get("tells_addresses") and token.is_of_client:
        take_told_address()
    context.address = client_address()
    context.reach = None
    admission = policy.admit(principal, state)
    known.by_own, context.reach = admission
    if state is not None and (context.reach is not None or principal.own_permissions):
        context.relations = CallersRelations.of(state)
    return admission


@dataclass(frozen=True, slots=True)
class ActingClient:
    """A client, or a page, acting for a person not signed in yet."""

    actor: str

    @property
    def actor_name(self) -> str:
        """Its id."""
        return self.actor


@contextmanager
def acting_as_client(
    client_id: str | None, school_id: UUID, *, page: str = ""
) -> Iterator[Mapping[str, Any]]:
    """Work in a school in one transaction for a person not signed in yet, by a client with a grant for the school.

    Yields the client's grant as it is now, with its session number and whether it is public. If no client led there,
    the `page` acts. All such callers in a school have a share of requests together, apart from the share of others.
    Raises Busy beyond it, ClientUnknown, SchoolForbidden, UnknownSchool, SchoolSuspended, SchoolUpgrading.
    """
    state, known = app_state(), context_globals()

    def admit(_grant: Mapping[str, Any] | None) -> None:
        context = request_context()
        context.principal = known.acting_client = ActingClient(client_id or page)
        known.school_id = school_id
        context.request_id = request_id()
        context.address = client_address()

    try:
        with state.shares.of(("not signed in", school_id)) as waited:
            if waited:
                known.waited_for_share = waited
            with in_transaction(SchoolBinding(school_id, client=client_id), admit) as grant:
                yield grant or {}
    except DBAPIError as error:
        find_reason(error, school_id)
        raise


def attempted_username(realm: str, username: str) -> str:
    """Hash the username of an attempt to sign in, and let the access log have it.

    `realm` is a school's id or the token endpoint.
    """
    hashed = hash_username(app_state().verifier.key, realm, username)
    known = context_globals()
    known.username_hash, known.attempt_of = hashed, "client" if realm == TOKEN_ENDPOINT else "user"
    return hashed
