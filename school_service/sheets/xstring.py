"""Characters that XML can't carry, as Excel writes them: `_x0001_` (ECMA-376, ST_Xstring)."""

from __future__ import annotations

import re

_ESCAPED = re.compile(r"_x([0-9A-Fa-f]{4})_")
# What XML 1.0 does not allow, a carriage return (which it turns into a line feed), and the start of what
# would look like such an escape.
_TO_ESCAPE = re.compile(r"[\x00-\x08\x0b-\x1f\ud800-\udfff\ufffe\uffff]|_(?=x[0-9A-Fa-f]{4}_)")


def escape(text: str) -> str:
    """Escape what XML can't carry."""
    if text.isprintable() and "_x" not in text:
        return text  # as nearly all are: to look closer takes longer
    return _TO_ESCAPE.sub(lambda found: f"_x{ord(found[0]):04X}_", text)


def unescape(text: str) -> str:
    """Read a cell's text; an escape of what is no character (NUL, half of a pair) stays as it is."""
    return _ESCAPED.sub(lambda found: _character(int(found[1], 16)) or found[0], text)


def _character(number: int) -> str | None:
    return None if number == 0 or 0xD800 <= number <= 0xDFFF else chr(number)
