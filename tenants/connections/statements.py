"""Statements in a school: `read` in a round trip of its own, `write` in the transaction under way.

Both use the driver's own cursor: SQLAlchemy's objects around a statement and its result cost more than most statements
themselves. All else is as with them: a statement needs a transaction bound to a school, and its errors are
SQLAlchemy's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from types import MappingProxyType
from typing import Any, Literal, NamedTuple, Protocol, TypeAlias, overload
from uuid import UUID

import orjson
import psycopg2
from psycopg2.extensions import BYTES, register_type
from sqlalchemy import Connection, exc
from sqlalchemy.engine import Engine
from sqlalchemy.exc import DBAPIError

from tenants.connections.binding import BindingOptions, Reading, SchoolBinding, admitted, registry_refusal
from tenants.connections.deadline import NoAnswer
from tenants.connections.dialect import SchoolDialect
from tenants.connections.pool import PooledConnection
from tenants.driver_errors import sqlstate

TEXTS_AT_ONCE = 1000  # rows
SEPARATOR = b", "  # as json_agg writes it
STATES_REMEMBERED = 500  # of users, some 10 kB each

_KINDS: dict[type, type[DBAPIError]] = {
    psycopg2.Error: exc.DBAPIError,
    psycopg2.InterfaceError: exc.InterfaceError,
    psycopg2.DatabaseError: exc.DatabaseError,
    psycopg2.DataError: exc.DataError,
    psycopg2.OperationalError: exc.OperationalError,
    psycopg2.IntegrityError: exc.IntegrityError,
    psycopg2.InternalError: exc.InternalError,
    psycopg2.ProgrammingError: exc.ProgrammingError,
    psycopg2.NotSupportedError: exc.NotSupportedError,
}


class Texts(NamedTuple):
    """The texts found by a statement, in UTF-8.

    `portions`: the texts, joined by SEPARATOR, TEXTS_AT_ONCE in each. `empty`: whether there are none, or the mark of
    the first says so. `state`: the row of the caller's state, if it was read too; None without such a row.
    """

    portions: list[bytes]
    empty: bool
    state: Mapping[str, Any] | None = None


class SchoolConnection:
    """A connection with its transaction bound to a school, or about to be, without SQLAlchemy's objects around it.

    `driver` is a connection from the pool; it goes back with the end of the transaction.
    """

    __slots__ = ("dialect", "driver")

    def __init__(self, engine: Engine, school_id: UUID) -> None:
        """Take a connection of an engine for a school; raises DBAPIError, and TimeoutError if all are taken."""
        self.dialect: Any = engine.dialect
        self.driver = _take(engine, school_id)

    def commit(self) -> None:
        """Commit, unless the last statement batch did; raises DBAPIError."""
        try:
            self.dialect.do_commit(self.driver)
        except psycopg2.Error as error:
            raise _failure(self, error, "COMMIT", None, None) from error
        finally:
            self.roll_back()

    def roll_back(self) -> None:
        """Give the connection back; a transaction under way on it is rolled back."""
        _give_back(self.dialect, self.driver)

    def invalidate(self, _error: BaseException) -> None:
        """Close the lost connection."""
        self.driver.discard()


class SupportsWrite(Protocol):
    """A file open for writing bytes."""

    def write(self, content: bytes, /) -> object:
        """Write some bytes."""


def read(
    engine: Engine, binding: SchoolBinding, options: BindingOptions, reading: Reading | None = None
) -> Texts:
    """Read in a school, in one round trip: the texts of a query, and the caller's state if the binding has one.

    Without `reading` it is the state alone, a user's or a client's. The batch is a transaction of its own, on a
    connection from the pool of the engine; a connection that died while it lay there is replaced once. Raises
    DBAPIError, UnknownSchool, SchoolForbidden, ClientUnknown, SchoolSuspended, SchoolUpgrading, SchoolElsewhere,
    NotInstalled.
    """
    to_send = binding._replace(reading=reading or Reading())
    try:
        return _read(engine, to_send, options)
    except DBAPIError as error:
        if is_dead(error):
            return _read(engine, to_send, options)
        raise


AnyConnection: TypeAlias = Connection | SchoolConnection


@overload
def write(
    connection: AnyConnection, batch: str, parameters: Any, *, begins: bool = False
) -> dict[str, Any] | None: ...
@overload
def write(connection: AnyConnection, batch: str, parameters: Any, *, texts: Literal[True]) -> Texts: ...
def write(
    connection: AnyConnection, batch: str, parameters: Any, *, texts: bool = False, begins: bool = False
) -> dict[str, Any] | Texts | None:
    """Send a statement batch in the transaction under way; returns the first row of its last statement, by column.

    Without a row it returns None. With `texts` the rows are a text and a mark, and all of them are returned. A batch
    that `begins` the transaction binds it to a school; before all others it must be bound. Raises NoSchool, DBAPIError.
    """
    with _driver_of(connection).cursor() as cursor:
        if not begins:
            _require_binding(connection, cursor)
        if texts:
            register_type(BYTES, cursor)
        try:
            cursor.execute(batch, parameters)
        except psycopg2.Error as error:
            raise _failure(connection, error, batch, parameters, cursor) from error
        return _texts(cursor) if texts else _first_row(cursor)


def write_all(connection: AnyConnection, statements: Sequence[tuple[str, Any]]) -> None:
    """Send statements in one round trip of the transaction under way, each with parameters of its own, or None.

    Raises NoSchool, DBAPIError.
    """
    with _driver_of(connection).cursor() as cursor:
        parts = [cursor.mogrify(text, parameters).decode() for text, parameters in statements]
    try:
        write(connection, ";\n".join(parts), None)
    except DBAPIError as error:
        # A failed statement is logged: without its values.
        error.statement = ";\n".join(text for text, _ in statements)
        raise


def copy_rows(
    connection: Connection, query: str, parameters: Any, file: SupportsWrite, *, layout: str = "csv"
) -> int:
    """Write the rows of a query to `file` as CSV, each in one call, with a line feed at its end; returns their number.

    `layout` is another of COPY's formats, `text` or `binary`. Rows are sent as PostgreSQL finds them, so they take no
    memory. Raises NoSchool, DBAPIError.
    """
    with _driver_of(connection).cursor() as cursor:
        _require_binding(connection, cursor)
        try:
            copy = b"COPY (%b) TO STDOUT (FORMAT %b)" % (cursor.mogrify(query, parameters), layout.encode())
            cursor.copy_expert(copy, file)
        except psycopg2.Error as error:
            raise _failure(connection, error, query, parameters, cursor) from error
        return int(cursor.rowcount)


def is_dead(error: DBAPIError) -> bool:
    """Tell whether a statement failed since its connection had died in the pool: another one may do.

    A server is not asked once more after missing its deadline: the request has waited long enough.
    """
    return error.connection_invalidated and not isinstance(error.orig, NoAnswer)


def is_unreachable(error: DBAPIError) -> bool:
    """Tell whether a statement failed since its server could not be reached, or ended the connection."""
    state = sqlstate(error)
    return error.connection_invalidated or state is None or state.startswith("08")


def _read(engine: Engine, binding: SchoolBinding, options: BindingOptions) -> Texts:
    dialect: Any = engine.dialect
    batch, parameters = dialect.binding_batch(binding, options)
    connection = _take(engine, binding.school_id)
    try:
        with connection.cursor() as cursor:
            try:
                answer = _fetch(cursor, binding, batch, parameters)
            except psycopg2.Error as error:
                lost = dialect.is_disconnect(error, connection, cursor)
                if lost:
                    connection.discard()
                failed = _database_error(error, batch, parameters, lost=lost)
                refused = registry_refusal(failed)
                if refused is not None:
                    raise refused from None
                raise failed from error
        connection.schools.add(binding.school_id)
        return answer
    finally:
        _give_back(dialect, connection)


def _fetch(cursor: Any, binding: SchoolBinding, batch: str, parameters: Any) -> Texts:
    reading = binding.reading
    if reading is None or reading.query is None:
        cursor.execute(batch, parameters)
        return Texts([], empty=True, state=admitted(_first_row(cursor)))
    register_type(BYTES, cursor)
    cursor.execute(batch, parameters)
    return _texts(cursor, with_state=binding.state is not None)


def _take(engine: Engine, school_id: UUID) -> PooledConnection:
    pool: Any = engine.pool
    dialect: Any = engine.dialect
    try:
        taken: PooledConnection = pool.connections.take(school_id)
    except psycopg2.Error as error:
        lost = dialect.is_disconnect(error, None, None)
        raise _database_error(error, None, None, lost=lost) from error
    return taken


def _give_back(dialect: Any, connection: PooledConnection) -> None:
    """Give a connection back to its pool; a transaction under way on it is rolled back."""
    try:
        dialect.do_rollback(connection)
    except psycopg2.Error:
        connection.discard()
    else:
        connection.close()


def _failure(
    connection: AnyConnection, error: psycopg2.Error, statement: str, parameters: Any, cursor: Any
) -> DBAPIError:
    """Make SQLAlchemy's error of the driver's; a lost connection is not used again."""
    dialect: Any = connection.dialect
    lost = dialect.is_disconnect(error, _driver_of(connection), cursor)
    if lost:
        connection.invalidate(error)
    return _database_error(error, statement, parameters, lost=lost)


def _database_error(
    error: psycopg2.Error, statement: str | None, parameters: Any, *, lost: bool
) -> DBAPIError:
    kind = next(_KINDS[base] for base in type(error).__mro__ if base in _KINDS)
    return kind(statement, parameters, error, hide_parameters=True, connection_invalidated=lost)


def _driver_of(connection: AnyConnection) -> Any:
    if isinstance(connection, SchoolConnection):
        return connection.driver
    return connection.connection.dbapi_connection


def _require_binding(connection: AnyConnection, cursor: Any) -> None:
    dialect: Any = connection.dialect
    # The operator's connections are bound to no school.
    if isinstance(dialect, SchoolDialect):
        dialect.require_binding(cursor)


def _first_row(cursor: Any) -> dict[str, Any] | None:
    row = cursor.fetchone() if cursor.description else None
    return row and {column.name: value for column, value in zip(cursor.description, row, strict=True)}


def _texts(cursor: Any, *, with_state: bool = False) -> Texts:
    """Fetch the rows of a statement, each a text and a mark; `with_state` the first is the caller's state.

    The texts come joined. The driver holds each row, a message of PostgreSQL's, as a whole, and gives up its buffer
    with the connection alone; and 100,000 objects for as many rows would take more than their contents.
    """
    rows = cursor.fetchmany(TEXTS_AT_ONCE)
    state = _state(rows.pop(0)[0]) if with_state and rows else None
    empty = bool(rows[0][1]) if rows else True
    portions = []
    while rows:
        portions.append(SEPARATOR.join([text for text, _ in rows]))
        rows = cursor.fetchmany(TEXTS_AT_ONCE)
    return Texts(portions, empty, state)


@lru_cache(STATES_REMEMBERED)
def _state(text: bytes) -> Mapping[str, Any]:
    """Read the row of a user's state, most often the same as in their last request."""
    state: dict[str, Any] = orjson.loads(text)
    return MappingProxyType(state)
