"""The statement batch that begins a transaction and binds it to a school.

Everything is `SET LOCAL`: it dies with the transaction, so nothing can leak through a pool, and PgBouncer's transaction
pooling works. The batch also checks in the registry (`registry.enter`) that the school is open to the token, and ends
with a SELECT of the principal's own state (not deleted? with which permissions?), so all of it costs one round trip. It
sets all conditions of a transaction (role, search_path, time zone, read-only or not), regardless of an earlier
transaction's settings on the connection.

By the school's role PostgreSQL refuses (42501), in a statement that came about by mistake: reading, writing, changing
or dropping anything of another school, reading the registry, creating schemas, roles, databases or temporary tables.
The catalogues stay readable, so the names of schemas and tables are no secret within the database.

No role can prevent a change of role: the login may become the role of each of its schools (`tenants.placement`), and
PostgreSQL judges `SET ROLE` by the login and not by the role of the moment. An intruder able to run SQL of their own
choice inside a request can say `SET ROLE` with another such role, or `RESET ROLE` and read the registry. Roles guard
against wrong statements, not against injected ones; against those there are bound parameters alone, and the rule that
no statement is ever built from input. A login for each school would end this, at the price of a pool for each.
"""

from __future__ import annotations

import logging
import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple
from uuid import UUID

from sqlalchemy.exc import DBAPIError

from tenants.driver_errors import first_line, sqlstate
from tenants.exceptions import (
    ClientUnknown,
    NotInstalled,
    SchoolElsewhere,
    SchoolForbidden,
    SchoolRoleUnknown,
    SchoolSuspended,
    SchoolUpgrading,
    TenancyError,
    UnknownSchool,
)
from tenants.placement import Entry
from tenants.registry.schools import lacks_registry, schema_name

# Raised by the function registry.enter (migrations/registry), and by the statement of `tenants.placement.Entry`.
_REFUSALS: dict[str, tuple[type[TenancyError], str]] = {
    "SC401": (ClientUnknown, "The token's client has no grant here."),
    "SC403": (SchoolForbidden, "The token does not cover this school."),
    "SC404": (UnknownSchool, "No such school."),
    "SC421": (SchoolElsewhere, "This school is being moved. Try again shortly."),
    "SC423": (SchoolSuspended, "This school is suspended."),
    "SC503": (SchoolUpgrading, "This school is being upgraded. Try again shortly."),
}

# Said by that statement, as an internal error, of a school whose tables were dropped.
_TABLES_ARE_GONE = "could not find valid entry for"
_NOT_NOW = "This school can't be entered just now. Try again shortly."
_NO_ROLE = (
    "PostgreSQL does not know the role of a school: was the database restored without the server's roles, or the "
    "school made with TENANT_ROLES=off? docs/operators.md says how roles are brought back"
)
_NO_MEMBERSHIP = (
    "a school is closed to its serving login: was SERVING_LOGINS changed? Run: school-service tenants init"
)
# The quoted name is the same in every language of the server's.
_SCHOOL_ROLE = re.compile(r'"school_[0-9a-f]{32}"')
_log = logging.getLogger(__name__)

STATEMENT_TIMEOUT = 15  # seconds that PostgreSQL may work on a statement of a request
LOCK_TIMEOUT = 5  # seconds that a statement of a request may wait for a lock

SCHOOLS_REMEMBERED = 10_000  # of them a process keeps the written batch
STATEMENTS_REMEMBERED = 2_000  # the same of statements that read; there are some hundreds

# One row, client or no client: the role is switched while the row is made, so it must be made. A client that is refused
# is no error to PostgreSQL, which would log it with the whole batch.
_CLIENT_STATE = """
SELECT entered.refusal, coalesce(c.all_permissions, false) AS all_permissions,
    coalesce(c.permissions, '{{}}') AS permissions, c.session_number, c.tells_addresses, c.is_public,
    c.user_permissions{switch}
FROM registry.enter_as_client(%s, %s::text[], %s, %s) AS entered (refusal)
    LEFT JOIN {grant}
"""
_GRANT = "registry.clients c ON c.id = %s AND c.revoked_at IS NULL"

_STATE_AND_QUERY = """
WITH caller AS MATERIALIZED ({state})
SELECT row_to_json(caller)::text AS body, NULL::boolean AS empty FROM caller
UNION ALL
SELECT body, empty FROM ({query}) AS answer WHERE (SELECT {condition} FROM caller)
"""


class SchoolBinding(NamedTuple):
    """The school of a transaction, whether it is read-only, and the state of the principal to be read with it.

    `client` names a client. It must not be revoked and, if `granted`, its grant must cover the school; with
    `client_session` it must be there, and its session number must be this one. `state` is a SELECT run inside the
    school, with `state_parameters`; its row is the user's state. Without it the state is the client's: its permissions
    and session number, of the registry (none if there is no such client). With `reading` the binding is for this
    statement alone, and not for a transaction to come. `snapshot`: all statements of the transaction see the rows
    committed when it began (REPEATABLE READ).
    """

    school_id: UUID
    read_only: bool = False
    client: str | None = None
    granted: bool = True
    state: str | None = None
    state_parameters: tuple[Any, ...] = ()
    reading: Reading | None = None
    snapshot: bool = False
    client_session: int | None = None


class Reading(NamedTuple):
    """A SELECT sent together with the binding, in one round trip, as the whole of its transaction.

    `query` has the columns `body`, a text, and `empty`; None reads the principal's state alone. With a user's state it
    is run if `condition` is true, an expression over the columns of that state, `caller`. Parameters are positional.
    """

    query: str | None = None
    parameters: tuple[Any, ...] = ()
    condition: str = "true"
    condition_parameters: tuple[Any, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)  # keys of a cache, by identity
