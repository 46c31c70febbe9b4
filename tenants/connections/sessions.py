"""Sessions that are bound to a school in each transaction, and refuse to work without one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import UUID

from sqlalchemy import Connection, event
from sqlalchemy.engine import Engine
from sqlalchemy.exc import DBAPIError
from sqlalchemy.orm import Session, SessionTransaction

from tenants.connections.binding import BindingOptions, SchoolBinding, registry_refusal
from tenants.connections.deadline import NoAnswer
from tenants.connections.engines import NO_SCHOOL, execute_batch
from tenants.connections.pool import connecting_to, mark_school
from tenants.exceptions import NoSchool, SchoolChosen


class SchoolSession(Session):
    """A session that works on the engine of its school's login; without a school it has none.

    `binding` holds from the beginning of a transaction to its end, `caller_state` is the row that the binding batch
    returned, or None.
    """

    binding: SchoolBinding | None = None
    caller_state: dict[str, Any] | None = None

    def engine_of(self, school_id: UUID) -> Engine:
        """Find the engine of the login that serves a school (`tenants.placement`)."""
        raise NotImplementedError

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
        try:
            session.caller_state = execute_batch(connection, batch, parameters, binds=True)
        except DBAPIError as error:
            refused = registry_refusal(error)
            if refused is None:
                raise
            raise refused from None
        mark_school(connection, binding.school_id)

    @event.listens_for(sessions, "after_transaction_end")
    def unbind(session: SchoolSession, transaction: SessionTransaction) -> None:
        if transaction.parent is None:
            session.binding = None


def begin_in_school(session: SchoolSession, binding: SchoolBinding) -> dict[str, Any] | None:
    """Begin the session's transaction in a school and return the row of the principal's state, or None.

    The school stays until the transaction ends; the next one needs a binding of its own. A connection that died while
    it lay in the pool is replaced once: nothing has been done on it yet. Where it raises, no transaction is left open:
    UnknownSchool, SchoolForbidden, ClientUnknown, SchoolSuspended, SchoolUpgrading, NotInstalled; SchoolChosen where
    one was under way already, which goes on.
    """
    if session.in_transaction():
        raise SchoolChosen("A transaction is under way: its school can't be changed.")
    try:
        return _begin(session, binding)
    except DBAPIError as error:
        # A server that did not answer in time is not asked once more: the request has waited long enough.
        if not error.connection_invalidated or isinstance(error.orig, NoAnswer):
            raise
    return _begin(session, binding)


def _begin(session: SchoolSession, binding: SchoolBinding) -> dict[str, Any] | None:
    session.binding, session.caller_state = binding, None
    try:
        with connecting_to(binding.school_id):
            session.connection()
    except BaseException:
        session.rollback()
        raise
    return session.caller_state
