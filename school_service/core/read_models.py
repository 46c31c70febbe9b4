"""Read models: a SELECT for each resource, built and compiled once.

A read model is a function that returns a select() whose columns bear the names of its schema's fields; its arguments
are filters. Building and compiling a select() costs more than running it. So a function decorated with `read_model` is
called once for each combination of arguments that are given (the others are None), with bind parameters in place of
the values, and the statements made of it are compiled once.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from functools import partial, update_wrapper
from types import NoneType, UnionType
from typing import Any, Generic, ParamSpec, Protocol, Union, get_args, get_origin, get_type_hints
from uuid import UUID

from sqlalchemy import (
    ARRAY,
    JSON,
    BindParameter,
    Boolean,
    Cast,
    Date,
    DateTime,
    Integer,
    Numeric,
    Select,
    String,
    Table,
    Text,
    Uuid,
    bindparam,
    cast,
)
from sqlalchemy.dialects.postgresql.base import PGCompiler
from sqlalchemy.dialects.postgresql.psycopg2 import PGDialect_psycopg2
from sqlalchemy.sql import ClauseElement

from school_service.core.database import current_school, current_session, request_context, shard_names
from tenants.connections.engines import execute_batch
from tenants.registry.schools import School

_TYPES: dict[Any, Any] = {
    UUID: Uuid,
    str: String,
    int: Integer,
    bool: Boolean,
    date: Date,
    datetime: DateTime,
    float: Numeric,
    list[UUID]: partial(ARRAY, Uuid),
}
# Around the name of a table, in the text of a statement that is being compiled; and of one with an alias.
_BARE, _ALIASED = "\x01", "\x02"
_MARKED = re.compile(f"([{_BARE}{_ALIASED}])(.*?)\\1")


class _MarkingCompiler(PGCompiler):
    """Writes SQL in which the tables are marked that a statement reads or changes."""

    def visit_table(self, table: Any, *arguments: Any, **options: Any) -> str:
        text: str = super().visit_table(table, *arguments, **options)  # type: ignore[no-untyped-call]
        if not options.get("asfrom") or not isinstance(table, Table):
            return text
        alias = options.get("enclosing_alias")
        mark = _BARE if alias is None or alias.element is not table else _ALIASED
        return f"{mark}{text}{mark}"

    def visit_insert(self, insert_stmt: Any, *arguments: Any, **options: Any) -> str:
        text: str = super().visit_insert(insert_stmt, *arguments, **options)  # type: ignore[no-untyped-call]
        # Its table is not visited. An INSERT within it that is of the same table has been marked.
        into, name = "INSERT INTO", self.preparer.format_table(insert_stmt.table)
        return text.replace(f"{into} {name} ", f"{into} {_BARE}{name}{_BARE} ", 1)


class _Dialect(PGDialect_psycopg2):
    statement_compiler = _MarkingCompiler


# Positional parameters: a read model is sent together with statements that have parameters of their own.
_dialect: Any = _Dialect(paramstyle="format")  # type: ignore[no-untyped-call]

Query = Select[*tuple[Any, ...]]
Filters = ParamSpec("Filters")
Wrapper = Callable[[Query], ClauseElement]


class Statement(Protocol):
    """SQL text, and the values of its parameters."""

    @property
    def sql(self) -> str:
        """The text, as the driver takes it."""

    def parameters(self, values: Mapping[str, Any]) -> tuple[Any, ...]:
        """Gather the value of every parameter."""


class Template(Protocol):
    """What a read model was built to: a statement for each way to render it."""

    def statement(self, wrap: Wrapper) -> Statement:
        """The statement that `wrap` makes of the read model."""


def sent_value(value: Any) -> Any:
    """Give a value as the driver is to have it: an id as text, once for all its places.

    The driver would write each anew, in Python, and as slowly as a short statement is sent.
    """
    return str(value) if type(value) is UUID else value


class CompiledStatement:
    """A compiled statement: SQL text, and where the value of each of its parameters comes from."""

    def __init__(self, executable: ClauseElement) -> None:
        compiled: Any = executable.compile(dialect=_dialect)
        marked = str(compiled)
        self._text = _MARKED.sub(r"\2", marked)
        # Text, mark, table, text, mark, …, text.
        self._parts = _MARKED.split(marked)
        self._tables = frozenset(self._parts[2::3])
        if "__[POSTCOMPILE" in self._text:
            raise TypeError("A read model can't contain a list of values: compare with any_() of an array.")
        if "ON CONFLICT ON CONSTRAINT" in self._text:
            raise TypeError(
                "ON CONFLICT names columns (index_elements): constraints have other names on some servers."
            )
        self._names: list[str] = compiled.positiontup
        self._constants: dict[str, Any] = {}
        self._computed: list[tuple[str, Callable[[], Any]]] = []
        self._required: list[str] = []
        for bind, name in compiled.bind_names.items():
            processor = bind.type.dialect_impl(_dialect).bind_processor(_dialect)
            if bind.callable is not None:
                self._computed.append((name, bind.callable))
            elif bind.required:
                self._required.append(name)
            else:
                self._constants[name] = processor(bind.value) if processor else bind.value

    @property
    def sql(self) -> str:
        """The text, as the driver takes it; its tables have the names that they have on the school's server.

        Either all of a statement's tables are named so, or none of them.
        """
        names = shard_names(self._tables) if self._tables else None
        if names is None:
            return self._text
        parts = self._parts.copy()
        for place in range(1, len(parts), 3):
            mark, table = parts[place : place + 2]
            parts[place], parts[place + 1] = names[table], f" AS {table}" if mark == _BARE else ""
        return "".join(parts)

    def parameters(self, values: Mapping[str, Any]) -> tuple[Any, ...]:
        """Gather the value of every parameter, in their order; `values` are those of the read model's filters."""
        parameters = dict(self._constants)
        for name in self._required:
            parameters[name] = sent_value(values[name])
        for name, compute in self._computed:
            parameters[name] = sent_value(compute())
        return tuple([parameters[name] for name in self._names])


