"""Engines whose transactions begin with the binding batch, and the statements sent on their connections."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any, NamedTuple, Protocol
from uuid import UUID

import orjson
import psycopg2
from psycopg2.extensions import BYTES, TRANSACTION_STATUS_IDLE, TRANSACTION_STATUS_INERROR, register_type
from sqlalchemy import URL, Connection, create_engine, make_url
from sqlalchemy.dialects import registry as dialects
from sqlalchemy.dialects.postgresql.psycopg2 import PGDialect_psycopg2
from sqlalchemy.engine import Engine
from sqlalchemy.pool import PoolProxiedConnection

from tenants.connections.binding import STATEMENT_TIMEOUT, BindingOptions, SchoolBinding, binding_batch
from tenants.connections.deadline import deadline_arguments
from tenants.connections.pool import SCHOOLS_PER_CONNECTION, BareConnection, SchoolPool, retire_after
from tenants.exceptions import NoSchool

CONNECT_TIMEOUT = 5  # seconds
TEXTS_AT_ONCE = 1000  # rows
SEPARATOR = b", "  # as json_agg writes it
POOL_TIMEOUT = 5  # seconds that a request waits for a connection, where all are taken
# Seconds that PostgreSQL may be silent beyond a statement's timeout: as long as it runs, its own end comes first.
SILENCE = 5
REGISTRY_DEADLINE = 5  # seconds for a statement of the registry's: all of them are short
# A peer that is gone, not only silent, is noticed by TCP itself (Unix sockets have none of it).
KEEPALIVE = {"keepalives": 1, "keepalives_idle": 30, "keepalives_interval": 5, "keepalives_count": 3}
# Creating a school takes PostgreSQL 10 ms longer for each 100 that the connection has created before.
SCHOOLS_PER_ADMIN_CONNECTION = 50

Pooled = PoolProxiedConnection | BareConnection

NO_SCHOOL = "No school is chosen: nothing can be read or written."


class SchoolDialect(PGDialect_psycopg2):
    """psycopg2 whose transactions are begun by the binding batch and ended by a single statement.

    The driver itself would send BEGIN by itself, before the first statement: one round trip more for each request.
    Connections are therefore in autocommit mode as far as the driver knows, and a statement that the binding batch
    did not precede would run in a transaction of its own: it is refused with NoSchool before it is sent.
    """

    supports_statement_cache = True
    _initialized = False

    def initialize(self, connection: Connection) -> None:
        """Read the server's version and settings, once for an engine and outside of any school."""
        super().initialize(connection)
        self._initialized = True

    def begin_statement(self, read_only: bool, *, snapshot: bool = False) -> str:
        """Write the statement that begins a transaction; with `snapshot` it sees one moment of the database."""
        isolation = "ISOLATION LEVEL REPEATABLE READ " if snapshot else ""
        return f"BEGIN {isolation}{'READ ONLY' if read_only else 'READ WRITE'}"

    def commit_statement(self) -> str:
        """Write the statement that commits a transaction, for the end of its last statement batch."""
        return "COMMIT"

    def read_statement(self) -> str:
        """Write the statement that comes first in a batch which is a transaction of its own, and reads.

        PostgreSQL runs the statements of a batch in one transaction, which ends with it: it needs no BEGIN and no
        ROLLBACK, so the batch is the one round trip of a request.
        """
        return "SET LOCAL transaction_read_only TO on"

    def binding_batch(self, binding: SchoolBinding, options: BindingOptions) -> tuple[str, tuple[Any, ...]]:
        """Write the statement batch that begins a transaction in a school, or is one, and its parameters."""
        alone = binding.reading is not None
        begin = (
            self.read_statement()
            if alone
            else self.begin_statement(binding.read_only, snapshot=binding.snapshot)
        )
        return binding_batch(begin, binding, options)

    def do_begin(self, dbapi_connection: Any) -> None:
        """Leave the beginning to the binding batch."""

    def do_commit(self, dbapi_connection: Any) -> None:
        """Commit what the binding batch began; nothing to do where no transaction is open.

        So it is where the last statement batch ended with `commit_statement`.
        """
        status = dbapi_connection.get_transaction_status()
        if status == TRANSACTION_STATUS_INERROR:
            # PostgreSQL would answer COMMIT with a silent rollback, and the program would believe it is
            # stored. It is ended here all the same: SQLAlchemy takes a commit that raised for the end of the
            # transaction.
            _execute(dbapi_connection, "ROLLBACK")
            raise self.loaded_dbapi.InternalError(
                "a statement of this transaction failed: it can't be committed"
            )
        if status != TRANSACTION_STATUS_IDLE:
            _execute(dbapi_connection, "COMMIT")

    def do_rollback(self, dbapi_connection: Any) -> None:
        """Roll back what the binding batch began; nothing to do where no transaction is open."""
        if (
            not dbapi_connection.closed
            and dbapi_connection.get_transaction_status() != TRANSACTION_STATUS_IDLE
        ):
            _execute(dbapi_connection, "ROLLBACK")

    def do_execute(self, cursor: Any, statement: Any, parameters: Any, context: Any = None) -> None:
        """Execute a statement of a transaction that is bound to a school."""
        self.require_binding(cursor)
        super().do_execute(cursor, statement, parameters, context)

    def do_execute_no_params(self, cursor: Any, statement: Any, context: Any = None) -> None:
        """Execute a statement without parameters, of a transaction that is bound to a school."""
        self.require_binding(cursor)
        super().do_execute_no_params(cursor, statement, context)

    def do_executemany(self, cursor: Any, statement: Any, parameters: Any, context: Any = None) -> None:
        """Execute a statement for each row, in a transaction that is bound to a school."""
        self.require_binding(cursor)
        super().do_executemany(cursor, statement, parameters, context)

    def require_binding(self, cursor: Any) -> None:
        """Refuse a statement of a transaction that is bound to no school; raises NoSchool."""
        idle = cursor.connection.get_transaction_status() == TRANSACTION_STATUS_IDLE
        if idle and self._initialized:
            raise NoSchool(NO_SCHOOL)


