"""Engines whose transactions begin with the binding message; sessions that refuse to work without school."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any
from uuid import UUID

import orjson
import psycopg2
from psycopg2.extensions import TRANSACTION_STATUS_IDLE, TRANSACTION_STATUS_INERROR
from sqlalchemy import URL, Connection, create_engine, event, make_url
from sqlalchemy.dialects import registry as dialects
from sqlalchemy.dialects.postgresql.psycopg2 import PGDialect_psycopg2
from sqlalchemy.engine import Engine
from sqlalchemy.exc import DBAPIError
from sqlalchemy.orm import Session, SessionTransaction

from tenants.connections.binding import Entry, Rules, binding_message, refusal
from tenants.connections.pool import SCHOOLS_PER_CONNECTION, SchoolPool, bound_for, note_school, retiring
from tenants.exceptions import NoSchool, SchoolChosen

CONNECT_TIMEOUT = 5  # seconds
# Creating a school takes PostgreSQL 10 ms longer for each 100 that the connection has created before.
SCHOOLS_OF_AN_OPERATOR = 50

_NO_SCHOOL = "No school is chosen: nothing can be read or written."


class SchoolDialect(PGDialect_psycopg2):
    """psycopg2 whose transactions are begun by the binding message and ended by one word.

    The driver itself would send BEGIN as a message of its own, before the first statement: one round trip
    more for each request. Connections are therefore in autocommit mode as far as the driver knows, and a
    statement that the binding message did not precede would run by itself: it is refused with NoSchool before
    it is sent.
    """

    supports_statement_cache = True
    _initialized = False

    def initialize(self, connection: Connection) -> None:
        """Ask the server for its version and settings, once for an engine and outside of any school."""
        super().initialize(connection)
        self._initialized = True

    def begin_words(self, read_only: bool) -> str:
        """Say how a transaction begins."""
        return "BEGIN READ ONLY" if read_only else "BEGIN READ WRITE"

    def binding(self, entry: Entry, rules: Rules) -> tuple[str, tuple[Any, ...]]:
        """Write the message that begins a transaction, and its parameters."""
        return binding_message(self.begin_words(entry.read_only), entry, rules)

    def do_begin(self, dbapi_connection: Any) -> None:
        """Leave the beginning to the binding message."""

    def do_commit(self, dbapi_connection: Any) -> None:
        """Commit what the binding message began; nothing to do where no transaction is open."""
        status = dbapi_connection.get_transaction_status()
        if status == TRANSACTION_STATUS_INERROR:
            # PostgreSQL would answer COMMIT with a silent rollback, and the caller would believe it is
            # stored. It is ended here all the same: SQLAlchemy takes a commit that raised for the end of the
            # transaction.
            _say(dbapi_connection, "ROLLBACK")
            raise self.loaded_dbapi.InternalError(
                "a statement of this transaction failed: it can't be committed"
            )
        if status != TRANSACTION_STATUS_IDLE:
            _say(dbapi_connection, "COMMIT")

    def do_rollback(self, dbapi_connection: Any) -> None:
        """Roll back what the binding message began; nothing to do where no transaction is open."""
        if (
            not dbapi_connection.closed
            and dbapi_connection.get_transaction_status() != TRANSACTION_STATUS_IDLE
        ):
            _say(dbapi_connection, "ROLLBACK")

    def do_execute(self, cursor: Any, statement: Any, parameters: Any, context: Any = None) -> None:
        """Execute a statement of a transaction that is bound to a school."""
        self.demand_school(cursor)
        super().do_execute(cursor, statement, parameters, context)

    def do_execute_no_params(self, cursor: Any, statement: Any, context: Any = None) -> None:
        """Execute a statement without parameters, of a transaction that is bound to a school."""
        self.demand_school(cursor)
        super().do_execute_no_params(cursor, statement, context)

    def do_executemany(self, cursor: Any, statement: Any, parameters: Any, context: Any = None) -> None:
        """Execute a statement for each row, in a transaction that is bound to a school."""
        self.demand_school(cursor)
        super().do_executemany(cursor, statement, parameters, context)

    def demand_school(self, cursor: Any) -> None:
        """Refuse a statement that no binding message came before; raises NoSchool."""
        idle = cursor.connection.get_transaction_status() == TRANSACTION_STATUS_IDLE
        if idle and self._initialized:
            raise NoSchool(_NO_SCHOOL)


dialects.register("postgresql.school", __name__, "SchoolDialect")


def _say(dbapi_connection: Any, words: str) -> None:
    with dbapi_connection.cursor() as cursor:
        cursor.execute(words)


def school_url(url: str | URL) -> URL:
    """Turn a PostgreSQL address into one whose engine binds transactions to schools."""
    return make_url(url).set(drivername="postgresql+school")


def registry_url(url: str | URL) -> URL:
    """Turn a PostgreSQL address into one whose engine knows no school: for registry and operator."""
    return make_url(url).set(drivername="postgresql+psycopg2")


def serving_options(
    pool_size: int, *, in_passing: int = 0, schools_per_connection: int = SCHOOLS_PER_CONNECTION
) -> dict[str, Any]:
    """Give the engine options of a process that serves.

    At most `pool_size` connections are kept, and `in_passing` more opened where those do not suffice. A connection
    is closed after it has been in `schools_per_connection` schools.
    """
    return {
        **_options(pool_size, in_passing),
        "poolclass": SchoolPool,
        "pool_events": [(retiring(schools_per_connection), "checkin")],
    }


def _options(pool_size: int, in_passing: int) -> dict[str, Any]:
    return {
        "isolation_level": "AUTOCOMMIT",
        "pool_size": pool_size,
        "max_overflow": in_passing,
        "pool_timeout": 10,
        # A failed statement is logged; its values may be a person's, or a password's hash.
        "hide_parameters": True,
        "use_native_hstore": False,
        "json_serializer": _json_text,
        "connect_args": {"connect_timeout": CONNECT_TIMEOUT, "application_name": "school-service"},
    }


def _json_text(value: Any) -> str:
    """Write a value for a JSON column: uuids, dates, times as text, decimals (up to 15 digits) as numbers."""
    return orjson.dumps(value, default=_number).decode()


def _number(value: Any) -> float:
    if isinstance(value, Decimal):
        return float(value)
    raise TypeError(f"JSON holds no {type(value).__name__}.")


def registry_options(pool_size: int) -> dict[str, Any]:
    """Give the engine options for the registry's own statements, which stand outside of any school.

    They have no beginning at which a connection that died would show, so it is asked for first.
    """
    return {**_options(pool_size, in_passing=0), "pool_pre_ping": True}


def serving_engine(url: str | URL, pool_size: int = 5) -> Engine:
    """Make an engine for sessions guarded by `guard`."""
    return create_engine(school_url(url), **serving_options(pool_size))


def admin_engine(url: str | URL) -> Engine:
    """Make an engine for the operator's work: ordinary transactions, bound to no school.

    Work that goes through many schools notes each (`note_school`), so that its connections are replaced in time.
    """
    return create_engine(
        registry_url(url),
        # Made as they are needed: one for most work, one for each worker that migrates.
        pool_size=20,
        pool_events=[(retiring(SCHOOLS_OF_AN_OPERATOR), "checkin")],
        use_native_hstore=False,
        connect_args={"connect_timeout": CONNECT_TIMEOUT, "application_name": "school-service admin"},
    )


def send(connection: Connection, sql: str) -> None:
    """Send SQL text as one message, just as it stands: percent signs, colons, backslashes mean themselves."""
    connection.exec_driver_sql(sql, execution_options={"no_parameters": True})


def quoted(name: str) -> str:
    """Quote the name of a role, schema, table or column for SQL text."""
    return '"' + name.replace('"', '""') + '"'


def ask(
    connection: Connection, message: str, parameters: Any, *, binds: bool = False
) -> dict[str, Any] | None:
    """Send one message and return the first row of its last statement, by column; None where there is no row.

    Without SQLAlchemy's objects around a statement and its result, which cost more than most messages
    themselves. All else is as with them: a school is demanded unless the message `binds` the connection to
    one, errors are SQLAlchemy's, and a lost connection lets the pool replace all that are as old.
    """
    dialect: Any = connection.dialect
    driver: Any = connection.connection.dbapi_connection
    with driver.cursor() as cursor:
        if not binds:
            dialect.demand_school(cursor)
        try:
            cursor.execute(message, parameters)
        except psycopg2.Error as error:
            connection._handle_dbapi_exception(error, message, parameters, cursor, None)
        row = cursor.fetchone() if cursor.description else None
        return row and {column.name: value for column, value in zip(cursor.description, row, strict=True)}


class SchoolSession(Session):
    """A session that works on the engine of its school's login; without a school there is none."""

    def engine_of(self, school_id: UUID) -> Engine:
        """Find the engine of the login that serves a school (`tenants.placement`)."""
        raise NotImplementedError

    def get_bind(self, *_arguments: Any, **_options: Any) -> Engine:
        """Choose by the school alone, whatever is asked for; raises NoSchool."""
        entry: Entry | None = self.info.get("entry")
        if entry is None:
            raise NoSchool(_NO_SCHOOL)
        return self.engine_of(entry.school_id)


