"""Credentials others made for an account end when it gains, unless their makers may do all it then may.

An account gains if its set of permissions, each with its reach, grows, or the set of children with results for it to
read. Each write behind a gain goes through a `Gain`: it locks the account, looks at the credentials others made for it
and ends the ones due to end, all in the same transaction.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import orjson

from school_service.auth.principal import Principal
from school_service.core.database import registry_connection, request_context
from school_service.core.permissions import Permission
from school_service.core.statements import Executable, execute, execute_with_commit
from school_service.features.audit.service import Change, audit_changes
from school_service.features.people.gains import reads
from school_service.features.people.gains.reads import INVITATION, KINDS, LINK, PASSWORD
from school_service.features.people.models import BY_ADMINISTRATOR
from tenants.registry.clients import granted_in

USER_ENTITY, INVITATION_ENTITY, IDENTITY_ENTITY = "user", "invitation", "identity"
"""The audit log's names of an account, an invitation and a link."""

Send = Callable[..., dict[str, Any] | None]
Grants = Callable[[Collection[str]], Mapping[str, Collection[str] | None]]

NOTHING: dict[str, Any] = {
    "credentials": [],
    "credentials_total": 0,
    "credentials_of_kind": dict.fromkeys(KINDS, 0),
}
"""The answer for accounts without credentials made by others."""


def grants_of_clients(client_ids: Collection[str]) -> Mapping[str, Collection[str] | None]:
    """Read the permissions of clients in the school of the request, None being all."""
    with registry_connection() as connection:
        return granted_in(connection, client_ids, request_context().school_id)


def _caller_may_read_users() -> bool:
    principal = request_context().principal
    return not isinstance(principal, Principal) or principal.has(Permission.USERS_READ)


@dataclass(frozen=True, slots=True)
class Means:
    """How a gain is written, looked at and audited: by default in the transaction of the request.

    `end` sends the statements of ending credentials. `may_read_users` tells whether the caller is told more than
    numbers.
    """

    send: Send = execute
    end: Callable[..., object] = execute_with_commit
    audit: Callable[[str, Iterable[Change]], None] = audit_changes
    grants: Grants = grants_of_clients
    may_read_users: Callable[[], bool] = _caller_may_read_users


OF_THE_REQUEST = Means()


@dataclass(frozen=True, slots=True)
class Gain:
    """A gain of accounts: the locks of the accounts, and the query for the credentials others made for them."""

    locks: tuple[Executable, ...]
    look: Callable[[str], Executable]

    def write(self, *writes: Executable, means: Means = OF_THE_REQUEST) -> dict[str, Any] | None:
        """Send the writes behind the gain, and end the credentials due to end with it; one message, and no more.

        A client among the makers costs two more. Returns `credentials`, `credentials_total` and `credentials_of_kind`,
        of the credentials others made for the accounts, as the caller may read them; None if no account gains.
        """
        row = self._look(means, *writes, *self.locks)
        if row["gained"]:
            _end(orjson.loads(row["ends"]), means)
        return _shown_credentials(row, means)

    def foresee(self, *, means: Means = OF_THE_REQUEST) -> dict[str, Any] | None:
        """Tell the same as `write`, and write nothing."""
        return _shown_credentials(self._look(means), means)

    def _look(self, means: Means, *before: Executable) -> dict[str, Any]:
        row = means.send(*before, self.look("[]")) or {}
        clients = orjson.loads(row["clients"])
        if clients:
            granted = means.grants(clients)
            rows = [
                {"client": client, "permission": permission}
                for client, permissions in granted.items()
                for permission in ([None] if permissions is None else permissions)
            ]
            row = means.send(self.look(orjson.dumps(rows).decode())) or {}
        return row


def _shown_credentials(row: Mapping[str, Any], means: Means) -> dict[str, Any] | None:
    """Tell the credentials others made for gaining accounts: without permission to read users, their numbers alone."""
    if not row["gained"]:
        return None
    numbers = orjson.loads(row["numbers"])
    return {
        "credentials": orjson.loads(row["shown"]) if means.may_read_users() else [],
        "credentials_total": sum(numbers.values()),
        "credentials_of_kind": numbers,
    }


