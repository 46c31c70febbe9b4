"""Engines: of a process serving schools, of the registry's statements, and of the operator's work."""

from __future__ import annotations

from decimal import Decimal
from typing import Any
from uuid import UUID

import orjson
from sqlalchemy import URL, Connection, create_engine, make_url
from sqlalchemy.engine import Engine
from sqlalchemy.pool import ConnectionPoolEntry

from tenants.connections.binding import STATEMENT_TIMEOUT
from tenants.connections.deadline import deadline_arguments
from tenants.connections.dialect import SessionPool
from tenants.connections.pool import POOL_TIMEOUT, SCHOOLS_PER_CONNECTION

CONNECT_TIMEOUT = 5  # seconds
# Seconds that PostgreSQL may be silent beyond a statement's timeout: as long as it runs, its own end comes first.
SILENCE = 5
REGISTRY_DEADLINE = 5  # seconds for a statement of the registry's: all of them are short
# A peer that is gone, not only silent, is noticed by TCP itself (Unix sockets have none of it).
KEEPALIVE = {"keepalives": 1, "keepalives_idle": 30, "keepalives_interval": 5, "keepalives_count": 3}
# Creating a school takes PostgreSQL 10 ms longer for each 100 that the connection has created before.
SCHOOLS_PER_ADMIN_CONNECTION = 50
_SCHOOLS = "schools"


def school_url(url: str | URL) -> URL:
    """Turn a PostgreSQL address into the address of an engine that binds transactions to schools."""
    return make_url(url).set(drivername="postgresql+school")


def registry_url(url: str | URL) -> URL:
    """Turn a PostgreSQL address into one for an engine without binding: for the registry and the operator."""
    return make_url(url).set(drivername="postgresql+psycopg2")


def serving_options(
    pool_size: int,
    *,
    max_overflow: int = 0,
    schools_per_connection: int = SCHOOLS_PER_CONNECTION,
    statement_timeout: int = STATEMENT_TIMEOUT,
) -> dict[str, Any]:
    """Give the engine options of a process that serves.

    The pool holds at most `pool_size` connections, and opens `max_overflow` more if those do not suffice. A connection
    is closed after it has served `schools_per_connection` schools, or when PostgreSQL is silent for SILENCE seconds
    longer than the binding's `statement_timeout` (seconds).
    """
    return {
        **_options(pool_size, max_overflow, deadline=statement_timeout + SILENCE),
        "poolclass": SessionPool,
        "schools_per_connection": schools_per_connection,
    }


def _options(
    pool_size: int, max_overflow: int, *, deadline: float, connect_timeout: int = CONNECT_TIMEOUT
) -> dict[str, Any]:
    return {
        "pool_size": pool_size,
        "max_overflow": max_overflow,
        "pool_timeout": POOL_TIMEOUT,
        # A failed statement is logged; its values may be a person's, or a password's hash.
        "hide_parameters": True,
        "use_native_hstore": False,
        "json_serializer": json_text,
        "connect_args": {
            "connect_timeout": connect_timeout,
            "application_name": "school-service",
            # Bytes of JSON are sent on as they come.
            "client_encoding": "utf8",
            "tcp_user_timeout": int(deadline * 1000),
            **KEEPALIVE,
            **deadline_arguments(deadline),
        },
    }


def json_text(value: Any) -> str:
    """Write a value for a JSON column: uuids, dates, times as text, decimals (up to 15 digits) as numbers."""
    return orjson.dumps(value, default=_number).decode()


def _number(value: Any) -> float:
    if isinstance(value, Decimal):
        return float(value)
    raise TypeError(f"JSON holds no {type(value).__name__}.")


def registry_options(
    pool_size: int, *, deadline: float = REGISTRY_DEADLINE, connect_timeout: int = CONNECT_TIMEOUT
) -> dict[str, Any]:
    """Give the engine options for the registry's own statements, outside of any school.

    They begin no transaction, and no such beginning shows that a connection is dead: each connection is tested first.
    PostgreSQL has `deadline` seconds for a statement, and `connect_timeout` for a connection.
    """
    options = _options(pool_size, max_overflow=0, deadline=deadline, connect_timeout=connect_timeout)
    return {**options, "isolation_level": "AUTOCOMMIT", "pool_pre_ping": True}


def serving_engine(url: str | URL, pool_size: int = 5) -> Engine:
    """Make an engine for the sessions of `bind_sessions`."""
    return create_engine(school_url(url), **serving_options(pool_size))


def admin_engine(url: str | URL) -> Engine:
    """Make an engine for the operator's work: ordinary transactions, bound to no school.

    Work in many schools notes each (`mark_school`), so its connections are replaced in time.
    """
    return create_engine(
        registry_url(url),
        # Made as they are needed: one for most work, one for each worker that migrates.
        pool_size=20,
        pool_events=[(_retire, "checkin")],
        use_native_hstore=False,
        connect_args=admin_arguments(),
    )


def mark_school(connection: Connection, school_id: UUID) -> None:
    """Note that a connection of the operator has served a school."""
    connection.info.setdefault(_SCHOOLS, set()).add(school_id)


def _retire(_driver: Any, entry: ConnectionPoolEntry) -> None:
    """Close a connection of the operator, given back after serving enough schools."""
    if len(entry.info.get(_SCHOOLS, ())) >= SCHOOLS_PER_ADMIN_CONNECTION:
        entry.invalidate()
        entry.info.clear()


def admin_arguments() -> dict[str, Any]:
    """Give the driver's arguments of a connection for the operator's work."""
    return {
        "connect_timeout": CONNECT_TIMEOUT,
        "application_name": "school-service admin",
        # Names and definitions may have any letter; the login may have another encoding set.
        "client_encoding": "utf8",
        **KEEPALIVE,
    }


def execute_script(connection: Connection, sql: str) -> None:
    """Execute SQL text as one statement batch, as it stands: percent signs, colons, backslashes mean themselves."""
    connection.exec_driver_sql(sql, execution_options={"no_parameters": True})


def quote_identifier(name: str) -> str:
    """Quote the name of a role, schema, table or column for SQL text."""
    return '"' + name.replace('"', '""') + '"'


def quote_literal(value: str) -> str:
    """Quote a text for SQL text, for a server with `standard_conforming_strings` on, the default."""
    return "'" + value.replace("'", "''") + "'"