def guard(sessions: Any, rules: Callable[[], Rules]) -> None:
    """Make sessions fail closed: each transaction is bound to the school it was begun in, or does not begin.

    `sessions` is a Session class, sessionmaker or scoped_session, to be guarded once. What `enter` put into a
    session decides, and holds for one transaction; without it NoSchool is raised, before any statement
    reaches the database. `rules` is asked at the beginning of each transaction: applications of one process
    share their sessions, each with rules of its own.
    """

    @event.listens_for(sessions, "after_begin")
    def bind(session: Session, _transaction: SessionTransaction, connection: Connection) -> None:
        entry: Entry | None = session.info.get("entry")
        if entry is None:
            raise NoSchool(_NO_SCHOOL)
        if connection.in_nested_transaction():
            return
        dialect: Any = connection.dialect
        message, parameters = dialect.binding(entry, rules())
        try:
            state = ask(connection, message, parameters, binds=True)
        except DBAPIError as error:
            refused = refusal(error)
            if refused is None:
                raise
            raise refused from None
        session.info["state"] = state
        note_school(connection, entry.school_id)

    @event.listens_for(sessions, "after_transaction_end")
    def leave(session: Session, transaction: SessionTransaction) -> None:
        if transaction.parent is None:
            session.info["entry"] = None


def enter(session: Session, entry: Entry) -> Any:
    """Begin the session's transaction in a school and return the row of the caller's state, or None.

    The school holds until the transaction ends; the next one needs an entry of its own. A connection that
    died while it lay in the pool is replaced once: nothing has been done on it yet. Where it raises, no
    transaction is left open: UnknownSchool, SchoolForbidden, ClientUnknown, SchoolSuspended, SchoolUpgrading,
    NotInstalled; SchoolChosen where one was under way already, which goes on.
    """
    if session.in_transaction():
        raise SchoolChosen("A transaction is under way: its school can't be changed.")
    try:
        return _begin(session, entry)
    except DBAPIError as error:
        if not error.connection_invalidated:
            raise
    return _begin(session, entry)


def _begin(session: Session, entry: Entry) -> Any:
    session.info["entry"] = entry
    try:
        with bound_for(entry.school_id):
            session.connection()
    except BaseException:
        session.rollback()
        raise
    return session.info.pop("state")
