"""Read models: a SELECT for each resource, built and compiled once.

A read model is a function returning a select() with columns named as the fields of its schema; its arguments are
filters. Building and compiling a select() costs more than running it. So a function decorated with `read_model` is
called once for each combination of given arguments (the others are None), with bind parameters in place of the values,
and the statements made of it are compiled once.
"""

from __future__ import annotations

import inspect
import re
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal
from functools import partial, update_wrapper
from types import NoneType, UnionType
from typing import (
    Any,
    Generic,
    ParamSpec,
    Protocol,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)
from uuid import UUID

from sqlalchemy import (
    ARRAY,
    JSON,
    BindParameter,
    Boolean,
    Date,
    DateTime,
    FromClause,
    Integer,
    Numeric,
    Select,
    String,
    Text,
    Uuid,
    bindparam,
    cast,
    func,
    literal_column,
    select,
)
from sqlalchemy.dialects.postgresql import aggregate_order_by
from sqlalchemy.sql import ClauseElement, ColumnElement

from school_service.core.database import (
    current_reach,
    current_school,
    current_session,
    request_context,
    table_names,
)
from school_service.core.exact_json import read_json
from school_service.core.reach import Reach, refuse_unjudged
from tenants.connections.dialect import psycopg2_dialect
from tenants.connections.statements import write
from tenants.registry.schools import School

_TYPES: dict[Any, Any] = {
    UUID: Uuid,
    str: String,
    int: Integer,
    bool: Boolean,
    date: Date,
    datetime: DateTime,
    float: Numeric,
    Decimal: Numeric,
    list[UUID]: partial(ARRAY, Uuid),
}
# A schema that marks the names of tables in the text of a statement: as SQLAlchemy writes it, before each of them.
_MARK = "a_table_of_the_school"
_MARKED = re.compile(rf"{_MARK}\.(\w++)(\.| AS )?")

# Positional parameters: a read model is sent together with statements that have parameters of their own.
_dialect: Any = psycopg2_dialect(paramstyle="format")

Query = Select[*tuple[Any, ...]]
Filters = ParamSpec("Filters")
Wrapper = Callable[[Query], ClauseElement]


class Executable(Protocol):
    """Anything a service can send: a read model or statement with its values, or a row to write."""

    def batch(self) -> tuple[str, tuple[Any, ...]]:
        """Give its SQL text, and the values of its parameters in their order."""


def value_for_driver(value: Any) -> Any:
    """Convert a value for the driver: an id becomes text, once for all its places.

    The driver would convert it in Python at each place. This takes as long as sending a short statement.
    """
    return str(value) if type(value) is UUID else value


class CompiledStatement:
    """A compiled statement: SQL text, and the source of each of its parameters' values."""

    def __init__(self, executable: ClauseElement) -> None:
        compiled: Any = executable.compile(
            dialect=_dialect, schema_translate_map={None: _MARK}, render_schema_translate=True
        )
        self._text: str = compiled.string.replace(f"{_MARK}.", "")
        self._parts = _divide(compiled.string)
        self._tables = frozenset(self._parts[1::2])
        if compiled.post_compile_params or compiled.literal_execute_params:
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
        """The text, as the driver takes it; its tables have their names on the school's server.

        Either all of a statement's tables are named so, or none of them.
        """
        names = table_names(self._tables) if self._tables else None
        if names is None:
            return self._text
        parts = self._parts.copy()
        for place in range(1, len(parts), 2):
            parts[place] = names[parts[place]]
        return "".join(parts)

    def parameters(self, values: Mapping[str, Any]) -> tuple[Any, ...]:
        """Gather the value of every parameter, in their order; `values` are those of the read model's filters."""
        parameters = dict(self._constants)
        for name in self._required:
            parameters[name] = value_for_driver(values[name])
        for name, compute in self._computed:
            parameters[name] = value_for_driver(compute())
        return tuple([parameters[name] for name in self._names])


def _divide(marked: str) -> list[str]:
    """Divide the text of a statement at its tables, read or changed: text, table, text, …, table, text.

    In place of a table its shard can be named: the table's own name is then its alias, unless it has one. So the
    columns need not be named anew.
    """
    parts, end = [""], 0
    for match in _MARKED.finditer(marked):
        table, follows = match[1], match[2]
        parts[-1] += marked[end : match.start()]
        end = match.end()
        if follows == ".":
            parts[-1] += f"{table}."
        else:
            parts += [table, follows or f" AS {table}"]
    parts[-1] += marked[end:]
    return parts


# Read models have parts in common, such as a subquery of a module, and SQLAlchemy caches facts in each part. Two
# threads that compiled one at once, just after the start, found tables in it twice.
_building = threading.RLock()


