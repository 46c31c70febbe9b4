"""Deadlines of statements on our side of the connection: a server falling silent holds no thread for ever.

PostgreSQL's own `statement_timeout` ends long statements as long as PostgreSQL runs; a server that is stopped, or
behind a network that drops every packet, ends nothing. So each statement has a deadline here too. One thread looks at
the statements under way, and shuts the socket of a connection if its server has not answered in time: the statement
then fails as on a lost connection. psycopg2's wait callback would do the same, but for all connections of the process,
it costs each statement more, and COPY does not work with it.
"""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import psycopg2
import psycopg2.extensions

SILENT_AFTER = 1.0  # seconds: a server that refuses a connection says so sooner
TRY_TIMEOUT = 0.2  # seconds to wait for another thread that tries to connect
POLL_INTERVAL = 0.5  # seconds: so much later than its deadline a statement may end


class NoAnswer(psycopg2.OperationalError):
    """The server did not answer in time; the connection has been closed."""


_NO_ANSWER = "the database server has not answered in time"


class _Watch:
    """The statements under way, and the thread to end each after its deadline.

    A statement is taken out of the dictionary by its end or by the watch, in the order of their coming: `dict.pop` is
    atomic.
    """

    def __init__(self) -> None:
        self._begin()
        # A child of fork() has none of its parent's threads.
        os.register_at_fork(after_in_child=self._begin)

    def _begin(self) -> None:
        self._under_way: dict[int, tuple[float, DeadlineConnection]] = {}
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    def begin(self, statement: int, connection: DeadlineConnection) -> None:
        """Watch a statement, named by a number of its own."""
        self._under_way[statement] = (time.monotonic() + connection.deadline, connection)
        if self._thread is None:
            self._start()

    def end(self, statement: int) -> bool:
        """Stop watching a statement; False if it has been ended for its deadline."""
        return self._under_way.pop(statement, None) is not None

    def _start(self) -> None:
        with self._lock:
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="statement deadlines", daemon=True)
                self._thread.start()

    def _run(self) -> None:
        while True:
            time.sleep(POLL_INTERVAL)
            now = time.monotonic()
            for statement, (deadline, connection) in list(self._under_way.items()):
                if now >= deadline and self.end(statement):
                    connection.shut()


_watch = _Watch()


class DeadlineConnection(psycopg2.extensions.connection):
    """A connection with a socket that another thread can shut.

    `deadline` is the server's number of seconds for a statement of a DeadlineCursor.
    """

    def __init__(self, connector: Connector, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.connector = connector
        self.deadline = connector.deadline
        # A descriptor of our own: libpq may close its own at any moment, and the number then is another file's.
        self._socket = socket.socket(fileno=os.dup(self.fileno()))

    def shut(self) -> None:
        """End the conversation with the server; a thread waiting for it gets an error at once. From any thread."""
        with suppress(OSError):  # it is shut already
            self._socket.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Close the connection."""
        super().close()
        self._socket.close()

    def __del__(self) -> None:
        opened: socket.socket | None = getattr(self, "_socket", None)
        if opened is not None:
            opened.close()


class DeadlineCursor(psycopg2.extensions.cursor):
    """A cursor with statements ending in NoAnswer unless the server answers within the connection's deadline.

    The connection is closed then, so no pool gives it to anybody else.
    """

    connection: DeadlineConnection

    def execute(self, query: Any, vars: Any = None) -> None:
        """Execute a statement, or a batch of them; raises NoAnswer."""
        self._within_deadline(super().execute, query, vars)

    def executemany(self, query: Any, vars_list: Any) -> None:
        """Execute a statement for each row; one deadline holds for all of them together. Raises NoAnswer."""
        self._within_deadline(super().executemany, query, vars_list)

    def copy_expert(self, sql: Any, file: Any, size: int = 8192) -> None:
        """Copy rows to or from a file; one deadline holds for all of them together. Raises NoAnswer."""
        self._within_deadline(super().copy_expert, sql, file, size)

    def _within_deadline(self, execute: Callable[..., None], *arguments: Any) -> None:
        statement = id(self)
        _watch.begin(statement, self.connection)
        try:
            execute(*arguments)
        finally:
            if not _watch.end(statement):
                # The statement may have ended at that very moment; the connection is lost either way.
                self.connection.connector.silent = True
                self.connection.close()
                raise NoAnswer(_NO_ANSWER)


class Connector:
    """Makes connections to one server, with `deadline` seconds for each of their statements.

    While the server is silent, one thread at a time tries to connect, for as long as libpq's connect_timeout says; for
    all others NoAnswer is raised after TRY_TIMEOUT. So a hanging server holds one thread, and its return is noticed.
    """

    def __init__(self, deadline: float) -> None:
        self.deadline = deadline
        self.silent = False
        self._trying = threading.Lock()

    def __call__(self, *arguments: Any, **options: Any) -> DeadlineConnection:
        """Connect, as psycopg2's connection_factory."""
        if not self.silent:
            return self._connect(*arguments, **options)
        # A server that is back is found to be so in this time, and all go on.
        if not self._trying.acquire(timeout=TRY_TIMEOUT):
            raise NoAnswer(_NO_ANSWER)
        try:
            return self._connect(*arguments, **options)
        finally:
            self._trying.release()

    def _connect(self, *arguments: Any, **options: Any) -> DeadlineConnection:
        begun = time.monotonic()
        try:
            connection = DeadlineConnection(self, *arguments, **options)
        except psycopg2.OperationalError as error:
            self.silent = time.monotonic() - begun > SILENT_AFTER
            if self.silent:
                raise NoAnswer(_NO_ANSWER) from error
            raise
        self.silent = False
        return connection


def deadline_arguments(seconds: float) -> dict[str, Any]:
    """Give the arguments of psycopg2.connect for a server with so many seconds for each statement."""
    return {"connection_factory": Connector(seconds), "cursor_factory": DeadlineCursor}
