"""JSON with decimals keeping their places: 76.50 is read, computed with and written as 76.50, and never as a float."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import orjson


def read_json(text: bytes | str) -> Any:
    """Read JSON; a number with a point is a Decimal with the digits of the text."""
    return json.loads(text, parse_float=Decimal)


def write_json(value: Any) -> bytes:
    """Write a value as JSON in UTF-8, members in their order; Decimals with all their digits."""
    return orjson.dumps(value, default=_digits)


def written_moment(moment: datetime) -> str:
    """Write a moment as PostgreSQL writes it in JSON, in UTC: without zeros at the end of its microseconds."""
    text = moment.astimezone(UTC).replace(tzinfo=None).isoformat()
    return f"{text.rstrip('0') if '.' in text else text}+00:00"


def _digits(value: Any) -> Any:
    if isinstance(value, Decimal):
        return orjson.Fragment(str(value))
    raise TypeError(f"JSON has nothing for {type(value).__name__}.")