class BindingOptions:
    """The options of every binding of this process.

    `serves`: the revisions of a school's schema that the running code can work with. `statement_timeout`,
    `lock_timeout`: seconds after which PostgreSQL ends a statement, or its waiting for a lock. `entry`: the demands of
    the transaction's server (`Placement.entry`); None: nothing.
    """

    serves: tuple[str, ...]
    statement_timeout: int = STATEMENT_TIMEOUT
    lock_timeout: int = LOCK_TIMEOUT
    entry: Entry | None = None


def binding_batch(begin: str, binding: SchoolBinding, options: BindingOptions) -> tuple[str, tuple[Any, ...]]:
    """Write the statement batch to begin, with the statement `begin`, a transaction in a school; and its parameters."""
    located = () if options.entry is None else (options.entry.location(binding.school_id),)
    school: tuple[Any, ...] = (str(binding.school_id), list(options.serves))
    if binding.client is not None and binding.state is None:
        # The grant is read as the login, the switch comes last: the school's role can't see the registry.
        batch = _client_batch(begin, binding.school_id, options)
        return batch, (*located, *school, binding.client, binding.granted, binding.client)
    checked: tuple[Any, ...] = () if binding.client is None else (binding.client,)
    if checked and binding.client_session is not None:
        checked = (*checked, binding.client_session)
    batch = _batch(begin, binding.school_id, options, len(checked))
    last, parameters = _last_statement(binding)
    return batch if last is None else f"{batch};\n{last}", (*located, *checked, *school, *parameters)


@lru_cache(SCHOOLS_REMEMBERED)
def _batch(begin: str, school_id: UUID, options: BindingOptions, checked: int) -> str:
    """Write the statements to begin in a school as its role; a client is checked by so many parameters."""
    statements = _settings(begin, options)
    if checked:
        statements.append(f"SELECT registry.refuse_revoked({', '.join(['%s'] * checked)})")
    statements += ["SELECT registry.enter(%s, %s::text[], NULL)", _search_path(school_id)]
    statements.append(f'SET LOCAL ROLE "{schema_name(school_id)}"')
    return ";\n".join(statements)


@lru_cache(SCHOOLS_REMEMBERED)
def _client_batch(begin: str, school_id: UUID, options: BindingOptions) -> str:
    """Write the statements to begin in a school as a client, and read its grant."""
    role = f"set_config('role', '{schema_name(school_id)}', true)"
    switch = f", CASE WHEN entered.refusal IS NULL THEN {role} END"
    grant = _GRANT if options.entry is None else options.entry.grant
    state = _CLIENT_STATE.format(switch=switch, grant=grant)
    statements = [*_settings(begin, options), _search_path(school_id), state]
    return ";\n".join(statements)


def _settings(begin: str, options: BindingOptions) -> list[str]:
    settings = [
        begin,
        f"SET LOCAL statement_timeout TO {options.statement_timeout * 1000}",
        f"SET LOCAL lock_timeout TO {options.lock_timeout * 1000}",
        # The registry is open to the login alone: a careless SET may have left a role behind on the connection.
        "SET LOCAL ROLE NONE",
        "SET LOCAL TIME ZONE 'UTC'",
    ]
    return settings if options.entry is None else [*settings, options.entry.statement]


def _search_path(school_id: UUID) -> str:
    return f'SET LOCAL search_path TO "{schema_name(school_id)}", pg_temp'


def _last_statement(binding: SchoolBinding) -> tuple[str | None, tuple[Any, ...]]:
    """Write the reading statement: the user's state, the query of `reading`, or both."""
    reading = binding.reading
    if reading is None or reading.query is None:
        return binding.state, binding.state_parameters
    if binding.state is None:
        return reading.query, reading.parameters
    statement = _state_and_query(binding.state, reading.query, reading.condition)
    return statement, (*binding.state_parameters, *reading.parameters, *reading.condition_parameters)


@lru_cache(STATEMENTS_REMEMBERED)
def _state_and_query(state: str, query: str, condition: str) -> str:
    """Write the statement for both: the state, and the query if the condition is true of the state."""
    # A query whose condition has nothing to do with its rows is not run at all where that is false.
    return _STATE_AND_QUERY.format(state=state, query=query, condition=condition)


def admitted(state: dict[str, Any] | None) -> dict[str, Any] | None:
    """Return the last row of a binding batch; raises the registry's refusal of a client."""
    refusal = None if state is None else state.pop("refusal", None)
    if refusal is not None:
        kind, words = _REFUSALS[refusal]
        raise kind(words)
    return state


def registry_refusal(error: DBAPIError) -> TenancyError | None:
    """Translate the registry's refusal of a binding; None for any other error."""
    state = sqlstate(error) or ""
    if state == "XX000" and _TABLES_ARE_GONE in str(error.orig):
        # The school is being deleted, or was restored since: it is looked for once more.
        state = "SC421"
    refusal = _REFUSALS.get(state)
    if refusal is not None:
        return refusal[0](refusal[1])
    if lacks_registry(error):
        return NotInstalled()
    if state == "42501":
        # registry.enter lets the token in, but the login is no member of the school's role, which was made for others.
        _log.warning("%s", _NO_MEMBERSHIP, extra={"reason": first_line(error.orig)})
        return SchoolUpgrading(_NOT_NOW)
    if state == "22023" and _SCHOOL_ROLE.search(str(error.orig)):
        _log.warning("%s", _NO_ROLE, extra={"reason": first_line(error.orig)})
        return SchoolRoleUnknown(_NOT_NOW)
    return None
