"""Writing a school's records in few round trips, without the session's unit of work.

A service that writes sends one SELECT that locks and checks (a read model with FOR SHARE or FOR NO KEY UPDATE, fetched
by `fetch_row`), then what it writes in one round trip. What is compiled is compiled once: the INSERT of each table, and
each `statement`, as read models are. Several go out in one round trip (`execute`), in the order that they are given in,
each seeing what those before it did: so the violation of a constraint is that of the first at fault.

Objects of the session know nothing of what is written so: load those that are needed afterwards.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, ParamSpec, cast
from uuid import UUID

from sqlalchemy import Table, select
from sqlalchemy.sql import ClauseElement

from school_service.core.database import current_session, shard_names
from school_service.core.read_models import (
    BoundQuery,
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
    """Make a function that returns an INSERT, UPDATE or DELETE one that is built and compiled once, as read models are.

    Its arguments are values and never None. Called, it returns the statement with its values, to be sent by `execute`
    or `fetch_row`.
    """
    return ReadModel(cast(Any, make))


@dataclass(frozen=True, slots=True)
class NewRow:
    """A row to insert: a value for each column of its table."""

    table: Table
    values: Mapping[str, Any]

    @property
    def id(self) -> UUID:
        """The row's id, made here unless it was given."""
        found: UUID = self.values["id"]
        return found

    def batch(self) -> tuple[str, tuple[Any, ...]]:
        """Give the INSERT and the values of its columns, in the order of the table."""
        return _insertion(self.table), tuple([value_for_driver(value) for value in self.values.values()])


@dataclass(frozen=True, slots=True)
class PutRow(NewRow):
    """A row to insert, or else to give these values to the row that is there, found by the columns of `key`."""

    key: tuple[str, ...]

    def batch(self) -> tuple[str, tuple[Any, ...]]:
        """Give the INSERT, with the UPDATE where there is such a row, whose id stays; and its values."""
        insertion, values = NewRow.batch(self)
        return f"{insertion} {_replacing(self.table, self.key)}", values


def put_row(model: type[Any], *key: str, **values: Any) -> PutRow:
    """Make a row of a model that there may be already: `key` are the columns of its unique constraint; as `new_row`."""
    row = new_row(model, **values)
    return PutRow(row.table, row.values, key)


def new_row(model: type[Any], **values: Any) -> NewRow:
    """Make a row of a model; columns that are not given have the model's default, else null.

    Values are as PostgreSQL gets them: a default that the model computes of other columns has to be given.
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
    """Insert a row of a model now; as `new_row` and `execute`."""
    row = new_row(model, **values)
    execute(row)
    return row


def execute(*executables: Executable) -> dict[str, Any] | None:
    """Send statements in one round trip, in this order; returns the row of the last, by column, or None.

    A violated constraint is known here (`web.integrity_errors` answers it). The row's values are the driver's: a text,
    a number, a date, a UUID.
    """
    return write(current_session().bound_connection(), *batch_of(executables))


def stored_in(table: str, school_id: UUID | None = None) -> str:
    """Name a table, as it is on the school's server, for a statement that is written by hand.

    The school is the transaction's, unless another is given.
    """
    names = shard_names((table,), school_id)
    return table if names is None else names[table]


def in_one_round_trip(*before: Executable, read: BoundQuery) -> BoundQuery:
    """Let statements go out in the round trip that reads `read`, before it; until it is read, nothing is written.

    For the end of a service whose view answers it: what is written and the answer are one round trip. A violated
    constraint is known when it is read.
    """
    return BoundQuery(read.template, read.values, (*before, *read.before))


@dataclass(frozen=True, slots=True)
class _TableLock:
    table: Table
    shared: bool

    def batch(self) -> tuple[str, tuple[Any, ...]]:
        return advisory_lock(self.table, shared=self.shared), ()


def advisory_lock(table: Table, *, shared: bool = False) -> str:
    """Write the statement that waits for whoever has run it for the same table of the school.

    Who has it `shared` waits for those alone who have not. It is no LOCK TABLE, which more
    than one server would have to answer.
    """
    lock = "pg_advisory_xact_lock_shared" if shared else "pg_advisory_xact_lock"
    return f"SELECT {lock}(hashtextextended(current_schema() || '.{table.name}', 0))"


Lock = Callable[..., Executable]
"""Makes the statement that locks a record, of the ids in its address."""


def row_lock(model: type[Any]) -> Lock:
    """Lock the row of a record, by its id, FOR NO KEY UPDATE, as `records.get` does with `for_update`."""

    @statement
    def lock(record_id: UUID) -> Any:
        return select(model.id).where(model.id == record_id).with_for_update(key_share=True)

    return lock


def table_lock(model: type[Any], *, shared: bool = False) -> Lock:
    """Wait for other writers of a table, as `records.lock_table` does, whichever record it is about.

    `shared`: for who reads the table in more than one statement, and writes none of it.
    """
    return lambda *_ids: _TableLock(model.__table__, shared)


@cache
def _defaults(table: Table) -> dict[str, Callable[[], Any]]:
    """Find what gives the columns of a table their values where none are given."""
    return {column.name: _default(column) for column in table.columns}


def _default(column: Any) -> Callable[[], Any]:
    default = column.default
    if default is None:
        return lambda: None
    if default.is_callable:
        # SQLAlchemy hands every function of a default the context of a statement, which these do without.
        return lambda: default.arg(None)
    return lambda: default.arg


def _insertion(table: Table) -> str:
    return f"INSERT INTO {stored_in(table.name)} {_columns_and_values(table)}"


@cache
def _columns_and_values(table: Table) -> str:
    columns = _defaults(table)
    values = ", ".join(["%s"] * len(columns))
    # Names of the metadata alone: values are parameters.
    return f"({', '.join(columns)}) VALUES ({values})"


@cache
def _replacing(table: Table, key: tuple[str, ...]) -> str:
    fixed = {*key, *(column.name for column in table.primary_key)}
    changed = ", ".join(f"{name} = excluded.{name}" for name in _defaults(table) if name not in fixed)
    return f"ON CONFLICT ({', '.join(key)}) DO UPDATE SET {changed}"
