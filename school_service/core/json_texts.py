"""JSON that a statement writes as text: quicker than json_build_object where there are many objects.

That function looks up the type of each of its arguments anew in each row, which takes several times as long as to join
texts. What `object_of` writes has its form, byte for byte; what `jsonb_object_of` writes is to be read as JSONB. Such a
text is a column of the type `JsonText`. Cast to JSON or JSONB it is read once, to see that it is valid: do that where
all is put together.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from sqlalchemy import JSON, Boolean, Integer, Numeric, Text, Uuid, cast, func, literal_column, type_coerce
from sqlalchemy.dialects.postgresql import aggregate_order_by


class JsonText(Text):
    """The type of a text that is JSON."""


def object_of(begun: Any = None, /, **members: Any) -> Any:
    """Write an object of columns: numbers, truth values, texts, ids, and JSON. Null is null.

    `begun` is an object, not empty, whose members come first.
    """
    start = _constant("{")
    if begun is not None:
        start = func.left(_written(begun), -1, type_=Text()).concat(_constant(", "))
    return _joined(start, members.items(), comma=", ", colon=" : ", end=_constant("}"))


def whole_object_of(**members: Any) -> Any:
    """Write an object as `object_of` does, of columns of which none is ever null.

    It is one call for each object, which PostgreSQL plans in less time than as many operators.
    """
    parts: list[Any] = []
    before = "{"
    for name, value in members.items():
        quote = '"' if isinstance(value.type, Uuid) else ""
        written = value if quote or isinstance(value.type, (Integer, Numeric)) else _written(value)
        parts += [_constant(f'{before}"{name}" : {quote}'), written]
        before = f"{quote}, "
    return type_coerce(func.concat(*parts, _constant(before.removesuffix(", ") + "}")), JsonText)


def jsonb_object_of(more: Any = None, /, **members: Any) -> Any:
    """Write an object as `object_of` does, for a text that is read as JSONB: without spaces, the members in its order.

    JSONB sorts members by the length of their names, then by their bytes, which takes it less time where they come so.
    `more` are members, of other names, that `jsonb_members_of` has written.
    """
    end = _constant("}") if more is None else _constant(",").concat(more).concat(_constant("}"))
    return _joined(_constant("{"), _in_order_of_jsonb(members), comma=",", colon=":", end=end)


def jsonb_members_of(**members: Any) -> Any:
    """Write members of an object for `jsonb_object_of`: what many objects have in common is written once."""
    written = _joined(_constant(""), _in_order_of_jsonb(members), comma=",", colon=":", end=_constant(""))
    return type_coerce(written, Text())


def _in_order_of_jsonb(members: Mapping[str, Any]) -> list[tuple[str, Any]]:
    return sorted(members.items(), key=lambda member: (len(member[0].encode()), member[0].encode()))


def _joined(start: Any, members: Iterable[tuple[str, Any]], *, comma: str, colon: str, end: Any) -> Any:
    parts: list[Any] = []
    written = start
    for number, (name, value) in enumerate(members):
        written = written.concat(_constant(f'{comma if number else ""}"{name}"{colon}'))
        shown = func.coalesce(_written(value), _constant("null"))
        if isinstance(value.type, JsonText):
            # Long: each || copies what is before it.
            parts += [written, shown]
            written = _constant("")
        else:
            written = written.concat(shown)
    written = written.concat(end)
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
    if isinstance(value.type, Uuid):
        return _constant('"').concat(cast(value, Text)).concat(_constant('"'))
    return cast(func.to_json(value), Text)


def _constant(text: str) -> Any:
    return literal_column(f"'{text}'", Text())


NO_TEXTS: Any = type_coerce(_constant("[]"), JsonText)
"""An array without elements."""
