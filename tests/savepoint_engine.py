"""A savepoint for each request, all in one transaction that is never committed: a test leaves nothing behind."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg2.extensions
from sqlalchemy import URL, create_engine
from sqlalchemy.dialects import registry as dialects
from sqlalchemy.engine import Engine
from sqlalchemy.pool import StaticPool

from tenants.connections.engines import SchoolDialect, serving_options


class CountingCursor(psycopg2.extensions.cursor):
    """Counts messages to the server: each is a round trip."""

    messages: list[str] = []

    def execute(self, query: Any, vars: Any = None) -> None:
        """Count, then execute."""
        self.messages.append(query if isinstance(query, str) else str(query))
        super().execute(query, vars)


class SavepointDialect(SchoolDialect):
    """Begins with a savepoint and ends with its release, on one connection whose transaction is never committed."""

    supports_statement_cache = True
    _open = False
    _read_only = False

    def begin_statement(self, read_only: bool) -> str:
        self._open, self._read_only = True, read_only
        words = "SAVEPOINT request"
        return f"{words}; SET LOCAL transaction_read_only TO on" if read_only else words

    def do_commit(self, dbapi_connection: Any) -> None:
        if self._open and not self._read_only:
            self._open = False
            # The released savepoint hands its settings on: the role has to go.
            self._say(dbapi_connection, "RELEASE SAVEPOINT request; SET LOCAL ROLE NONE")
        else:
            self.do_rollback(dbapi_connection)

    def do_rollback(self, dbapi_connection: Any) -> None:
        if self._open:
            self._open = False
            self._say(dbapi_connection, "ROLLBACK TO SAVEPOINT request; RELEASE SAVEPOINT request")

    @staticmethod
    def _say(dbapi_connection: Any, words: str) -> None:
        with dbapi_connection.cursor() as cursor:
            cursor.execute(words)


dialects.register("postgresql.savepoint", __name__, "SavepointDialect")


@contextmanager
def savepoint_engine(url: URL) -> Iterator[Engine]:
    """Yield an engine whose every transaction is undone in the end."""
    options = serving_options(1)
    for name in ("poolclass", "pool_size", "max_overflow", "pool_timeout"):
        del options[name]
    options["connect_args"]["cursor_factory"] = CountingCursor
    engine = create_engine(url.set(drivername="postgresql+savepoint"), poolclass=StaticPool, **options)
    connection = engine.raw_connection()
    with connection.cursor() as cursor:
        cursor.execute("BEGIN")
    try:
        yield engine
    finally:
        with connection.cursor() as cursor:
            cursor.execute("ROLLBACK")
        connection.close()
        engine.dispose()