dialects.register("postgresql.school", __name__, "SchoolDialect")


def _execute(dbapi_connection: Any, statement: str) -> None:
    with dbapi_connection.cursor() as cursor:
        cursor.execute(statement)


def school_url(url: str | URL) -> URL:
    """Turn a PostgreSQL address into one whose engine binds transactions to schools."""
    return make_url(url).set(drivername="postgresql+school")


def registry_url(url: str | URL) -> URL:
    """Turn a PostgreSQL address into one whose engine binds nothing: for the registry and the operator."""
    return make_url(url).set(drivername="postgresql+psycopg2")


def serving_options(
    pool_size: int,
    *,
    max_overflow: int = 0,
    schools_per_connection: int = SCHOOLS_PER_CONNECTION,
    statement_timeout: int = STATEMENT_TIMEOUT,
) -> dict[str, Any]:
    """Give the engine options of a process that serves.

    The pool holds at most `pool_size` connections, and opens `max_overflow` more where those do not suffice. A
    connection is closed after it has been in `schools_per_connection` schools, or when PostgreSQL is silent for
    SILENCE seconds longer than the `statement_timeout` (seconds) that the binding sets.
    """
    return {
        **_options(pool_size, max_overflow, deadline=statement_timeout + SILENCE),
        "poolclass": SchoolPool,
        "schools_per_connection": schools_per_connection,
    }


