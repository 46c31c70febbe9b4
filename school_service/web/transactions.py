"""Transactions in a school: their context, their commit, and the state of a school after a failure."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any
from uuid import UUID

from sqlalchemy.exc import DBAPIError

from school_service.core.database import (
    RequestContext,
    RoutedSession,
    Text,
    context_globals,
    current_session,
    db,
    forget_engine,
    registry_connection,
    request_context,
)
from school_service.web.app_state import app_state, current_school_id
from school_service.web.client_address import service_address
from tenants.connections.binding import SchoolBinding, registry_refusal
from tenants.connections.sessions import transaction
from tenants.connections.statements import Texts, is_unreachable, write_all
from tenants.driver_errors import sqlstate
from tenants.exceptions import SchoolChosen
from tenants.registry.schools import School

# SQLSTATEs of a statement that fails because a migration has changed its tables.
_SCHEMA_CHANGED = re.compile(r"42...|23502|0A000")

Admit = Callable[[Mapping[str, Any] | None], object]
Read = Callable[[Text], Texts]


@contextmanager
def in_transaction(binding: SchoolBinding, admit: Admit | None = None) -> Iterator[dict[str, Any] | None]:
    """Work in a school in one transaction: commits at the end, rolls back on any error.

    Yields the row of the caller's state; `admit` judges them by it whenever a transaction begins. Refusals
    (`RequestContext.refusals`) are stored either way. For code outside a request, such as sample data and tests,
    `SchoolBinding(school_id)` is enough.
    """
    with in_context(binding, admit) as context:
        session = current_session()
        state = transaction(session, binding)
        try:
            yield state
            if binding.read_only:
                # A reading has nothing to commit: closing the session ends its transaction.
                require_no_entries(context)
            else:
                _commit(session, [*context.audit_entries, *context.refusals], context.with_commit)
        except BaseException:
            session.rollback()
            if context.refusals and not binding.read_only:
                # The transaction is rolled back: only the entries of the refusal are stored.
                context.admit, context.change_set, context.refused = None, None, True
                transaction(session, SchoolBinding(binding.school_id))
                _commit(session, context.refusals)
            raise


@contextmanager
def at_one_moment(request: RequestContext) -> Iterator[None]:
    """Work in the school of a request that has ended reading, in a transaction that sees one moment.

    Its caller was judged then; the entries of the audit log are in their name.
    """

    def take_over(_state: Mapping[str, Any] | None) -> None:
        context = request_context()
        context.principal, context.request_id = request.principal, request.request_id
        context.address = request.address

    with in_transaction(SchoolBinding(request.school_id, snapshot=True), take_over):
        yield


def _load_school() -> School:
    """The public details of the school of the transaction under way."""
    return app_state().school(current_school_id())


class in_context:  # noqa: N801 - reads as a function; a generator would cost each request several times as much
    """Sets the request context, and ends the transaction, if there is one, when the block is left."""

    __slots__ = ("_admit", "_binding", "_known", "_read")

    def __init__(self, binding: SchoolBinding, admit: Admit | None, read: Read | None = None) -> None:
        self._binding, self._admit, self._read = binding, admit, read

    def __enter__(self) -> RequestContext:
        known = context_globals().__dict__
        if known.get("request_context") is not None:
            raise SchoolChosen("A transaction is under way: its school can't be changed.")
        context = RequestContext(
            self._binding, _load_school, admit=self._admit, read=self._read, service_address=service_address
        )
        self._known, known["request_context"] = known, context
        return context

    def __exit__(self, *_error: object) -> None:
        self._known["request_context"] = None
        if db.session.registry.has():
            db.session.close()


def require_no_entries(context: RequestContext) -> None:
    if context.audit_entries or context.refusals:
        raise RuntimeError("A read-only transaction can't write to the audit log: the view is `audited`.")


def _commit(
    session: RoutedSession,
    entries: list[dict[str, Any]],
    others: Sequence[tuple[str, Any]] = (),
) -> None:
    """Commit a transaction; entries of the audit log, and other statements, go out in one round trip with COMMIT."""
    session.flush()
    last = [*app_state().audit_insertions(request_context(), entries), *others]
    if last:
        connection = session.bound_connection()
        dialect: Any = connection.dialect
        write_all(connection, [*last, (dialect.commit_statement(), None)])
    session.commit()


def find_reason(error: DBAPIError, school_id: UUID) -> None:
    """Find out whether a statement failed because of the state of its school; raises the registry's refusal."""
    if _SCHEMA_CHANGED.fullmatch(sqlstate(error) or ""):
        # A table may have been made anew: the next request asks for it.
        forget_engine(school_id)
        recheck_school(school_id)
    if is_unreachable(error):
        # The next request asks where the school is now; where nobody can say, it is where it was.
        forget_engine(school_id)


def recheck_school(school_id: UUID) -> None:
    """Check that a school is still open, at a served revision; raises the registry's refusal.

    Between the beginning of a transaction and its statements a migration may have been committed.
    """
    try:
        with registry_connection() as connection:
            connection.exec_driver_sql(
                "SELECT registry.enter(%s, %s::text[], NULL)",
                (str(school_id), list(app_state().binding_options.serves)),
            )
    except DBAPIError as error:
        refused = registry_refusal(error)
        if refused is not None:
            raise refused from None
        raise
