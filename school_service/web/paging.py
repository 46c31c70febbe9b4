"""Pages of lists: their parameters in a query, and the envelope of their answers."""

from __future__ import annotations

from functools import cache
from typing import Any

import marshmallow as ma
from marshmallow import fields

from school_service.web.fields import QueryInteger
from school_service.web.schemas import RecordSchema, Schema, described, list_of

MAX_PAGE_SIZE = 1000
DEFAULT_PAGE_SIZE = 50
MAX_PAGE_NUMBER = 2**31 - 1


def _page_number(name: str) -> QueryInteger:
    return described(QueryInteger, "Zero-indexed.", 0, MAX_PAGE_NUMBER, data_key=name, load_default=0)


def _page_size(name: str) -> QueryInteger:
    described = {"description": "How many records a page holds."}
    return QueryInteger(1, MAX_PAGE_SIZE, data_key=name, load_default=DEFAULT_PAGE_SIZE, metadata=described)


class PageSchema(Schema):
    """The number of a page of a list, zero-indexed, and its size."""

    number = _page_number("pageNumber")
    size = _page_size("pageSize")


class BarePageSchema(Schema):
    """The number of a page of a list without an envelope, zero-indexed, and its size."""

    number = _page_number("page")
    size = _page_size("size")


@cache
def envelope(schema: type[ma.Schema]) -> type[ma.Schema]:
    """Make the schema of the paged envelope; once for each, since the document names a schema once."""
    members: dict[str, fields.Field[Any]] = {
        "page_number": described(fields.Integer, "Zero-indexed."),
        "page_size": fields.Integer(),
        "total_pages": fields.Integer(),
        "total": described(fields.Integer, "All matching records."),
        "data": list_of(schema),
    }
    return RecordSchema.from_dict(members, name=f"{schema.__name__.removesuffix('Schema')}PageSchema")
