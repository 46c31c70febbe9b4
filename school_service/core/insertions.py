"""INSERTs of a school's records without the session's unit of work: few messages, and little of Python's time.

The INSERT of a model is written once. Several rows go out in one message, a statement each and in the order that they
are given in, so that the violation of a constraint is that of the first row at fault. A record that nobody needs
before the answer goes out in one message with the read model that answers it (`inserted_with`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any
from uuid import UUID

from sqlalchemy import Table

from school_service.core.database import db
from school_service.core.read_models import BoundQuery, Statement, Template, Wrapper
from tenants.connections.engines import execute_batch


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


def new_row(model: type[Any], **values: Any) -> NewRow:
    """Make a row of a model; columns that are not given have the model's default, else null.

    Values are as PostgreSQL gets them: a default that the model computes of other columns has to be given.
    """
    table: Table = model.__table__
    defaults = _defaults(table)
    if not values.keys() <= defaults.keys():
        unknown = ", ".join(sorted(values.keys() - defaults.keys()))
        raise TypeError(f"{model.__name__} has no column {unknown}.")
    given = {name: values[name] if name in values else default() for name, default in defaults.items()}
    return NewRow(table, given)


def insert_now(*rows: NewRow) -> None:
    """Insert rows in one message, so that a violated constraint is known here (`web.integrity_errors` answers it)."""
    sql = _insertions(tuple(row.table for row in rows))
    execute_batch(db.session.connection(), sql, _parameters(rows))


def insert_one(model: type[Any], **values: Any) -> UUID:
    """Insert a row now, and return its id; as `new_row` and `insert_now`."""
    row = new_row(model, **values)
    insert_now(row)
    return row.id


def inserted_with(read: BoundQuery, *rows: NewRow) -> BoundQuery:
    """Let rows be inserted by the message that reads `read`, right before it; until it is read, nothing is stored.

    For the end of a service, whose view answers it. A violated constraint is known when it is read.
    """
    template = _InsertingTemplate(read.template, tuple(row.table for row in rows))
    return BoundQuery(template, {**read.values, **_parameters(rows)})


@dataclass(frozen=True, slots=True)
class _InsertingTemplate:
    """A read model behind the INSERTs of a row of each table."""

    read: Template
    tables: tuple[Table, ...]

    def statement(self, wrap: Wrapper) -> Statement:
        return _InsertingStatement(_insertions(self.tables), self.read.statement(wrap))


@dataclass(frozen=True, slots=True)
class _InsertingStatement:
    insertions: str
    read: Statement

    @property
    def sql(self) -> str:
        return f"{self.insertions};\n{self.read.sql}"

    def parameters(self, values: Mapping[str, Any]) -> dict[str, Any]:
        return {**values, **self.read.parameters(values)}


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


@cache
def _insertions(tables: tuple[Table, ...]) -> str:
    """Write the INSERTs of one row of each table; a parameter is named by the row's place and its column."""
    return ";\n".join(_insertion(number, table) for number, table in enumerate(tables))


def _insertion(number: int, table: Table) -> str:
    columns = _defaults(table)
    values = ", ".join(f"%({_parameter(number, name)})s" for name in columns)
    # Names of the metadata alone: values are parameters.
    return f"INSERT INTO {table.name} ({', '.join(columns)}) VALUES ({values})"  # noqa: S608


def _parameters(rows: tuple[NewRow, ...]) -> dict[str, Any]:
    return {
        _parameter(number, name): value
        for number, row in enumerate(rows)
        for name, value in row.values.items()
    }


def _parameter(number: int, column: str) -> str:
    return f"row{number}.{column}"
