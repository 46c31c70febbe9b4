"""Engines whose transactions begin with the binding message, and sessions that refuse to work without a school."""

from __future__ import annotations

from typing import Any

from psycopg2.extensions import TRANSACTION_STATUS_IDLE
from sqlalchemy import URL, Connection, create_engine, event, make_url
from sqlalchemy.dialects import registry as dialects
from sqlalchemy.dialects.postgresql.psycopg2 import PGDialect_psycopg2
from sqlalchemy.engine import Engine
from sqlalchemy.exc import DBAPIError
from sqlalchemy.orm import Session, SessionTransaction

from tenants.binding import Entry, Rules, binding_message, refusal
from tenants.errors import NoSchool

CONNECT_TIMEOUT = 5  # seconds


class SchoolDialect(PGDialect_psycopg2):
    """psycopg2 whose transactions are begun by the binding message and ended by one word.

    The driver itself would send BEGIN as a message of its own, before the first statement: one round trip more for
    each request. Connections are therefore in autocommit mode as far as the driver knows.
    """

    supports_statement_cache = True

    def begin_words(self, read_only: bool) -> str:
        """Say how a transaction begins."""
        return "BEGIN READ ONLY" if read_only else "BEGIN READ WRITE"

    def do_begin(self, dbapi_connection: Any) -> None:
        """Leave the beginning to the binding message."""

    def do_commit(self, dbapi_connection: Any) -> None:
        """Commit what the binding message began; nothing to do where no transaction is open."""
        if dbapi_connection.get_transaction_status() != TRANSACTION_STATUS_IDLE:
            _say(dbapi_connection, "COMMIT")

    def do_rollback(self, dbapi_connection: Any) -> None:
        """Roll back what the binding message began; nothing to do where no transaction is open."""
        if not dbapi_connection.closed and dbapi_connection.get_transaction_status() != TRANSACTION_STATUS_IDLE:
            _say(dbapi_connection, "ROLLBACK")


dialects.register("postgresql.school", __name__, "SchoolDialect")


def _say(dbapi_connection: Any, words: str) -> None:
    with dbapi_connection.cursor() as cursor:
        cursor.execute(words)


def school_url(url: str | URL) -> URL:
    """Turn a PostgreSQL address into one whose engine binds transactions to schools."""
    return make_url(url).set(drivername="postgresql+school")


def serving_options(pool_size: int) -> dict[str, Any]:
    """Give the engine options of a process that serves requests: at most `pool_size` connections, all kept."""
    return {
        "isolation_level": "AUTOCOMMIT",
        "pool_size": pool_size,
        "max_overflow": 0,
        "pool_timeout": 10,
        "use_native_hstore": False,
        "connect_args": {"connect_timeout": CONNECT_TIMEOUT, "application_name": "school-service"},
    }


def serving_engine(url: str | URL, pool_size: int = 5) -> Engine:
    """Make an engine for sessions guarded by `guard`."""
    return create_engine(school_url(url), **serving_options(pool_size))


def admin_engine(url: str | URL) -> Engine:
    """Make an engine for the operator's work: ordinary transactions, no school."""
    return create_engine(
        make_url(url).set(drivername="postgresql+psycopg2"),
        pool_size=2,
        connect_args={"connect_timeout": CONNECT_TIMEOUT, "application_name": "school-service admin"},
    )


def guard(sessions: Any, rules: Rules) -> None:
    """Make sessions fail closed: each transaction is bound to the session's school, or does not begin.

    `sessions` is a Session class, sessionmaker or scoped_session. What `choose` put into a session decides; with
    nothing chosen NoSchool is raised, before any statement reaches the database.
    """

    @event.listens_for(sessions, "after_begin")
    def bind(session: Session, _transaction: SessionTransaction, connection: Connection) -> None:
        entry: Entry | None = session.info.get("entry")
        if entry is None:
            raise NoSchool("No school is chosen: nothing can be read or written.")
        if connection.in_nested_transaction():
            return
        dialect: Any = connection.dialect
        message, parameters = binding_message(dialect.begin_words(entry.read_only), entry, rules)
        try:
            answer = connection.exec_driver_sql(message, parameters)
        except DBAPIError as error:
            refused = refusal(error)
            if refused is None:
                raise
            raise refused from None
        session.info["state"] = answer.one_or_none() if answer.returns_rows else None


def choose(session: Session, entry: Entry | None) -> None:
    """Choose the school of the session's next transaction; None chooses none."""
    session.info["entry"] = entry
    session.info.pop("state", None)


def enter(session: Session) -> Any:
    """Begin the session's transaction in its school and return the row of the caller's state, or None.

    A connection that died while it lay in the pool is replaced once: nothing has been done on it yet.
    Raises NoSchool, UnknownSchool, SchoolForbidden, SchoolSuspended, SchoolUpgrading.
    """
    try:
        session.connection()
    except DBAPIError as error:
        if not error.connection_invalidated:
            raise
        session.rollback()
        session.connection()
    return session.info["state"]