def _options(
    pool_size: int, max_overflow: int, *, deadline: float, connect_timeout: int = CONNECT_TIMEOUT
) -> dict[str, Any]:
    return {
        "isolation_level": "AUTOCOMMIT",
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
    """Give the engine options for the registry's own statements, which stand outside of any school.

    They begin no transaction in which a dead connection would show, so each connection is tested first. PostgreSQL has
    `deadline` seconds for a statement, and `connect_timeout` for a connection.
    """
    options = _options(pool_size, max_overflow=0, deadline=deadline, connect_timeout=connect_timeout)
    return {**options, "pool_pre_ping": True}


def serving_engine(url: str | URL, pool_size: int = 5) -> Engine:
    """Make an engine for sessions that `bind_sessions` binds."""
    return create_engine(school_url(url), **serving_options(pool_size))


def admin_engine(url: str | URL) -> Engine:
    """Make an engine for the operator's work: ordinary transactions, bound to no school.

    Work that goes through many schools marks each (`mark_school`), so that its connections are replaced in time.
    """
    return create_engine(
        registry_url(url),
        # Made as they are needed: one for most work, one for each worker that migrates.
        pool_size=20,
        pool_events=[(retire_after(SCHOOLS_PER_ADMIN_CONNECTION), "checkin")],
        use_native_hstore=False,
        connect_args=admin_arguments(),
    )


def admin_arguments() -> dict[str, Any]:
    """Give the driver's arguments of a connection for the operator's work."""
    return {
        "connect_timeout": CONNECT_TIMEOUT,
        "application_name": "school-service admin",
        **KEEPALIVE,
    }


def execute_script(connection: Connection, sql: str) -> None:
    """Execute SQL text as one statement batch, as it stands: percent signs, colons, backslashes mean themselves."""
    connection.exec_driver_sql(sql, execution_options={"no_parameters": True})


def quote_identifier(name: str) -> str:
    """Quote the name of a role, schema, table or column for SQL text."""
    return '"' + name.replace('"', '""') + '"'


def quote_literal(value: str) -> str:
    """Quote a text for SQL text, as a server reads it whose `standard_conforming_strings` is on, the default."""
    return "'" + value.replace("'", "''") + "'"


def execute_batch(
    connection: Connection, batch: str, parameters: Any, *, binds: bool = False
) -> dict[str, Any] | None:
    """Execute a statement batch and return the first row of its last statement, by column; None without a row.

    Without SQLAlchemy's objects around a statement and its result, which cost more than most statements themselves.
    All else is as with them: a binding is required unless the batch `binds` the transaction to a school, errors are
    SQLAlchemy's, and a lost connection lets the pool replace all that are as old.
    """
    with _driver_of(connection).cursor() as cursor:
        if not binds:
            _require_binding(connection, cursor)
        _execute_on(cursor, batch, parameters, lambda: connection)
        return _first_row(cursor)


def fetch_row_apart(engine: Engine, connection: Pooled, batch: str, parameters: Any) -> dict[str, Any] | None:
    """Execute a statement batch that is a transaction of its own, as `execute_batch`, on a connection of the pool."""
    driver: Any = connection.dbapi_connection
    with driver.cursor() as cursor:
        _execute_on(cursor, batch, parameters, lambda: Connection(engine, _proxied(connection)))
        return _first_row(cursor)


class SupportsWrite(Protocol):
    """A file that bytes are written to."""

    def write(self, content: bytes, /) -> object:
        """Write some bytes."""


class Texts(NamedTuple):
    """What a statement found that reads texts, in UTF-8.

    `portions`: the texts, joined by SEPARATOR, TEXTS_AT_ONCE in each. `empty`: whether there are none, or the first is
    marked as saying so. `state`: the principal's state as a JSON object, where the statement reads that too; None where
    there is none.
    """

    portions: list[bytes]
    empty: bool
    state: bytes | None = None


def fetch_texts(connection: Connection, statement: str, parameters: Any) -> Texts:
    """Execute a statement whose rows are a text and a mark, as `execute_batch` would.

    The texts come joined: a row is one message of PostgreSQL's, which the driver holds as a whole and whose buffer it
    gives up with the connection alone, and 100,000 objects for as many rows would take more than what is in them.
    """
    with _driver_of(connection).cursor() as cursor:
        _require_binding(connection, cursor)
        register_type(BYTES, cursor)
        _execute_on(cursor, statement, parameters, lambda: connection)
        return _texts(cursor, with_state=False)


def fetch_texts_apart(
    engine: Engine, connection: Pooled, batch: str, parameters: Any, *, with_state: bool
) -> Texts:
    """Execute a statement batch that is a transaction of its own, as `fetch_texts`, on a connection of the pool.

    With `with_state` the first row is the principal's state.
    """
    driver: Any = connection.dbapi_connection
    with driver.cursor() as cursor:
        register_type(BYTES, cursor)
        _execute_on(cursor, batch, parameters, lambda: Connection(engine, _proxied(connection)))
        return _texts(cursor, with_state=with_state)


def copy_rows(
    connection: Connection, query: str, parameters: Any, file: SupportsWrite, *, layout: str = "csv"
) -> None:
    """Write the rows of a query to `file` as CSV: each in one call, with a line feed at its end.

    `layout` is another of COPY's formats, `text` or `binary`. Rows are sent as PostgreSQL finds them, so that they take
    no memory. All else is as with `execute_batch`.
    """
    with _driver_of(connection).cursor() as cursor:
        _require_binding(connection, cursor)
        try:
            copy = b"COPY (%b) TO STDOUT (FORMAT %b)" % (cursor.mogrify(query, parameters), layout.encode())
            cursor.copy_expert(copy, file)
        except psycopg2.Error as error:
            connection._handle_dbapi_exception(error, query, parameters, cursor, None)


def pooled_connection(engine: Engine, school_id: UUID) -> Pooled:
    """Take a connection for a school from the pool of an engine, with as little around it as may be.

    Its errors are raised as SQLAlchemy's.
    """
    pool = engine.pool
    try:
        return pool.take(school_id) if isinstance(pool, SchoolPool) else engine.raw_connection()
    except psycopg2.Error as error:
        Connection._handle_dbapi_exception_noconnection(error, engine.dialect, engine)
        raise


def _proxied(connection: Pooled) -> PoolProxiedConnection:
    return connection.proxied() if isinstance(connection, BareConnection) else connection


def _driver_of(connection: Connection) -> Any:
    return connection.connection.dbapi_connection


def _require_binding(connection: Connection, cursor: Any) -> None:
    dialect: Any = connection.dialect
    # The operator's connections are bound to no school.
    if isinstance(dialect, SchoolDialect):
        dialect.require_binding(cursor)


def _execute_on(cursor: Any, batch: str, parameters: Any, connection: Callable[[], Connection]) -> None:
    """Execute on the driver's cursor; `connection` is made to handle an error, which is raised as SQLAlchemy's."""
    try:
        cursor.execute(batch, parameters)
    except psycopg2.Error as error:
        connection()._handle_dbapi_exception(error, batch, parameters, cursor, None)


def _first_row(cursor: Any) -> dict[str, Any] | None:
    row = cursor.fetchone() if cursor.description else None
    return row and {column.name: value for column, value in zip(cursor.description, row, strict=True)}


def _texts(cursor: Any, *, with_state: bool) -> Texts:
    rows = cursor.fetchmany(TEXTS_AT_ONCE)
    state = rows.pop(0)[0] if with_state and rows else None
    empty = bool(rows[0][1]) if rows else True
    portions = []
    while rows:
        portions.append(SEPARATOR.join([text for text, _ in rows]))
        rows = cursor.fetchmany(TEXTS_AT_ONCE)
    return Texts(portions, empty, state)
