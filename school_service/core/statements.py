"""Writing a school's records in few round trips, without the session's unit of work.

A writing service sends one SELECT to lock and check (a read model with FOR SHARE or FOR NO KEY UPDATE, fetched by
`fetch_row`), then all its writes in one round trip. Statements are compiled once: the INSERT of each table, and each
`statement`, as read models are. Several go out in one round trip (`execute`), in the given order, each seeing the
effects of the statements before it: so the violation of a constraint is the first one.

Objects loaded by the session do not change with it: load the needed ones afterwards.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, ParamSpec, TypeVar, cast
from uuid import UUID

from sqlalchemy import Table, select
from sqlalchemy.sql import ClauseElement

from school_service.core.database import current_session, request_context, table_names
from school_service.core.read_models import (
    BoundQuery,
    Made,
    ReadModel,
    batch_of,
    value_for_driver,
)
from school_service.core.read_models import (
    Executable as Executable,
)
from tenants.connections.statements import write

Arguments = ParamSpec("Arguments")


def statement(make: Callable[Arguments, ClauseElement]) -> ReadModel[Arguments]:
    """Decorate a function making an INSERT, UPDATE or DELETE: the statement is then built and compiled only once.

    The arguments of the function are values and never None. Calling it returns the statement with these values, to be
    sent by `execute` or `fetch_row`.
    """
    return ReadModel(cast(Any, make), judged=True)


@dataclass(frozen=True, slots=True)
class NewRow:
    """A row to insert: a value for each column of its table, except those computed by PostgreSQL."""

    table: Table
    values: Mapping[str, Any]

    @property
    def id(self) -> UUID:
        """The row's id, made here unless it was given."""
        row_id: UUID = self.values["id"]
        return row_id

    def batch(self) -> tuple[str, tuple[Any, ...]]:
        """Give the INSERT and the values of its columns, in the order of the table."""
        return _insertion(self.table), tuple([value_for_driver(value) for value in self.values.values()])


@dataclass(frozen=True, slots=True)
class NewRows:
    """Rows of one table, one at least, to insert in one statement."""

    rows: Sequence[NewRow]

    def batch(self) -> tuple[str, tuple[Any, ...]]:
        """Give the INSERT and the values of all rows, one after the other."""
        table, columns = self.rows[0].table, len(self.rows[0].values)
        more = f", ({', '.join(['%s'] * columns)})" * (len(self.rows) - 1)
        return _insertion(table) + more, tuple([value for row in self.rows for value in row.batch()[1]])


@dataclass(frozen=True, slots=True)
class PutRow(NewRow):
    """A row to insert, or to update if there is one already with the same values in the columns of `key`."""

    key: tuple[str, ...]

    def batch(self) -> tuple[str, tuple[Any, ...]]:
        """Give the INSERT, with the UPDATE of a row already there, which keeps its id; and the values."""
        insertion, values = NewRow.batch(self)
        return f"{insertion} {_replacing(self.table, self.key)}", values


def put_row(model: type[Any], *key: str, **values: Any) -> PutRow:
    """Make a row of a model, to be inserted, or to be updated if there is one with the same values of `key`.

    `key` names the columns of a unique constraint. Columns not given have the model's default, else null.
    """
    row = new_row(model, **values)
    return PutRow(row.table, row.values, key)


def new_row(model: type[Any], **values: Any) -> NewRow:
    """Make a row of a model, to be inserted by `execute`; columns not given have the model's default, else null.

    Values are sent as they are. A value computed by the model from other columns has to be given.
    """
    table: Table = model.__table__
    defaults = _defaults(table)
    if not values.keys() <= defaults.keys():
        unknown = ", ".join(sorted(values.keys() - defaults.keys()))
        raise TypeError(f"{model.__name__} has no column {unknown}.")
    return NewRow(
        table, {name: values[name] if name in values else default() for name, default in defaults.items()}
    )


def insert_row(model: type[Any], **values: Any) -> NewRow:
    """Insert a row of a model now, and return it; columns not given have the model's default, else null.

    Raises the violation of a constraint.
    """
    row = new_row(model, **values)
    execute(row)
    return row


def execute(*executables: Executable) -> dict[str, Any] | None:
    """Send statements in one round trip, in this order; returns the row of the last, by column, or None.

    Raises the violation of a constraint. The row's values are the driver's: a text,
    a number, a date, a UUID.
    """
    return write(current_session().bound_connection(), *batch_of(executables))


