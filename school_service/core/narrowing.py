"""The reads of a statement for a caller with the permission OWN: each declares them, else it is not sent.

A read model has the parameter `reach`. A statement of the session is narrowed by `within`. A statement without need of
either says why: `everybodys`, or `judged_before`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar, cast, overload

from sqlalchemy import ColumnElement
from sqlalchemy.sql import Executable

from school_service.core.database import current_reach, request_context
from school_service.core.reach import Reach
from school_service.core.read_models import Query, ReadModel

Filters = ParamSpec("Filters")
Statement = TypeVar("Statement", bound=Executable)


def caller_has_own() -> bool:
    """Tell whether the request's caller reaches their own records alone."""
    return current_reach() is not None


def within(statement: Statement, scope: Callable[..., ColumnElement[bool]], *columns: Any) -> Statement:
    """Narrow a SELECT or DELETE of the session to the rows in the caller's reach.

    `scope` makes the condition from a reach and the `columns`. For a caller with the whole school in reach the
    statement stays as it is.
    """
    reach, narrowed = _session_reach(), cast(Any, statement)
    return _judged(statement if reach is None else narrowed.where(scope(reach, *columns)))


@overload
def everybodys(read: Statement, /) -> Statement: ...
@overload
def everybodys(read: Callable[Filters, Query], /) -> ReadModel[Filters]: ...
def everybodys(read: Any, /) -> Any:
    """Say of a statement of the session, or of a read model, that its rows are the school's and of no person."""
    return _judged(read) if isinstance(read, Executable) else ReadModel(read, judged=True)


@overload
def judged_before(read: Statement, /) -> Statement: ...
@overload
def judged_before(read: Callable[Filters, Query], /) -> ReadModel[Filters]: ...
def judged_before(read: Any, /) -> Any:
    """Say of a statement of the session, or of a read model, that its rows belong to a record in reach.

    A statement before it has found this record, or locked it.
    """
    return _judged(read) if isinstance(read, Executable) else ReadModel(read, judged=True)


def _judged(statement: Statement) -> Statement:
    return cast(Statement, cast(Any, statement).execution_options(judged=True))


def _session_reach() -> Reach | None:
    """The reach of the request's caller for a statement of the session: the relations are values in it."""
    reach = current_reach()
    return None if reach is None else request_context().relations.reach(reach)
