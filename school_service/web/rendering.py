"""Read models rendered by PostgreSQL: one statement returns the finished JSON, and its bytes go out untouched.

As PostgREST does it. A read model is a select() with columns named as the fields of its schema; one decorated with
`read_model` is compiled once.
"""

from __future__ import annotations

from binascii import a2b_base64
from collections.abc import Mapping
from functools import cache, partial
from typing import Any, NamedTuple

import orjson
from flask import Response
from sqlalchemy import (
    Alias,
    Column,
    FromClause,
    Integer,
    Join,
    ScalarSelect,
    Select,
    Table,
    Text,
    bindparam,
    case,
    cast,
    func,
    join,
    literal_column,
    select,
)
from sqlalchemy.sql import ClauseElement
from sqlalchemy.sql.operators import eq, getitem

from school_service.core.database import (
    current_application,
    current_reach,
    current_session,
    db,
    request_context,
)
from school_service.core.exact_json import write_json
from school_service.core.reach import Reach, refuse_unjudged
from school_service.core.read_models import BoundQuery, CompiledStatement, Made, MadeTogether, Query, Wrapper
from school_service.core.shares import computing
from tenants.connections.statements import SEPARATOR, Texts, write

QUERY_TYPES = (Select, BoundQuery, Made)


class Rendered(NamedTuple):
    """Rows as JSON in UTF-8, whole or in portions, and whether there are none."""

    body: bytes | list[bytes]
    empty: bool


def _row_as_json() -> Any:
    return func.row_to_json(literal_column("answer"))


def _rows_as_json() -> Any:
    return func.coalesce(func.json_agg(_row_as_json()), literal_column("'[]'::json"))


def _record(query: Query) -> ClauseElement:
    row = cast(_row_as_json(), Text).label("body")
    return select(row, literal_column("NULL::boolean").label("empty")).select_from(query.subquery("answer"))


def _content(query: Query) -> ClauseElement:
    content = func.encode(literal_column("answer.content"), literal_column("'base64'"))
    return select(content.label("body"), literal_column("NULL::boolean").label("empty")).select_from(
        query.subquery("answer")
    )


def _required(name: str) -> Any:
    return bindparam(name, type_=Integer(), required=True)


def _page_of(query: Query) -> Any:
    page = query.limit(_required("page_size")).offset(_required("page_offset"))
    return _looked_up_once(page).subquery("answer")


def _looked_up_once(page: Query) -> Query:
    """Let a subquery with an array for several columns be run once for each row of a page.

    PostgreSQL would run it for each of the columns. It takes none out of a limited query.
    """
    columns = {column: _array_of(column) for column in page.selected_columns}
    arrays = {
        array: f"array_{number}"
        for number, array in enumerate(dict.fromkeys(columns.values()))
        if array is not None
    }
    if not arrays:
        return page
    looked_up = [array.label(name) for array, name in arrays.items()]
    others = [column for column, array in columns.items() if array is None]
    rows = page.with_only_columns(*others, *looked_up, maintain_column_froms=True).subquery("found")
    return select(
        *(
            rows.c[column.name]
            if array is None
            else rows.c[arrays[array]][column.element.right].label(column.name)
            for column, array in columns.items()
        )
    )


def _array_of(column: Any) -> Any:
    """Find the subquery of an array with a column as its element; None for any other column."""
    element = getattr(column, "element", None)
    array = getattr(element, "left", None)
    is_element = getattr(element, "operator", None) is getitem and isinstance(array, ScalarSelect)
    return array if is_element else None


def _bare_page(query: Query) -> ClauseElement:
    empty = (func.count() == 0).label("empty")
    return select(cast(_rows_as_json(), Text).label("body"), empty).select_from(_page_of(query))


def _page(query: Query) -> ClauseElement:
    number, size = _required("page_number"), _required("page_size")
    total = select(func.count().label("total")).select_from(*map(_as_counted, query.get_final_froms()))
    if query.whereclause is not None:
        total = total.where(query.whereclause)
    return _envelope(number, size, total.subquery("counted"), _page_of(query))


