"""SQLAlchemy's sessions in schools: the dialect guarding and ending transactions, and the way to the pool."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from typing import Any
from uuid import UUID

from psycopg2.extensions import TRANSACTION_STATUS_IDLE, TRANSACTION_STATUS_INERROR
from sqlalchemy import Connection, make_url
from sqlalchemy.dialects import registry as dialects
from sqlalchemy.pool import NullPool

from tenants.connections.binding import BindingOptions, SchoolBinding, binding_batch
from tenants.connections.pool import POOL_TIMEOUT, SCHOOLS_PER_CONNECTION, PooledConnection, SchoolPool
from tenants.exceptions import NoSchool

NO_SCHOOL = "No school is chosen: nothing can be read or written."

# A process of PostgreSQL that has freed 1 MiB at once keeps up to 2 MiB for later (mallopt(3), M_MMAP_THRESHOLD).
# Before, it gives the memory of each answer beyond 128 KiB back to the system, and takes it anew, page by page.
_KEEP_MEMORY = "SELECT length(repeat(' ', 1048576))"

psycopg2_dialect: Any = make_url("postgresql+psycopg2://").get_dialect()
"""SQLAlchemy's dialect for psycopg2."""


class SchoolDialect(psycopg2_dialect):
    """psycopg2 with transactions begun by the binding batch and ended by a single statement.

    The driver itself would send BEGIN by itself, before the first statement: one round trip more for each request.
    Connections are therefore in autocommit mode as far as the driver knows, and a statement without the binding batch
    before it would run in a transaction of its own: it is refused with NoSchool before it is sent.
    """

    supports_statement_cache = True
    _initialized = False

    def connect(self, *arguments: Any, **options: Any) -> Any:
        """Connect; SQLAlchemy's work on each connection handed to it is done here, once."""
        driver = super().connect(*arguments, **options)
        driver.autocommit = True
        super().on_connect()(driver)
        _execute(driver, _KEEP_MEMORY)
        return driver

    def on_connect(self) -> None:
        """Do nothing with a connection handed out by the pool: the work was done when it was made."""

    def initialize(self, connection: Connection) -> None:
        """Read the server's version and settings, once for an engine and outside of any school."""
        super().initialize(connection)
        self._initialized = True

    @property
    def is_initialized(self) -> bool:
        """Whether the server's version and settings have been read."""
        return self._initialized

    def begin_statement(self, read_only: bool, *, snapshot: bool = False) -> str:
        """Write the statement to begin a transaction; with `snapshot` it sees one moment of the database."""
        isolation = "ISOLATION LEVEL REPEATABLE READ " if snapshot else ""
        return f"BEGIN {isolation}{'READ ONLY' if read_only else 'READ WRITE'}"

    def commit_statement(self) -> str:
        """Write the statement to commit a transaction, for the end of its last statement batch."""
        return "COMMIT"

    def read_statement(self) -> str:
        """Write the first statement of a reading batch that is a transaction of its own.

        PostgreSQL runs the statements of a batch in one transaction, and ends it with the batch: it needs no BEGIN and
        no ROLLBACK, so the batch is the one round trip of a request.
        """
        return "SET LOCAL transaction_read_only TO on"

    def write_statement(self) -> str:
        """Write the first statement of a writing batch that is a transaction of its own."""
        return "SET LOCAL transaction_read_only TO off"

    def binding_batch(self, binding: SchoolBinding, options: BindingOptions) -> tuple[str, tuple[Any, ...]]:
        """Write the statement batch to begin a transaction in a school, or to be one, and its parameters."""
        alone = binding.reading is not None
        if not alone:
            begin = self.begin_statement(binding.read_only, snapshot=binding.snapshot)
        else:
            begin = self.read_statement() if binding.read_only else self.write_statement()
        return binding_batch(begin, binding, options)

    def do_begin(self, dbapi_connection: Any) -> None:
        """Leave the beginning to the binding batch."""

    def do_commit(self, dbapi_connection: Any) -> None:
        """Commit the transaction of the binding batch; nothing to do without an open transaction.

        None is open after a statement batch ending with `commit_statement`.
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
        """Roll back the transaction of the binding batch; nothing to do without an open transaction."""
        if (
            not dbapi_connection.closed
            and dbapi_connection.get_transaction_status() != TRANSACTION_STATUS_IDLE
        ):
            _execute(dbapi_connection, "ROLLBACK")

    def do_execute(self, cursor: Any, statement: Any, parameters: Any, context: Any = None) -> None:
        """Execute a statement of a transaction bound to a school."""
        self.require_binding(cursor)
        super().do_execute(cursor, statement, parameters, context)

    def do_execute_no_params(self, cursor: Any, statement: Any, context: Any = None) -> None:
        """Execute a statement without parameters, of a transaction bound to a school."""
        self.require_binding(cursor)
        super().do_execute_no_params(cursor, statement, context)

    def do_executemany(self, cursor: Any, statement: Any, parameters: Any, context: Any = None) -> None:
        """Execute a statement for each row, in a transaction bound to a school."""
        self.require_binding(cursor)
        super().do_executemany(cursor, statement, parameters, context)

    def require_binding(self, cursor: Any) -> None:
        """Refuse a statement of a transaction bound to no school; raises NoSchool."""
        idle = cursor.connection.get_transaction_status() == TRANSACTION_STATUS_IDLE
        if idle and self._initialized:
            raise NoSchool(NO_SCHOOL)

    def do_terminate(self, dbapi_connection: Any) -> None:
        """Close a connection lost by a session, or not to be used again."""
        dbapi_connection.discard()


dialects.register("postgresql.school", __name__, "SchoolDialect")


def _execute(dbapi_connection: Any, statement: str) -> None:
    with dbapi_connection.cursor() as cursor:
        cursor.execute(statement)


_connecting_to: ContextVar[UUID | None] = ContextVar("connecting_to", default=None)
_handed_over: ContextVar[PooledConnection | None] = ContextVar("handed_over", default=None)


def connecting_to(school_id: UUID) -> AbstractContextManager[None]:
    """Note the school for which a session connects within the block."""
    return _within(_connecting_to, school_id)


def handing_over(connection: PooledConnection) -> AbstractContextManager[None]:
    """Let a session connecting within the block take over a connection, in place of one from the pool."""
    return _within(_handed_over, connection)


@contextmanager
def _within(variable: ContextVar[Any], value: object) -> Iterator[None]:
    token = variable.set(value)
    try:
        yield
    finally:
        variable.reset(token)


class SessionPool(NullPool):
    """The pool of an engine for sessions: it keeps no connections, but takes them from a SchoolPool.

    `connections` is the SchoolPool. SQLAlchemy's `close` of a connection no longer needed gives it back.
    """

    def __init__(
        # create_engine looks for positional arguments by name.
        self,
        creator: Any,
        pool_size: int = 5,
        max_overflow: int = 0,
        timeout: float = POOL_TIMEOUT,
        schools_per_connection: int = SCHOOLS_PER_CONNECTION,
        **options: Any,
    ) -> None:
        self.connections = SchoolPool(
            creator,
            pool_size,
            max_overflow=max_overflow,
            timeout=timeout,
            schools_per_connection=schools_per_connection,
        )
        super().__init__(self._take, **options)

    def checkedout(self) -> int:
        """Count the connections taken, by sessions or without one."""
        return self.connections.checkedout()

    def checkedin(self) -> int:
        """Count the idle connections."""
        return self.connections.checkedin()

    def dispose(self) -> None:
        """Close the idle connections; taken ones are closed when they are given back."""
        self.connections.dispose()

    def recreate(self) -> SessionPool:
        """Give this pool, as good as new once it has been disposed of."""
        return self

    def _take(self) -> PooledConnection:
        return _handed_over.get() or self.connections.take(_connecting_to.get())
