"""orjson as Flask's JSON provider."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import orjson
from flask.json.provider import JSONProvider

_OPTIONS = orjson.OPT_NON_STR_KEYS | orjson.OPT_UTC_Z


class OrjsonProvider(JSONProvider):
    """Writes and reads with orjson; request bodies are read by `web.body_parser`, which keeps decimals exact."""

    def dumps(self, obj: Any, **_options: Any) -> str:
        """Write JSON text."""
        try:
            return orjson.dumps(obj, default=_plain, option=_OPTIONS).decode()
        except orjson.JSONEncodeError:
            # An error may have to repeat a name with a lone surrogate: what is no character is shown as "?".
            return json.dumps(obj, default=_plain, ensure_ascii=False).encode(errors="replace").decode()

    def loads(self, s: str | bytes, **_options: Any) -> Any:
        """Read JSON text."""
        return orjson.loads(s)


def _plain(value: Any) -> Any:
    """Write what JSON does not know: decimals (of at most 15 digits) as numbers, all else as text."""
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    return str(value)