def _as_counted(joined: FromClause) -> FromClause:
    """Make outer joins of joins to exactly one row: PostgreSQL leaves out such a join if nothing of it is asked.

    Such as the join to a student's user, for the names shown.
    """
    if not isinstance(joined, Join):
        return joined
    outer = joined.isouter or _finds_one(joined)
    return join(_as_counted(joined.left), joined.right, joined.onclause, isouter=outer, full=joined.full)


def _finds_one(joined: Join) -> bool:
    """Tell whether a join is by a foreign key, never null, to the key of a table: of all of its rows."""
    table = joined.right.element if isinstance(joined.right, Alias) else joined.right
    sides = getattr(joined.onclause, "left", None), getattr(joined.onclause, "right", None)
    if not isinstance(table, Table) or getattr(joined.onclause, "operator", None) is not eq:
        return False
    return any(
        isinstance(key, Column)
        and isinstance(reference, Column)
        and joined.right.c.contains_column(key)
        and not reference.nullable
        and reference.references(key)
        for key, reference in (sides, sides[::-1])
    )


def _first_page(query: Query) -> ClauseElement:
    """Write the first page of few rows: its total is counted as they are found, in place of once more."""
    page = query.add_columns(func.count().over().label(_TOTAL)).limit(_required("page_size")).cte("found")
    counted = select(func.coalesce(func.max(page.c[_TOTAL]), 0).label("total")).subquery("counted")
    rows = select(*(column for column in page.c if column.name != _TOTAL)).subquery("answer")
    return _envelope(_required("page_number"), _required("page_size"), counted, rows)


# A column beside those of a read model.
_TOTAL = "total of all pages"


def _envelope(number: Any, size: Any, counted: Any, answer: Any) -> ClauseElement:
    envelope = func.json_build_object(
        "page_number",
        number,
        "page_size",
        size,
        "total_pages",
        (counted.c.total + size - 1) // size,
        "total",
        counted.c.total,
        "data",
        select(_rows_as_json()).select_from(answer).scalar_subquery(),
    )
    return select(cast(envelope, Text).label("body"), (counted.c.total == 0).label("empty"))


def _render(query: Query | BoundQuery, wrap: Wrapper, **page: int) -> Texts:
    read = request_context().read
    if read is not None:
        return read(partial(_text, query, wrap, page))
    connection = current_session().bound_connection()
    if isinstance(query, BoundQuery):
        batch, parameters = query.batch(wrap, **page)
    else:
        batch, parameters = _text(query, wrap, page, current_reach())
    return write(connection, batch, parameters, texts=True)


def _text(
    query: Query | BoundQuery, wrap: Wrapper, page: dict[str, int], reach: Reach | None
) -> tuple[str, tuple[Any, ...]]:
    if isinstance(query, BoundQuery):
        if reach is not None and wrap is _page and page["page_number"] == 0:
            wrap = _first_page
        return query.text(wrap, reach, **page)
    if reach is not None:
        refuse_unjudged(str(query))
    statement = CompiledStatement(wrap(query))
    return statement.sql, statement.parameters(page)


def _render_rows(read: Query | BoundQuery, wrap: Wrapper, **page: int) -> Rendered:
    rendered = _render(read, wrap, **page)
    return Rendered(rendered.portions[0], rendered.empty)


@cache
def _one_without_null(name: str) -> Wrapper:
    """Make the wrapper of a row without its column of this name if it is null."""

    def wrap(query: Query) -> ClauseElement:
        answer = query.subquery("answer")
        others = (part for column in answer.c if column.name != name for part in (column.name, column))
        body = case((answer.c[name].is_(None), func.json_build_object(*others)), else_=_row_as_json())
        row = cast(body, Text).label("body")
        return select(row, literal_column("NULL::boolean").label("empty")).select_from(answer)

    return wrap