@dataclass
class QueryTemplate:
    """A select() made with bind parameters, and the statements made of it, by their wrapping function.

    `narrow` makes the template of the rows in reach. Without it the query may be sent for any reach if it is `judged`,
    else for none.
    """

    query: Query
    name: str = ""
    narrow: Callable[[Reach], QueryTemplate] | None = None
    judged: bool = False
    statements: dict[Wrapper, CompiledStatement] = field(default_factory=dict)
    _narrowed: dict[Reach, QueryTemplate] = field(default_factory=dict)

    def within(self, reach: Reach) -> QueryTemplate:
        """Give the template of the rows in reach; raises Forbidden if the read model does not define them."""
        if self.narrow is None:
            if not self.judged:
                refuse_unjudged(self.name)
            return self
        template = self._narrowed.get(reach)
        if template is None:
            with _building:
                template = self._narrowed.get(reach) or self.narrow(reach)
                self._narrowed[reach] = template
        return template

    def statement(self, wrap: Wrapper) -> CompiledStatement:
        """The statement made of the select() by `wrap`, compiled at its first use."""
        compiled = self.statements.get(wrap)
        if compiled is None:
            with _building:
                compiled = self.statements.get(wrap) or CompiledStatement(wrap(self.query))
                self.statements[wrap] = compiled
        return compiled


def unwrapped(query: Query) -> ClauseElement:
    """Return the select() of a read model as it is: its rows are read by their columns."""
    return query


@dataclass(frozen=True, slots=True)
class BoundQuery:
    """A read model with the values of its filters, ready to be rendered.

    `before` are executables to go out before it in the same round trip; nothing of them is written until it is read.
    `besides` are members answered beside the members of its row, and no part of the record.
    """

    template: QueryTemplate
    values: Mapping[str, Any]
    before: tuple[Executable, ...] = ()
    besides: Mapping[str, Any] | None = None

    def batch(self, wrap: Wrapper = unwrapped, **page: int) -> tuple[str, tuple[Any, ...]]:
        """Give the text of the statement made by `wrap`, and the values of its filters and of the parameters of `wrap`.

        If the caller's reach is OWN, the text reads only the rows in reach.
        """
        reach = current_reach()
        text, parameters = self.text(wrap, reach, **page)
        if reach is not None and self.template.narrow is not None:
            text, parameters = request_context().relations.before(text, parameters)
        if not self.before:
            return text, parameters
        ahead, its_parameters = batch_of(self.before)
        return f"{ahead};\n{text}", (*its_parameters, *parameters)

    def text(self, wrap: Wrapper, reach: Reach | None, **page: int) -> tuple[str, tuple[Any, ...]]:
        """Give the text for a caller of this reach, None being the whole school, and its values.

        With a reach it is a part of a statement with the caller's relations as the table `caller`.
        """
        template = self.template if reach is None else self.template.within(reach)
        statement = template.statement(wrap)
        return statement.sql, statement.parameters({**self.values, **page})


@dataclass(frozen=True, slots=True)
class RenderedRow:
    """A row as its read model shows it, rendered by another statement: JSON in UTF-8."""

    body: bytes


@dataclass(frozen=True, slots=True)
class Made:
    """An answer computed of the one row of a read model: `make` gets its columns, and the caller's reach.

    Numbers with a point are Decimals, ids and moments texts. `make` is a pure function; it returns None if there is
    nothing to be shown. It is not called without a row.
    """

    read: BoundQuery
    make: Callable[[Mapping[str, Any], Reach | None], Any]

    def of(self, row: bytes | str) -> Any:
        """Make the answer of the row, written as JSON by PostgreSQL, for the caller it was read for."""
        return self.make(read_json(row), request_context().reach)


@dataclass(frozen=True, slots=True)
class MadeTogether:
    """A list computed in parts, such as one of each class: their rows are read by one statement, however many."""

    parts: Sequence[Made]

    def fetch(self) -> dict[int, Any]:
        """Fetch the rows of the parts within the transaction under way, by place, if there is one."""
        if not self.parts:
            return {}
        batches = [part.read.batch(as_json_row) for part in self.parts]
        # The texts are read models', and values are parameters.
        rows = " UNION ALL ".join(
            f"SELECT {place} AS place, part.* FROM ({text}) AS part"  # noqa: S608
            for place, (text, _) in enumerate(batches)
        )
        text = f"SELECT json_object_agg(place, row::json)::text AS rows FROM ({rows}) AS parts"  # noqa: S608
        parameters = tuple(value for _, values in batches for value in values)
        answer = write(current_session().bound_connection(), text, parameters)
        read = read_json(answer["rows"]) if answer and answer["rows"] else {}
        return {int(place): row for place, row in read.items()}

    def of(self, rows: Mapping[int, Any]) -> list[Any]:
        """Make the list of the rows, for the caller they were read for."""
        reach = request_context().reach
        return [record for place, row in rows.items() for record in self.parts[place].make(row, reach)]


def as_json_row(query: Query) -> ClauseElement:
    """Wrap a read model so that its row is a text of JSON, the column `row`."""
    row = cast(func.row_to_json(literal_column("answer")), Text)
    return select(row.label("row")).select_from(query.subquery("answer"))


