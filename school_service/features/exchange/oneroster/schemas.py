"""Schemas of the exchange."""

from __future__ import annotations

from school_service.web.fields import sought_text
from school_service.web.schemas import Schema


class ExportQuery(Schema):
    """What is exported."""

    session = sought_text(
        required=False,
        metadata={"description": "The academic session's id or its name; by default the current one."},
    )
