"""Sessions that are bound to a school in each transaction, and refuse to work without one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import UUID

from sqlalchemy import Connection, event
from sqlalchemy.engine import Engine
from sqlalchemy.exc import DBAPIError
from sqlalchemy.orm import Session, SessionTransaction

from tenants.connections.binding import BindingOptions, SchoolBinding, admitted, registry_refusal
from tenants.connections.dialect import NO_SCHOOL, connecting_to
from tenants.connections.statements import is_dead, write
from tenants.exceptions import NoSchool, SchoolChosen, SchoolElsewhere


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
    `binding`, set by `transaction`, holds for one transaction; without it NoSchool is raised before any statement
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
            session.caller_state = admitted(write(connection, batch, parameters, begins=True))
        except DBAPIError as error:
            refused = registry_refusal(error)
            if refused is not None:
                raise refused from None
            raise
        pooled: Any = connection.connection.dbapi_connection
        pooled.schools.add(binding.school_id)
        session._bound = connection
        session.after_binding(session.caller_state)

    @event.listens_for(sessions, "after_transaction_end")
    def unbind(session: SchoolSession, ended: SessionTransaction) -> None:
        if ended.parent is None:
            session.binding = session._bound = None


def transaction(session: SchoolSession, binding: SchoolBinding) -> dict[str, Any] | None:
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


def _begin(session: SchoolSession, binding: SchoolBinding) -> dict[str, Any] | None:
    session.binding, session.caller_state = binding, None
    try:
        with connecting_to(binding.school_id):
            session.connection()
    except BaseException:
        session.rollback()
        raise
    return session.caller_state
