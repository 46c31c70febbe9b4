"""Writing a school's records in few messages, without the session's unit of work.

A service that writes sends one SELECT that locks and checks (a read model with FOR SHARE or FOR NO KEY UPDATE, fetched
by `fetch_row`), then what it writes in one message. What is compiled is compiled once: the INSERT of each table, and
each `statement`, as read models are. Several go out in one message (`execute`), in the order that they are given in,
each seeing what those before it did: so the violation of a constraint is that of the first at fault.

Objects of the session know nothing of what is written so: load those that are needed afterwards.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, ParamSpec, Protocol, cast
from uuid import UUID

from sqlalchemy import Table, select
from sqlalchemy.sql import ClauseElement

from school_service.core.database import shard_names
from school_service.core.read_models import (
    BoundQuery,
    ReadModel,
    Statement,
    Template,
    Wrapper,
    fetch_row,
    sent_value,
    unwrapped,
)

Arguments = ParamSpec("Arguments")


def statement(make: Callable[Arguments, ClauseElement]) -> ReadModel[Arguments]:
    """Make a function that returns an INSERT, UPDATE or DELETE one that is built and compiled once, as read models are.

    Its arguments are values and never None. Called, it returns the statement with its values, to be sent by `execute`
    or `fetch_row`.
    """
    return ReadModel(cast(Any, make))


class Executable(Protocol):
    """What `execute` can send: a NewRow, or a statement or read model with its values."""

    @property
    def sql(self) -> str:
        """Its SQL text, with positional parameters."""

    @property
    def sent(self) -> tuple[Any, ...]:
        """The values of its parameters."""


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

    @property
    def sql(self) -> str:
        """The INSERT."""
        return _insertion(self.table)

    @property
    def sent(self) -> tuple[Any, ...]:
        """The values of the columns, in the order of the table."""
        return tuple(map(sent_value, self.values.values()))


@dataclass(frozen=True, slots=True)
class PutRow(NewRow):
    """A row to insert, or else to give these values to the row that is there, found by the columns of `key`."""

    key: tuple[str, ...]

    @property
    def sql(self) -> str:
        """The INSERT, and the UPDATE where there is such a row; its id stays."""
        return f"{_insertion(self.table)} {_replacing(self.table, self.key)}"


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


def execute(*executables: Executable | BoundQuery) -> dict[str, Any] | None:
    """Send statements in one message, in this order; returns the row of the last, by column, or None.

    A violated constraint is known here (`web.integrity_errors` answers it). The row's values are the driver's, as
    those of `fetch_row`.
    """
    *ahead, last = executables
    return fetch_row(in_one_message(*ahead, read=_bound(last)))


def stored_in(table: str, school_id: UUID | None = None) -> str:
    """Name a table, as it is on the school's server, for a statement that is written by hand.

    The school is the transaction's, unless another is given.
    """
    names = shard_names((table,), school_id)
    return table if names is None else names[table]


def in_one_message(*ahead: Executable | BoundQuery, read: BoundQuery) -> BoundQuery:
    """Let statements go out with the message that reads `read`, before it; until it is read, nothing is written.

    For the end of a service whose view answers it: what is written and the answer are one message. A violated
    constraint is known when it is read.
    """
    if not ahead:
        return read
    return BoundQuery(_Behind(tuple(map(_executable, ahead)), read.template), read.values)


def _bound(last: Executable | BoundQuery) -> BoundQuery:
    return last if isinstance(last, BoundQuery) else BoundQuery(_Alone(last), {})


def _executable(one: Executable | BoundQuery) -> Executable:
    return _Ahead(one) if isinstance(one, BoundQuery) else one


@dataclass(frozen=True, slots=True)
class _Ahead:
    """A statement or read model with its values, of which no row is read."""

    bound: BoundQuery

    @property
    def sql(self) -> str:
        return self.bound.template.statement(unwrapped).sql

    @property
    def sent(self) -> tuple[Any, ...]:
        return self.bound.template.statement(unwrapped).parameters(self.bound.values)


@dataclass(frozen=True, slots=True)
class _Alone:
    """The last of a message that is no read model: the template of its one statement."""

    executable: Executable

    def statement(self, wrap: Wrapper) -> Statement:
        return _Last(self.executable)


@dataclass(frozen=True, slots=True)
class _Behind:
    """The template of a read model that goes out behind statements."""

    ahead: tuple[Executable, ...]
    last: Template

    def statement(self, wrap: Wrapper) -> Statement:
        return _Message(self.ahead, self.last.statement(wrap))


@dataclass(frozen=True, slots=True)
class _Last:
    executable: Executable

    @property
    def sql(self) -> str:
        return self.executable.sql

    def parameters(self, values: Mapping[str, Any]) -> tuple[Any, ...]:
        return self.executable.sent


@dataclass(frozen=True, slots=True)
class _Message:
    ahead: tuple[Executable, ...]
    last: Statement

    @property
    def sql(self) -> str:
        return ";\n".join([*(one.sql for one in self.ahead), self.last.sql])

    def parameters(self, values: Mapping[str, Any]) -> tuple[Any, ...]:
        ahead = (value for one in self.ahead for value in one.sent)
        return (*ahead, *self.last.parameters(values))


@dataclass(frozen=True, slots=True)
class _TableLock:
    table: Table
    shared: bool

    @property
    def sql(self) -> str:
        return advisory_lock(self.table, shared=self.shared)

    @property
    def sent(self) -> tuple[Any, ...]:
        return ()


def advisory_lock(table: Table, *, shared: bool = False) -> str:
    """Write the statement that waits for whoever has run it for the same table of the school.

    Who has it `shared` waits for those alone who have not. It is no LOCK TABLE, which more
    than one server would have to answer.
    """
    lock = "pg_advisory_xact_lock_shared" if shared else "pg_advisory_xact_lock"
    return f"SELECT {lock}(hashtextextended(current_schema() || '.{table.name}', 0))"


Lock = Callable[..., Executable | BoundQuery]
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
