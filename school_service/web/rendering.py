"""Read models rendered by PostgreSQL: one statement answers the finished JSON, and its bytes go out untouched.

A read model is a select() whose columns bear the names of its schema's fields (design: as PostgREST does it).
"""

from __future__ import annotations

from typing import Any

from flask import Response
from sqlalchemy import Select, Text, cast, func, literal_column, select

from school_service.extensions import db

Query = Select[Any]


def _row_as_json() -> Any:
    return func.row_to_json(literal_column("answer"))


def _rows_as_json() -> Any:
    return func.coalesce(func.json_agg(_row_as_json()), literal_column("'[]'::json"))


def render_one(query: Query) -> str | None:
    """Render the single row of a read model as a JSON object; None where there is no row."""
    answer = query.subquery("answer")
    return db.session.execute(select(cast(_row_as_json(), Text)).select_from(answer)).scalar_one_or_none()


def render_list(query: Query) -> str:
    """Render the rows of a read model as a JSON array."""
    answer = query.subquery("answer")
    return str(db.session.execute(select(cast(_rows_as_json(), Text)).select_from(answer)).scalar_one())


def render_page(query: Query, *, number: int, size: int) -> str:
    """Render a page of a read model in the paged envelope, with the total of all its rows."""
    total = query.with_only_columns(func.count().label("total"), maintain_column_froms=True).order_by(None)
    counted = total.subquery("counted")
    answer = query.limit(size).offset(number * size).subquery("answer")
    rows = select(_rows_as_json()).select_from(answer).scalar_subquery()
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
        rows,
    )
    return str(db.session.execute(select(cast(envelope, Text))).scalar_one())


def json_response(body: str | bytes) -> Response:
    """Answer JSON that is already written."""
    return Response(body, mimetype="application/json")