def fetch_one(*executables: Executable) -> dict[str, Any]:
    """Send statements in one round trip, as `execute` does; returns the row of the last, which always has one."""
    row = execute(*executables)
    if row is None:
        raise RuntimeError("A statement that always has a row had none.")
    return row


def execute_with_commit(*executables: Executable) -> None:
    """Send statements in the round trip of COMMIT, in this order, behind the entries of the audit log.

    The violation of a constraint is raised then, in place of the answer.
    """
    request_context().with_commit.extend([executable.batch() for executable in executables])


def stored_in(table: str, school_id: UUID | None = None) -> str:
    """Name a table, as it is on the school's server, for a statement written by hand.

    The school is the transaction's, unless another is given.
    """
    names = table_names((table,), school_id)
    return table if names is None else names[table]


Read = TypeVar("Read", BoundQuery, Made)


def in_one_round_trip(*before: Executable, read: Read) -> Read:
    """Put statements before a read model, so that one round trip sends them all; nothing is sent until it is read.

    A service returns this at its end to the view, and the view reads it to answer: so writing and answering are one
    round trip. The violation of a constraint is raised when it is read.
    """
    if isinstance(read, Made):
        return Made(in_one_round_trip(*before, read=read.read), read.make)
    return BoundQuery(read.template, read.values, (*before, *read.before), read.besides)


def answered_beside(read: BoundQuery, members: Mapping[str, Any] | None) -> BoundQuery:
    """Answer members beside those of the row of a read model; they are no part of the record, nor of its ETag."""
    return replace(read, besides=members)


@dataclass(frozen=True, slots=True)
class _TableLock:
    table: Table
    shared: bool

    def batch(self) -> tuple[str, tuple[Any, ...]]:
        return advisory_lock(self.table, shared=self.shared), ()


def advisory_lock(table: Table, *, shared: bool = False) -> str:
    """Write the statement of an advisory lock for a table of the school: it waits for its other holders.

    A `shared` lock waits only for locks that are not shared. It is no LOCK TABLE: this would need an answer of more
    than one server.
    """
    lock = "pg_advisory_xact_lock_shared" if shared else "pg_advisory_xact_lock"
    return f"SELECT {lock}(hashtextextended(current_schema() || '.{table.name}', 0))"


Lock = Callable[..., Executable]
"""Makes the statement to lock a record, of the ids in its address."""


def row_lock(model: type[Any]) -> Lock:
    """Make the lock, for `if_match`, of the row of a record by its id, FOR NO KEY UPDATE."""

    @statement
    def lock(record_id: UUID) -> Any:
        return select(model.id).where(model.id == record_id).with_for_update(key_share=True)

    return lock


def lock_through(reference: Any, model: type[Any]) -> Lock:
    """Make the lock, FOR NO KEY UPDATE, of the record of a model that another refers to, by the other's id."""
    referring = reference.class_

    @statement
    def lock(record_id: UUID) -> Any:
        locked = select(model.id).join(referring, reference == model.id).where(referring.id == record_id)
        return locked.with_for_update(key_share=True, of=model)

    return lock


def table_lock(model: type[Any], *, shared: bool = False) -> Lock:
    """Make the lock of a table against its other writers, for `if_match`; the id of the record is not used.

    `shared` is for readers of the table in more than one statement, without writes into it.
    """
    return lambda *_ids: _TableLock(model.__table__, shared)


@cache
def _defaults(table: Table) -> dict[str, Callable[[], Any]]:
    """Find the defaults of a table's columns, for values not given; columns computed by PostgreSQL have none."""
    return {column.name: _default(column) for column in table.columns if column.computed is None}


def _default(column: Any) -> Callable[[], Any]:
    default = column.default
    if default is None:
        return lambda: None
    if default.is_callable:
        # SQLAlchemy calls the function of a default with the context of a statement, which these functions do not use.
        return lambda: default.arg(None)
    return lambda: default.arg


def _insertion(table: Table) -> str:
    return f"INSERT INTO {stored_in(table.name)} {_columns_and_values(table)}"


@cache
def _columns_and_values(table: Table) -> str:
    columns = _defaults(table)
    values = ", ".join(["%s"] * len(columns))
    # The text has only names of the metadata: values are parameters.
    return f"({', '.join(columns)}) VALUES ({values})"


@cache
def _replacing(table: Table, key: tuple[str, ...]) -> str:
    fixed = {*key, *(column.name for column in table.primary_key)}
    changed = ", ".join(f"{name} = excluded.{name}" for name in _defaults(table) if name not in fixed)
    return f"ON CONFLICT ({', '.join(key)}) DO UPDATE SET {changed}"
