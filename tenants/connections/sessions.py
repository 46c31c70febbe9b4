"""Sessions that are bound to a school in each transaction, and refuse to work without one."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar
from uuid import UUID

from sqlalchemy import Connection, event
from sqlalchemy.engine import Engine
from sqlalchemy.exc import DBAPIError
from sqlalchemy.orm import Session, SessionTransaction

from tenants.connections.binding import BindingOptions, Reading, SchoolBinding, admitted, registry_refusal
from tenants.connections.deadline import NoAnswer
from tenants.connections.engines import (
    NO_SCHOOL,
    Pooled,
    Texts,
    execute_batch,
    fetch_row_apart,
    fetch_texts_apart,
    pooled_connection,
)
from tenants.connections.pool import connecting_to, mark_school
from tenants.driver_errors import sqlstate
from tenants.exceptions import NoSchool, SchoolChosen, SchoolElsewhere

Found = TypeVar("Found")


class SchoolSession(Session):
    """A session that works on the engine of its school's login; without a school it has none.

    `binding` holds from the beginning of a transaction to its end, `caller_state` is the row that the binding batch
    returned, or None.
    """

    binding: SchoolBinding | None = None
    caller_state: dict[str, Any] | None = None
    _bound: Connection | None = None

    def bound_connection(self) -> Connection:
        """Give the connection of the transaction, which begins where none is under way.

        As `connection`, which asks every time how far the transaction is; that costs as much as a short statement.
        """
        return self.connection() if self._bound is None or not self.is_active else self._bound

    def after_binding(self, state: dict[str, Any] | None) -> None:
        """Do what follows when a transaction has been bound; what it raises ends the transaction."""

    def engine_of(self, school_id: UUID) -> Engine:
        """Find the engine of the login that serves a school (`tenants.placement`)."""
        raise NotImplementedError

    def forget_engine(self, school_id: UUID) -> None:
        """Forget where a school is, where that is remembered: it has been moved."""

    def get_bind(self, *_arguments: Any, **_options: Any) -> Engine:
        """Choose the engine by the school alone; raises NoSchool."""
        if self.binding is None:
            raise NoSchool(NO_SCHOOL)
        return self.engine_of(self.binding.school_id)


def bind_sessions(sessions: Any, options: Callable[[], BindingOptions]) -> None:
    """Make sessions fail closed: each transaction is bound to the school it was begun in, or does not begin.

    `sessions` is a class of SchoolSession, or a sessionmaker or scoped_session of one, to be bound once. The session's
    `binding`, set by `begin_in_school`, holds for one transaction; without it NoSchool is raised before any statement
    reaches the database. `options` are read at the beginning of each transaction: the applications of a
    process use the same sessions, each with options of its own.
    """

    @event.listens_for(sessions, "after_begin")
    def bind(session: SchoolSession, _transaction: SessionTransaction, connection: Connection) -> None:
        binding = session.binding
        if binding is None:
            raise NoSchool(NO_SCHOOL)
        if connection.in_nested_transaction():
            return
        dialect: Any = connection.dialect
        batch, parameters = dialect.binding_batch(binding, options())
        with _refusals:
            session.caller_state = admitted(execute_batch(connection, batch, parameters, binds=True))
        mark_school(connection, binding.school_id)
        session._bound = connection
        session.after_binding(session.caller_state)

    @event.listens_for(sessions, "after_transaction_end")
    def unbind(session: SchoolSession, transaction: SessionTransaction) -> None:
        if transaction.parent is None:
            session.binding = session._bound = None


def is_dead(error: DBAPIError) -> bool:
    """Tell whether a statement failed since its connection had died in the pool: another one may do.

    A server that did not answer in time is not asked once more: the request has waited long enough.
    """
    return error.connection_invalidated and not isinstance(error.orig, NoAnswer)


def is_unreachable(error: DBAPIError) -> bool:
    """Tell whether a statement failed since its server could not be reached, or ended the connection."""
    state = sqlstate(error)
    return error.connection_invalidated or state is None or state.startswith("08")


def begin_in_school(session: SchoolSession, binding: SchoolBinding) -> dict[str, Any] | None:
    """Begin the session's transaction in a school and return the row of the principal's state, or None.

    The school stays until the transaction ends; the next one needs a binding of its own. A connection that died while
    it lay in the pool is replaced once, and a school that has been moved is looked for once: nothing has been done yet.
    Where it raises, no transaction is left open: UnknownSchool, SchoolForbidden, ClientUnknown, SchoolSuspended,
    SchoolUpgrading, SchoolElsewhere, NotInstalled; SchoolChosen where one was under way already, which goes on.
    """
    if session.in_transaction():
        raise SchoolChosen("A transaction is under way: its school can't be changed.")
    try:
        return _begin(session, binding)
    except SchoolElsewhere:
        session.forget_engine(binding.school_id)
    except DBAPIError as error:
        if not is_dead(error):
            raise
    return _begin(session, binding)


def state_in_school(engine: Engine, binding: SchoolBinding, options: BindingOptions) -> dict[str, Any] | None:
    """Read the principal's state in a school, in one round trip: the row, or None.

    It is a transaction of its own on a connection from the pool, without a session. A connection that died while it lay
    there is replaced once. Raises what `begin_in_school` raises but SchoolChosen.
    """
    return admitted(_apart(engine, binding.to_read(Reading()), options, fetch_row_apart))


def read_in_school(
    engine: Engine, binding: SchoolBinding, reading: Reading, options: BindingOptions
) -> Texts:
    """Read texts in a school, and the user's state where the binding has one, as `state_in_school` does."""
    fetch = _fetch_texts if binding.state is None else _fetch_texts_with_state
    return _apart(engine, binding.to_read(reading), options, fetch)


_fetch_texts = partial(fetch_texts_apart, with_state=False)
_fetch_texts_with_state = partial(fetch_texts_apart, with_state=True)


def _apart(
    engine: Engine,
    binding: SchoolBinding,
    options: BindingOptions,
    fetch: Callable[[Engine, Pooled, str, Any], Found],
) -> Found:
    """Send a binding with its `reading`, as a transaction of its own."""
    try:
        return _once(engine, binding, options, fetch)
    except DBAPIError as error:
        if is_dead(error):
            return _once(engine, binding, options, fetch)
        raise


def _once(
    engine: Engine,
    binding: SchoolBinding,
    options: BindingOptions,
    fetch: Callable[[Engine, Pooled, str, Any], Found],
) -> Found:
    dialect: Any = engine.dialect
    connection = pooled_connection(engine, binding.school_id)
    try:
        batch, parameters = dialect.binding_batch(binding, options)
        try:
            found = fetch(engine, connection, batch, parameters)
        except DBAPIError as error:
            _raise_refusal(error)
            raise
        mark_school(connection, binding.school_id)
        return found
    finally:
        connection.close()


def _raise_refusal(error: DBAPIError) -> None:
    """Raise what the registry refuses a binding with as the error that it is; nothing where it is another error."""
    refused = registry_refusal(error)
    if refused is not None:
        raise refused from None


class _Refusals:
    """Raises what the registry refuses a binding with, within a block, as the error that it is."""

    def __enter__(self) -> None:
        pass

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        if isinstance(error, DBAPIError):
            _raise_refusal(error)


_refusals = _Refusals()


def _begin(session: SchoolSession, binding: SchoolBinding) -> dict[str, Any] | None:
    session.binding, session.caller_state = binding, None
    try:
        with connecting_to(binding.school_id):
            session.connection()
    except BaseException:
        session.rollback()
        raise
    return session.caller_state