def gain_of_accounts(*user_ids: UUID) -> Gain:
    """Make the gain of accounts given to a guardian, or of guardians getting a child."""
    accounts = list(user_ids)
    return Gain(_locks_of(accounts), lambda grants: reads.credentials_of_others(accounts, grants))


def gain_of_restored(user_id: UUID) -> Gain:
    """Make the gain of an account brought back: it may again do all it could."""
    return Gain(_locks_of([user_id]), lambda grants: reads.planted_in_restored(user_id, grants))


def gain_of_bearers(*role_ids: UUID, permission_ids: Collection[UUID] | None = None) -> Gain:
    """Make the gain of all bearers of roles, by all permissions of the roles, or by some of them alone.

    The caller has locked the roles: nobody gets one meanwhile. The tokens returned at the creation of these accounts
    end, too: their creators must not act as them.
    """
    roles = list(role_ids)
    permissions = None if permission_ids is None else list(permission_ids)
    return Gain(
        (reads.lock_bearers(roles), reads.end_creation_tokens_of_bearers(roles)),
        lambda grants: reads.planted_in_bearers(roles, grants, permissions),
    )


def gain_of_widened(widened: Collection[UUID], narrowed: Collection[UUID]) -> Gain:
    """Make the gain of all bearers of roles coming to reach the whole school, while others cease to.

    The caller has locked them; the gain is the same before and after the change is written.
    """
    roles = list(widened)
    return Gain(
        (reads.lock_bearers(roles), reads.end_creation_tokens_of_bearers(roles)),
        lambda grants: reads.planted_in_bearers(roles, grants, widened=roles, narrowed=list(narrowed)),
    )


def gain_of_role(role_id: UUID, user_id: UUID) -> Gain:
    """Make the gain of an account getting a role, locked by the caller, as `gain_of_bearers` does."""
    return Gain(
        _locks_of([user_id]), lambda grants: reads.planted_in_bearers([role_id], grants, user_id=user_id)
    )


def _locks_of(accounts: list[UUID]) -> tuple[Executable, ...]:
    return reads.lock_accounts(accounts), reads.end_creation_tokens(accounts)


def _end(ends: Iterable[Mapping[str, Any]], means: Means) -> None:
    """End invitations, links and passwords, with the sessions of their accounts, and audit their end."""
    ids: dict[str, list[UUID]] = {kind: [] for kind in KINDS}
    entries: dict[str, list[Change]] = {kind: [] for kind in KINDS}
    accounts = set()
    for end in ends:
        record_id, account = UUID(end["id"]), UUID(end["user_id"])
        values = {"user": account} if end["issuer"] is None else _link(end["issuer"], account)
        ids[end["kind"]].append(record_id)
        entries[end["kind"]].append(Change(record_id, values, None))
        accounts.add(account)
    if not accounts:
        return
    makes: tuple[tuple[str, Callable[[list[UUID]], Executable]], ...] = (
        (INVITATION, reads.end_invitations),
        (LINK, reads.end_links),
        (PASSWORD, reads.end_passwords),
        (PASSWORD, reads.end_links_by_password),
    )
    statements = [make(ids[kind]) for kind, make in makes if ids[kind]]
    means.end(*statements, reads.end_sessions(sorted(accounts)))
    means.audit(INVITATION_ENTITY, entries[INVITATION])
    means.audit(IDENTITY_ENTITY, entries[LINK])
    means.audit(USER_ENTITY, [_of_account(account, account in ids[PASSWORD]) for account in sorted(accounts)])


def _link(issuer: str, account: UUID) -> dict[str, Any]:
    return {"issuer": issuer, "way": BY_ADMINISTRATOR, "user": account}


def _of_account(account: UUID, has_lost_password: bool) -> Change:
    """Make the entry of the endings of an account itself: the log names them, never their values."""
    password = {"password": "ended"} if has_lost_password else {}
    return Change(account, {}, {**password, "sessions": "ended"})
