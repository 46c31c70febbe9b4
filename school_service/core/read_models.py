"""Read models made once: building and compiling a select() costs more than running it.

A read model is a function that returns a select() whose columns bear the names of its schema's fields; its arguments
are filters. Decorated with `read_model`, it is called once for each combination of arguments that are given (the
others are None), with bind parameters in place of the values, and the statements made of it are compiled once.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from functools import partial, update_wrapper
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints
from uuid import UUID

from sqlalchemy import ARRAY, Boolean, Date, DateTime, Integer, Numeric, Select, String, Uuid, bindparam
from sqlalchemy.dialects.postgresql.psycopg2 import PGDialect_psycopg2
from sqlalchemy.sql import ClauseElement

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
_dialect = PGDialect_psycopg2()

Query = Select[*tuple[Any, ...]]


class Statement:
    """A compiled statement: SQL text, and where the value of each of its parameters comes from."""

    def __init__(self, executable: ClauseElement) -> None:
        compiled: Any = executable.compile(dialect=_dialect)
        self.sql = str(compiled)
        if "__[POSTCOMPILE" in self.sql:
            raise TypeError("A read model can't hold a list of values; compare with any_() of an array.")
        self._constants: dict[str, Any] = {}
        self._asked: list[tuple[str, Callable[[], Any]]] = []
        self._given: list[str] = []
        for bind, name in compiled.bind_names.items():
            processor = bind.type.dialect_impl(_dialect).bind_processor(_dialect)
            if bind.callable is not None:
                self._asked.append((name, bind.callable))
            elif bind.required:
                self._given.append(name)
            else:
                self._constants[name] = processor(bind.value) if processor else bind.value

    def parameters(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Gather the value of every parameter; `values` are those of the read model's filters."""
        parameters = dict(self._constants)
        for name in self._given:
            parameters[name] = values[name]
        for name, ask in self._asked:
            parameters[name] = ask()
        return parameters


@dataclass
class Shape:
    """A select() made with bind parameters, and the statements that have been made of it, by their purpose."""

    query: Query
    statements: dict[str, Statement] = field(default_factory=dict)

    def statement(self, purpose: str, make: Callable[[Query], ClauseElement]) -> Statement:
        """The statement for a purpose, made at its first use."""
        found = self.statements.get(purpose)
        if found is None:
            found = self.statements[purpose] = Statement(make(self.query))
        return found


@dataclass(frozen=True, slots=True)
class Reading:
    """A read model with the values of its filters, ready to be rendered."""

    shape: Shape
    values: Mapping[str, Any]


class ReadModel:
    """A read model that is made once for each combination of given arguments."""

    def __init__(self, make: Callable[..., Query]) -> None:
        update_wrapper(self, make)
        self.query = make
        """The plain function: the select() with values in it, for use within another statement."""
        self._names = tuple(inspect.signature(make).parameters)
        self._types: dict[str, Any] | None = None
        self._shapes: dict[frozenset[str], Shape] = {}

    def __call__(self, *arguments: Any, **named: Any) -> Reading:
        """Give the filters their values; None leaves a filter out."""
        values = dict(zip(self._names, arguments, strict=False), **named)
        given = frozenset(name for name, value in values.items() if value is not None)
        shape = self._shapes.get(given)
        if shape is None:
            shape = self._shapes[given] = self._make(given)
        return Reading(shape, values)

    def _make(self, given: frozenset[str]) -> Shape:
        if self._types is None:
            self._types = {name: _column_type(hint) for name, hint in get_type_hints(self.query).items()}
        binds = {name: bindparam(name, type_=self._types[name], required=True) for name in given}
        return Shape(self.query(**{name: binds.get(name) for name in self._names}))


def read_model(make: Callable[..., Query]) -> ReadModel:
    """Make a function that returns a select() a read model which is built and compiled once."""
    return ReadModel(make)


def _column_type(hint: Any) -> Any:
    """The column type of an annotation such as UUID or `UUID | None`; None where it is none."""
    if get_origin(hint) in {Union, UnionType}:
        hint = next(part for part in get_args(hint) if part is not NoneType)
    made = _TYPES.get(hint)
    return made() if made else None
