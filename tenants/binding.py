"""The one message that begins a transaction and confines it to a school.

Everything is `SET LOCAL`: it dies with the transaction, so nothing can leak through a pool, and PgBouncer's
transaction pooling works. The message also asks the registry whether the school is open to the caller, and ends
with a SELECT of the caller's own state (alive? which permissions?), so that all of it costs one round trip.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from uuid import UUID

from sqlalchemy.exc import DBAPIError

from tenants.errors import (
    ClientUnknown,
    SchoolForbidden,
    SchoolSuspended,
    SchoolUpgrading,
    TenancyError,
    UnknownSchool,
)
from tenants.registry import schema_of

# Raised by the function registry.enter (migrations/registry).
_REFUSALS: dict[str, tuple[type[TenancyError], str]] = {
    "SC401": (ClientUnknown, "The token's client has no grant here."),
    "SC403": (SchoolForbidden, "The token does not cover this school."),
    "SC404": (UnknownSchool, "No such school."),
    "SC423": (SchoolSuspended, "This school is suspended."),
    "SC503": (SchoolUpgrading, "This school is being upgraded. Try again shortly."),
}

_CLIENT_STATE = "SELECT all_permissions, permissions{switch} FROM registry.clients WHERE id = %s AND revoked_at IS NULL"


@dataclass(frozen=True, slots=True)
class Entry:
    """A request to work in a school: which school, who asks, and what to learn of the asker on the way in.

    `client` names the machine client whose grant must cover the school; with `client_state` its permissions are
    read from the registry. `state` is a SELECT run inside the school, with `state_parameters`; its row is the
    user's state. Neither is needed where a token says all of it.
    """

    school_id: UUID
    read_only: bool = False
    client: str | None = None
    client_state: str | None = None
    state: str | None = None
    state_parameters: tuple[Any, ...] = ()


@dataclass(frozen=True, slots=True)
class Rules:
    """What holds for every entry of this process.

    `roles`: whether each school has a role of its own to switch to (off: isolation is by search_path alone).
    `serves`: the revisions of a school's schema that the running code can work with.
    """

    roles: bool
    serves: tuple[str, ...]


def binding_message(begin: str, entry: Entry, rules: Rules) -> tuple[str, tuple[Any, ...]]:
    """Write the message, and its parameters, that begins a transaction (with the words of `begin`) in a school."""
    schema = schema_of(entry.school_id)
    statements = [
        begin,
        "SELECT registry.enter(%s, %s::text[], %s)",
        "SET LOCAL TIME ZONE 'UTC'",
        f'SET LOCAL search_path TO "{schema}", pg_temp',
    ]
    parameters: tuple[Any, ...] = (str(entry.school_id), list(rules.serves), entry.client)
    if entry.client_state is not None:
        # The grant is read as the login role, the switch comes last: the school's role can't see the registry.
        switch = f", set_config('role', '{schema}', true)" if rules.roles else ""
        statements.append(_CLIENT_STATE.format(switch=switch))
        return ";\n".join(statements), (*parameters, entry.client_state)
    if rules.roles:
        statements.append(f'SET LOCAL ROLE "{schema}"')
    if entry.state is not None:
        statements.append(entry.state)
        parameters += entry.state_parameters
    return ";\n".join(statements), parameters


def refusal(error: DBAPIError) -> TenancyError | None:
    """Translate the registry's refusal of an entry; None where the error is of another kind."""
    found = _REFUSALS.get(getattr(error.orig, "pgcode", None) or "")
    return None if found is None else found[0](found[1])
