"""Sessions bound to a school in each transaction, refusing to work without one.

A transaction begins, and ends, on a connection of its own way: SQLAlchemy's objects around it cost more than a short
statement. If something asks the session, for a record or a statement, SQLAlchemy takes the connection over.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import UUID

from sqlalchemy import event
from sqlalchemy.engine import Engine
from sqlalchemy.exc import DBAPIError
from sqlalchemy.orm import Session, SessionTransaction

from tenants.connections.binding import BindingOptions, SchoolBinding, admitted, registry_refusal
from tenants.connections.dialect import NO_SCHOOL, connecting_to, handing_over
from tenants.connections.statements import AnyConnection, SchoolConnection, is_dead, write
from tenants.exceptions import NoSchool, SchoolChosen, SchoolElsewhere


class SchoolSession(Session):
    """A session on the engine of its school's login; without a school it has none.

    `binding` holds from the beginning of a transaction to its end, `caller_state` is the row returned by the binding
    batch, or None.
    """

    binding: SchoolBinding | None = None
    caller_state: dict[str, Any] | None = None
    _options: Callable[[], BindingOptions]
    # Of the transaction under way, the one or the other: as long as SQLAlchemy knows nothing of it, and from then on.
    _own: SchoolConnection | None = None
    _bound: AnyConnection | None = None

    def bound_connection(self) -> AnyConnection:
        """Give the connection of the transaction; begins one if none is under way.

        As `connection`, but without its question, every time, how far the transaction is: this costs as much as a short
        statement.
        """
        if self._own is not None:
            return self._own
        return self.connection() if self._bound is None or not self.is_active else self._bound

    def after_binding(self, state: dict[str, Any] | None) -> None:
        """Do the work due after the binding of a transaction; an exception here ends the transaction."""

    def engine_of(self, school_id: UUID) -> Engine:
        """Find the engine of the login that serves a school (`tenants.placement`)."""
        raise NotImplementedError

    def forget_engine(self, school_id: UUID) -> None:
        """Forget the server of a school, if it is remembered: it has been moved."""

    def get_bind(self, *_arguments: Any, **_options: Any) -> Engine:
        """Choose the engine by the school alone; raises NoSchool.

        SQLAlchemy asks before it works on the session's transaction: so here it takes over a transaction begun without
        it.
        """
        if self.binding is None:
            raise NoSchool(NO_SCHOOL)
        engine = self.engine_of(self.binding.school_id)
        own, self._own = self._own, None
        if own is not None:
            self._bound = own
            try:
                with handing_over(own.driver):
                    self.connection()
            except BaseException as error:
                own.invalidate(error)
                raise
        return engine

    def begin_in_school(self, binding: SchoolBinding) -> None:
        """Begin a transaction in a school; if it raises, `rollback` is to be called."""
        self.binding, self.caller_state = binding, None
        engine = self.engine_of(binding.school_id)
        dialect: Any = engine.dialect
        if not dialect.is_initialized:
            # SQLAlchemy reads the server's settings on the first connection that it is given.
            with connecting_to(binding.school_id):
                self.connection()
            return
        self._own = SchoolConnection(engine, binding.school_id)
        self.caller_state = self._bind(binding, self._own)
        self._own.driver.schools.add(binding.school_id)
        self.after_binding(self.caller_state)

    def _bind(self, binding: SchoolBinding, connection: AnyConnection) -> dict[str, Any] | None:
        dialect: Any = connection.dialect
        batch, parameters = dialect.binding_batch(binding, self._options())
        try:
            return admitted(write(connection, batch, parameters, begins=True))
        except DBAPIError as error:
            refused = registry_refusal(error)
            if refused is not None:
                raise refused from None
            raise

    def in_transaction(self) -> bool:
        """Tell whether a transaction is under way."""
        return self._own is not None or super().in_transaction()

    def commit(self) -> None:
        """Store the pending changes, and commit the transaction."""
        if self._own is not None:
            self.flush()
        own = self._take_own()
        if own is not None:
            own.commit()
        if own is None or super().in_transaction():
            super().commit()

    def rollback(self) -> None:
        """Roll the transaction back."""
        own = self._take_own()
        if own is not None:
            own.roll_back()
        super().rollback()

    def close(self) -> None:
        """Roll back the transaction under way, and forget all records."""
        own = self._take_own()
        if own is not None:
            own.roll_back()
        super().close()

    def begin_nested(self) -> SessionTransaction:
        """Set a savepoint in the transaction."""
        if self._own is not None:
            self.connection()
        return super().begin_nested()

    def _take_own(self) -> SchoolConnection | None:
        """Give the connection unknown to SQLAlchemy, once: its transaction ends."""
        own, self._own = self._own, None
        if own is not None:
            self.binding = None
        return own


def bind_sessions(sessions: type[SchoolSession], options: Callable[[], BindingOptions]) -> None:
    """Make sessions fail closed: each transaction is bound to the school it was begun in, or does not begin.

    `sessions` is the class of theirs, to be bound once. The session's `binding`, set by `transaction`, holds for one
    transaction; without it NoSchool is raised before any statement reaches the database. `options` are read at the
    beginning of each transaction: the applications of a process use the same sessions, each with options of its own.
    """
    sessions._options = staticmethod(options)

    @event.listens_for(sessions, "after_begin")
    def bind(session: SchoolSession, _transaction: SessionTransaction, connection: Any) -> None:
        binding = session.binding
        if binding is None:
            raise NoSchool(NO_SCHOOL)
        if connection.in_nested_transaction():
            return
        taken_over, session._bound = session._bound, connection
        if taken_over is not None:
            return
        session.caller_state = session._bind(binding, connection)
        pooled: Any = connection.connection.dbapi_connection
        pooled.schools.add(binding.school_id)
        session.after_binding(session.caller_state)

    @event.listens_for(sessions, "after_transaction_end")
    def unbind(session: SchoolSession, ended: SessionTransaction) -> None:
        if ended.parent is None:
            session.binding = session._bound = None


def transaction(session: SchoolSession, binding: SchoolBinding) -> dict[str, Any] | None:
    """Begin the session's transaction in a school and return the row of the principal's state, or None.

    The school stays until the transaction ends; the next one needs a binding of its own. A connection dead since its
    return to the pool is replaced once, and a school moved meanwhile is looked for once: nothing has been done yet. If
    it raises, no transaction is left open: UnknownSchool, SchoolForbidden, ClientUnknown, SchoolSuspended,
    SchoolUpgrading, SchoolElsewhere, NotInstalled; SchoolChosen if a transaction was under way already, and this one
    goes on.
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
    try:
        session.begin_in_school(binding)
    except BaseException:
        session.rollback()
        raise
    return session.caller_state