@dataclass
class QueryTemplate:
    """A select() made with bind parameters, and the statements made of it, by the function that wrapped it."""

    query: Query
    statements: dict[Wrapper, CompiledStatement] = field(default_factory=dict)

    def statement(self, wrap: Wrapper) -> CompiledStatement:
        """The statement that `wrap` makes of the select(), compiled at its first use."""
        found = self.statements.get(wrap)
        if found is None:
            found = self.statements[wrap] = CompiledStatement(wrap(self.query))
        return found


@dataclass(frozen=True, slots=True)
class BoundQuery:
    """A read model with the values of its filters, ready to be rendered."""

    template: Template
    values: Mapping[str, Any]


class ReadModel(Generic[Filters]):
    """A read model that is built once for each combination of given filters; called as the function it decorates."""

    def __init__(self, make: Callable[Filters, Query]) -> None:
        update_wrapper(self, make)
        self.query = make
        """The plain function: the select() with values in it, for use within another statement."""
        self._names = tuple(inspect.signature(make).parameters)
        self._filters = frozenset(self._names)
        self._types: dict[str, Any] | None = None
        self._templates: dict[frozenset[str], QueryTemplate] = {}

    def __call__(self, *arguments: Filters.args, **named: Filters.kwargs) -> BoundQuery:
        """Give the filters their values; None leaves a filter out."""
        values: dict[str, Any] = {**dict(zip(self._names, arguments, strict=False)), **named}
        if len(arguments) > len(self._names) or not values.keys() <= self._filters:
            raise TypeError(f"{self.query.__name__}() takes the filters {', '.join(self._names) or 'none'}.")
        given = frozenset(name for name, value in values.items() if value is not None)
        template = self._templates.get(given)
        if template is None:
            template = self._templates[given] = self._make(given)
        return BoundQuery(template, values)

    def _make(self, given: frozenset[str]) -> QueryTemplate:
        if self._types is None:
            self._types = {name: _column_type(hint) for name, hint in get_type_hints(self.query).items()}
        binds = {name: bindparam(name, type_=self._types[name], required=True) for name in given}
        make: Callable[..., Query] = self.query
        return QueryTemplate(make(**{name: binds.get(name) for name in self._names}))


def read_model(make: Callable[Filters, Query]) -> ReadModel[Filters]:
    """Make a function that returns a select() a read model which is built and compiled once."""
    return ReadModel(make)


def fetch_row(read: BoundQuery) -> dict[str, Any] | None:
    """Fetch the row of a read model that has at most one, by column; None where there is none.

    The values are the driver's: a text, a number, a date, a UUID.
    """
    statement = read.template.statement(unwrapped)
    return execute_batch(
        current_session().bound_connection(), statement.sql, statement.parameters(read.values)
    )


def unwrapped(query: Query) -> ClauseElement:
    """Take a read model as it is, by columns."""
    return query


def _column_type(hint: Any) -> Any:
    """The column type of an annotation such as UUID or `UUID | None`; None where it is none."""
    if get_origin(hint) in {Union, UnionType}:
        hint = next(part for part in get_args(hint) if part is not NoneType)
    made = _TYPES.get(hint)
    return made() if made else None


# What read models are made of. The school is read when a statement runs, so that a read model serves every school.


def school_id() -> BindParameter[UUID]:
    """The id of the transaction's school."""
    return bindparam("school_id", callable_=lambda: request_context().school_id, type_=Uuid())


def school_value(name: str, value: Callable[[School], str]) -> BindParameter[str]:
    """A text computed from the transaction's school."""
    return bindparam(name, callable_=lambda: value(current_school()), type_=Text())


def as_json(text: BindParameter[str]) -> Cast[Any]:
    """A text of JSON, as JSON."""
    return cast(text, JSON)