def _render_made(made: Made) -> Any:
    """Make an answer of the row of its read model; None if there is no row, or nothing to be shown.

    A read by itself has given its connection back, a read in a read-only transaction ends the transaction: then a turn
    is waited for. A writing transaction takes no turn: it holds locks, and the turn of another may wait for them.
    """
    rendered = _render(made.read, _record)
    if rendered.empty:
        return None
    context = request_context()
    if not context.binding.read_only:
        return made.of(rendered.portions[0])
    if db.session.registry.has():
        db.session.rollback()
    with computing.of(context.school_id):
        return made.of(rendered.portions[0])


def _made_together(made: MadeTogether) -> list[Any]:
    """Make a list of the rows of its parts, read in a read-only transaction, which ends: then a turn is waited for."""
    rows = made.fetch()
    db.session.rollback()
    with computing.of(request_context().school_id):
        return made.of(rows)


def render_one(read: Query | BoundQuery | Made, *, without_null: str | None = None) -> bytes | None:
    """Render the single row of a read model as a JSON object; None if there is no row.

    `without_null` names a member to leave out if it is null.
    """
    if isinstance(read, Made):
        answer = _render_made(read)
        return None if answer is None else write_json(answer)
    rendered = _render(read, _record if without_null is None else _one_without_null(without_null))
    return None if rendered.empty else rendered.portions[0]


def with_members(body: bytes, members: Mapping[str, Any] | None) -> bytes:
    """Write members behind those of a JSON object."""
    if not members:
        return body
    return body.rstrip()[:-1] + b"," + orjson.dumps(members)[1:]


def render_bytes(read: Query | BoundQuery) -> bytes | None:
    """Read the bytes in `content`, the column of the single row of a read model; None if there is no row."""
    rendered = _render(read, _content)
    return None if rendered.empty else a2b_base64(rendered.portions[0])


def render_list(read: Query | BoundQuery | Made | MadeTogether) -> Rendered:
    """Render the rows of a read model as a JSON array.

    There may be very many: each is a row of the result, and portions of the array are handed on as they are. One text
    of them all, as of a page, would be several times in memory, and PostgreSQL has no text of more than 1 GB.
    """
    if isinstance(read, Made | MadeTogether):
        listed = (_render_made(read) or []) if isinstance(read, Made) else _made_together(read)
        return Rendered([write_json(listed)], empty=not listed)
    portions, empty, _ = _render(read, _record)
    if empty:
        return Rendered(b"[]", empty=True)
    # In place, so that no second list of them all is made.
    for number in range(len(portions)):
        portions[number] = (SEPARATOR if number else b"[") + portions[number]
    portions[-1] += b"]"
    return Rendered(portions, empty=False)


def render_page(read: Query | BoundQuery, *, number: int, size: int) -> Rendered:
    """Render a page of a read model in the paged envelope, with the total of all its rows.

    It is empty if there are no rows at all; a page past the end is not.
    """
    return _render_rows(read, _page, page_number=number, page_size=size, page_offset=number * size)


def render_bare_page(read: Query | BoundQuery, *, number: int, size: int) -> Rendered:
    """Render a page of the rows of a read model as a JSON array."""
    return _render_rows(read, _bare_page, page_size=size, page_offset=number * size)


class JsonAnswer:
    """JSON rendered by PostgreSQL, as a view answers it with status 200: the needed parts of a Response, and no more.

    `portions` are its bytes.
    """

    __slots__ = ("portions",)

    def __init__(self, body: bytes | list[bytes]) -> None:
        self.portions = [body] if isinstance(body, bytes) else body

    @property
    def fields(self) -> tuple[tuple[str, str], ...]:
        """The header fields of its own."""
        return (_JSON, ("Content-Length", str(sum(map(len, self.portions)))))

    def to_response(self) -> Response:
        """Make the Response, for functions looking at answers."""
        return json_response(self.portions)


_JSON = ("Content-Type", "application/json")


def json_response(body: str | bytes | list[bytes]) -> Response:
    """Answer JSON already written, whole or in portions."""
    return Response(body, mimetype="application/json")


def object_response(answer: Any) -> Response:
    """Answer an object, written as JSON."""
    return json_response(current_application().json.dumps(answer))