def fetch_document(read: BoundQuery) -> Any:
    """Fetch the row of a read model with at most one, an object of its columns; None if there is none.

    Numbers with a point are Decimals, ids and moments texts.
    """
    row = write(current_session().bound_connection(), *read.batch(as_json_row))
    return None if row is None else read_json(row["row"])


def fetch_made(made: Made) -> Any:
    """Make an answer within the transaction under way; None if there is no row, or nothing to be shown."""
    row = fetch_document(made.read)
    return None if row is None else made.make(row, request_context().reach)


def fetch_rows(read: BoundQuery) -> Iterator[Any]:
    """Fetch the rows of a read model within the transaction under way, each an object of its columns."""
    connection = current_session().bound_connection()
    for portion in write(connection, *read.batch(_as_json_rows), texts=True).portions:
        yield from read_json(b"[%b]" % portion)


def _as_json_rows(query: Query) -> ClauseElement:
    row = cast(func.row_to_json(literal_column("answer")), Text)
    return select(row, literal_column("false")).select_from(query.subquery("answer"))


def batch_of(executables: Iterable[Executable]) -> tuple[str, tuple[Any, ...]]:
    """Give the text of several statements, to run in this order, and the values of all their parameters."""
    batches = [executable.batch() for executable in executables]
    return ";\n".join([text for text, _ in batches]), tuple(
        [value for _, values in batches for value in values]
    )


class ReadModel(Generic[Filters]):
    """A read model, built once for each combination of given filters; called as the function it decorates."""

    def __init__(self, make: Callable[Filters, Query], *, judged: bool = False) -> None:
        update_wrapper(self, make)
        self.query = make
        """The plain function: the select() with values in it, for use within another statement."""
        names = tuple(inspect.signature(make).parameters)
        self._names = tuple(name for name in names if name != REACH)
        self._reaches, self._judged = REACH in names, judged
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
            with _building:
                template = self._templates.get(given) or self._make(given)
                self._templates[given] = template
        return BoundQuery(template, values)

    def _make(self, given: frozenset[str], reach: Reach | None = None) -> QueryTemplate:
        if self._types is None:
            self._types = {name: _column_type(hint) for name, hint in get_type_hints(self.query).items()}
        values: dict[str, Any] = dict.fromkeys(self._names)
        values |= {name: bindparam(name, type_=self._types[name], required=True) for name in given}
        make: Callable[..., Query] = self.query
        if not self._reaches:
            return QueryTemplate(make(**values), make.__qualname__, judged=self._judged)
        narrow = partial(self._make, given) if reach is None else None
        return QueryTemplate(make(**values, reach=reach), make.__qualname__, narrow)


REACH = "reach"
"""The parameter of a read model for callers with the permission OWN: None, or the reach to narrow it to."""


def read_model(make: Callable[Filters, Query]) -> ReadModel[Filters]:
    """Decorate a function making a select(): it becomes a read model, built and compiled once.

    One with the parameter `reach` serves callers with the permission OWN, and gets it from the request, never from a
    view. Without it it is not sent for such a caller, unless it says why it needs none (`core.narrowing`).
    """
    return ReadModel(make)


def fetch_row(read: BoundQuery) -> dict[str, Any] | None:
    """Fetch the row of a read model with at most one, by column; None if there is none.

    The values are the driver's: a text, a number, a date, a UUID.
    """
    return write(current_session().bound_connection(), *read.batch())


def _column_type(hint: Any) -> Any:
    """The column type of an annotation such as UUID or `UUID | None`; None for another annotation."""
    if get_origin(hint) in {Union, UnionType}:
        hint = next(part for part in get_args(hint) if part is not NoneType)
    made = _TYPES.get(hint)
    return made() if made else None


# Parts of read models. The school is read when a statement runs, so that a read model serves every school.


def school_id() -> BindParameter[UUID]:
    """The id of the transaction's school."""
    return bindparam("school_id", callable_=lambda: request_context().school_id, type_=Uuid())


def school_value(name: str, value: Callable[[School], str]) -> BindParameter[str]:
    """A text computed from the transaction's school."""
    return bindparam(name, callable_=lambda: value(current_school()), type_=Text())


def service_address() -> BindParameter[str]:
    """The address of the service, for links."""
    return bindparam("service_address", callable_=lambda: request_context().service_address(), type_=Text())


def one_row() -> FromClause:
    """Make a table of one row, for an outer join with a table that may be empty."""
    return select(literal_column("1").label("one")).subquery("nothing")


def array_of(row: Any, *order: Any) -> Any:
    """Gather the rows of a query as an array of JSON, in order if one is given."""
    rows = aggregate_order_by(row, *order) if order else row
    return func.coalesce(func.json_agg(rows, type_=JSON), literal_column("'[]'::json", JSON()))


def json_object(**members: Any) -> ColumnElement[Any]:
    """Make a JSON object of columns, for use in a SELECT; its members have their order."""
    return func.json_build_object(*(part for member in members.items() for part in member), type_=JSON)
