"""Read models rendered by PostgreSQL: one statement answers the finished JSON, and its bytes go out untouched.

As PostgREST does it. A read model is a select() whose columns bear the names of its schema's fields; one decorated
with `read_model` is compiled once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flask import Response, current_app
from sqlalchemy import Integer, Select, Text, bindparam, cast, func, literal_column, select
from sqlalchemy.sql import ClauseElement

from school_service.core.database import db
from school_service.core.read_models import Query, Reading, Statement
from tenants.connections.engines import ask

READS = (Select, Reading)
NO_ROWS = "[]"


def _row_as_json() -> Any:
    return func.row_to_json(literal_column("answer"))


def _rows_as_json() -> Any:
    return func.coalesce(func.json_agg(_row_as_json()), literal_column(f"'{NO_ROWS}'::json"))


def _one(query: Query) -> ClauseElement:
    return select(cast(_row_as_json(), Text)).select_from(query.subquery("answer"))


def _list(query: Query) -> ClauseElement:
    return select(cast(_rows_as_json(), Text)).select_from(query.subquery("answer"))


def _given(name: str) -> Any:
    return bindparam(name, type_=Integer(), required=True)


def _part(query: Query) -> Any:
    return query.limit(_given("page_size")).offset(_given("page_offset")).subquery("answer")


def _part_of_list(query: Query) -> ClauseElement:
    return select(cast(_rows_as_json(), Text)).select_from(_part(query))


def _page(query: Query) -> ClauseElement:
    number, size = _given("page_number"), _given("page_size")
    counted = (
        query.with_only_columns(func.count().label("total"), maintain_column_froms=True)
        .order_by(None)
        .subquery("counted")
    )
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
        select(_rows_as_json()).select_from(_part(query)).scalar_subquery(),
    )
    return select(cast(envelope, Text))


def _render(read: Query | Reading, make: Callable[[Query], ClauseElement], **values: Any) -> Any:
    connection = db.session.connection()
    if isinstance(read, Reading):
        statement, given = read.shape.statement(make.__name__, make), {**read.values, **values}
    else:
        statement, given = Statement(make(read)), values
    answer = ask(connection, statement.sql, statement.parameters(given))
    return None if answer is None else next(iter(answer.values()))


def render_one(read: Query | Reading) -> str | None:
    """Render the single row of a read model as a JSON object; None where there is no row."""
    found: str | None = _render(read, _one)
    return found


def render_list(read: Query | Reading) -> str:
    """Render the rows of a read model as a JSON array."""
    return str(_render(read, _list))


def render_page(read: Query | Reading, *, number: int, size: int) -> str:
    """Render a page of a read model in the paged envelope, with the total of all its rows."""
    return str(_render(read, _page, page_number=number, page_size=size, page_offset=number * size))


def render_part_of_list(read: Query | Reading, *, number: int, size: int) -> str:
    """Render a page of the rows of a read model as a JSON array."""
    return str(_render(read, _part_of_list, page_size=size, page_offset=number * size))


def json_response(body: str | bytes) -> Response:
    """Answer JSON that is already written."""
    return Response(body, mimetype="application/json")


def object_response(answer: Any) -> Response:
    """Answer an object, written as JSON."""
    return json_response(current_app.json.dumps(answer))
