"""JSON that a statement writes as text: quicker than json_build_object where there are many objects.

That function looks up the type of each of its arguments anew in each row, which takes several times as long as to join
texts. What is written here has its form, byte for byte. A column that is such a text is of the type `JsonText`. Cast to
JSON or JSONB it is read once, to see that it is valid: so do that where all is put together.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import JSON, Boolean, Integer, Numeric, Text, cast, func, literal_column, type_coerce
from sqlalchemy.dialects.postgresql import aggregate_order_by


class JsonText(Text):
    """The type of a text that is JSON."""


def object_of(begun: Any = None, /, **members: Any) -> Any:
    """Write an object of columns: numbers, truth values, texts, ids, and JSON. Null is null.

    `begun` is an object, not empty, whose members come first.
    """
    parts: list[Any] = []
    written = (
        _constant("{")
        if begun is None
        else func.left(_written(begun), -1, type_=Text()).concat(_constant(", "))
    )
    for number, (name, value) in enumerate(members.items()):
        written = written.concat(_constant(f'{", " if number else ""}"{name}" : '))
        shown = func.coalesce(_written(value), _constant("null"))
        if isinstance(value.type, JsonText):
            # Long: each || copies what is before it.
            parts += [written, shown]
            written = _constant("")
        else:
            written = written.concat(shown)
    written = written.concat(_constant("}"))
    return type_coerce(func.concat(*parts, written) if parts else written, JsonText)


def array_of(document: Any, *order: Any) -> Any:
    """Gather documents as an array, in order; null where there are none."""
    joined: Any = func.string_agg(document, aggregate_order_by(_constant(", "), *order), type_=Text())
    return type_coerce(_constant("[").concat(joined).concat(_constant("]")), JsonText)


def as_json(document: Any) -> Any:
    """Make JSON of a text; other columns stay as they are."""
    return cast(document, JSON) if isinstance(document.type, JsonText) else document


def _written(value: Any) -> Any:
    if isinstance(value.type, JsonText):
        return value
    if isinstance(value.type, (Boolean, Integer, Numeric, JSON)):
        return cast(value, Text)
    return cast(func.to_json(value), Text)


def _constant(text: str) -> Any:
    return literal_column(f"'{text}'", Text())


NO_TEXTS: Any = type_coerce(_constant("[]"), JsonText)
"""An array without elements."""
