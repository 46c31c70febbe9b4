"""A savepoint for each request, all in one transaction that is never committed: a test leaves nothing behind."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from uuid import UUID

import psycopg2
import psycopg2.extensions
from sqlalchemy import URL, create_engine
from sqlalchemy.dialects import registry as dialects
from sqlalchemy.engine import Engine

from tenants.connections.dialect import SchoolDialect, SessionPool
from tenants.connections.engines import serving_options
from tenants.connections.pool import PooledConnection, SchoolPool
from tests.lock_order import LockOrder


class CountingCursor(psycopg2.extensions.cursor):
    """Counts the statement batches sent to the server, each a round trip, and the errors it answers.

    It holds the locks of each transaction against their one order.
    """

    messages: list[str] = []
    errors: list[psycopg2.Error] = []
    locks = LockOrder()

    def execute(self, query: Any, vars: Any = None) -> None:
        """Count, then execute."""
        self.messages.append(query if isinstance(query, str) else str(query))
        self.locks.take(self.messages[-1])
        try:
            super().execute(query, vars)
        except psycopg2.Error as error:
            self.errors.append(error)
            raise

    def copy_expert(self, sql: Any, file: Any, size: int = 8192) -> None:
        """Count, then copy."""
        self.messages.append(sql.decode())
        super().copy_expert(sql, file, size)


class SavepointDialect(SchoolDialect):
    """Begins with a savepoint and ends with its release, on one connection whose transaction is never committed."""

    supports_statement_cache = True
    _open = False
    _read_only = False
    _alone = False
    _kept = False
    _committed = False

    def read_statement(self) -> str:
        self._open = self._read_only = self._alone = True
        return f"SAVEPOINT request; {super().read_statement()}"

    def write_statement(self) -> str:
        self._open = self._alone = self._kept = True
        self._read_only = False
        return f"SAVEPOINT request; {super().write_statement()}"

    def begin_statement(self, read_only: bool, *, snapshot: bool = False) -> str:
        self._open, self._read_only, self._alone = True, read_only, False
        begin = "SAVEPOINT request"  # in a transaction that is under way: its isolation level is fixed
        return f"{begin}; SET LOCAL transaction_read_only TO on" if read_only else begin

    def commit_statement(self) -> str:
        self._committed = True
        # The released savepoint hands its settings on: the role has to go.
        return "RELEASE SAVEPOINT request; SET LOCAL ROLE NONE"

    def do_commit(self, dbapi_connection: Any) -> None:
        if self._committed:
            # The last statement batch has done it.
            self._open = self._committed = False
        elif self._open and not self._read_only:
            self._open = False
            _execute(dbapi_connection, "RELEASE SAVEPOINT request; SET LOCAL ROLE NONE")
        else:
            self.do_rollback(dbapi_connection)

    def do_rollback(self, dbapi_connection: Any) -> None:
        if self._open:
            self._open = self._committed = False
            # A transaction of its own ends by itself elsewhere, without a round trip to be counted.
            factory = psycopg2.extensions.cursor if self._alone else None
            kept, self._kept = self._kept, False
            failed = (
                dbapi_connection.get_transaction_status() == psycopg2.extensions.TRANSACTION_STATUS_INERROR
            )
            undo = "SET LOCAL ROLE NONE" if kept and not failed else "ROLLBACK TO SAVEPOINT request"
            with dbapi_connection.cursor(cursor_factory=factory) as cursor:
                cursor.execute(f"{undo}; RELEASE SAVEPOINT request")


dialects.register("postgresql.savepoint", __name__, "SavepointDialect")


class OneConnection(SchoolPool):
    """A pool that hands out the same connection to all, inside of transactions too."""

    def take(self, school_id: UUID | None = None) -> PooledConnection:
        """Take the connection; it is made anew where it was closed."""
        for connection in list(self._taken):
            if not connection.closed:
                return connection
            self.discard(connection)
        return super().take()

    def give_back(self, connection: PooledConnection) -> None:
        """Keep the connection as it is."""

    def dispose(self) -> None:
        """Close the connection."""
        for connection in list(self._taken):
            connection.driver.close()


class SharedConnections(SessionPool):
    """Hands out one connection."""

    def __init__(self, creator: Any, **options: Any) -> None:
        super().__init__(creator, **options)
        self.connections = OneConnection(creator, 1)


@contextmanager
def savepoint_engine(url: URL) -> Iterator[Engine]:
    """Yield an engine of one connection, to be used within `uncommitted`.

    One engine serves many tests: it compiles each statement once, and its backend knows the tables.
    """
    options = {**serving_options(1), "poolclass": SharedConnections}
    options["connect_args"]["cursor_factory"] = CountingCursor
    engine = create_engine(url.set(drivername="postgresql+savepoint"), **options)
    try:
        yield engine
    finally:
        engine.dispose()


@contextmanager
def uncommitted(engine: Engine) -> Iterator[None]:
    """Undo all that the engine does in the block; a block within another undoes its own changes alone."""
    connection = engine.raw_connection()
    begin, undo = "BEGIN", "ROLLBACK"
    if connection.get_transaction_status() != psycopg2.extensions.TRANSACTION_STATUS_IDLE:
        begin, undo = "SAVEPOINT test", "ROLLBACK TO SAVEPOINT test; RELEASE SAVEPOINT test"
    try:
        _execute(connection, begin)
    except psycopg2.Error:
        if begin != "BEGIN":
            raise
        # An earlier test ended the connection, or its backend.
        connection.invalidate()
        engine.dispose()
        connection = engine.raw_connection()
        _execute(connection, begin)
    try:
        yield
    finally:
        if not connection.closed:
            _execute(connection, undo)
        connection.close()


def _execute(connection: Any, statement: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(statement)
