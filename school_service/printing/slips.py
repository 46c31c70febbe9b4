"""Slips of invitations: their texts by place, ten on a page, one for each person to cut out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

from school_service.printing.table_fit import letters_width, pieces_of
from school_service.printing.wording import long_date, words

# How large a text is set, in points, by how many characters it has at most, and how many of a word fit into a line.
_SIZES = ((36, 10.5, 20), (90, 8.0, 26), (10_000, 5.0, 30))
_OF_SCHOOL = ((80, 7.0, 30), (10_000, 5.0, 30))
_LINE = 240.0  # points
_BESIDE_CODE = 158.0  # points of a line beside the code to scan
_SIZE, _SMALLEST = 6.8, 3.0  # points, of an address: it stands in one line

_SCAN = "Scan the code with a telephone, or type it at the address below. Then choose a password of your own."
_TYPE = "Type the code where you are asked for it when you sign in, and choose a password of your own."


def compose_slips(
    slips: Sequence[Mapping[str, Any]], *, school: str, title: str, address: str | None, time_zone: str
) -> dict[str, Any]:
    """Compose slips, in their order: texts alone, by their places in the template.

    Each slip has `name`, `class` (or null), `username`, `code`, `url` (or null) and `expires_at`. `address` is the
    address of the page for typing the code, None if there is no such page; days and times are in the time zone.
    """
    return {
        "title": title,
        "author": school,
        **_sized("school", school, _OF_SCHOOL),
        "instructions": _TYPE if address is None else _SCAN,
        "address": address,
        "address_size": None if address is None else _size_in_line(address),
        "slips": [_slip(slip, time_zone) for slip in slips],
    }


def _size_in_line(address: str) -> float:
    """The size at which an address fits into a line, so that nobody types it from two lines."""
    return round(max(min(_SIZE, _LINE / letters_width(address)), _SMALLEST), 2)


def _slip(slip: Mapping[str, Any], time_zone: str) -> dict[str, Any]:
    until = datetime.fromisoformat(slip["expires_at"]).astimezone(ZoneInfo(time_zone))
    return {
        **_sized("name", slip["name"], _SIZES),
        **_sized("username", slip["username"], _SIZES),
        "class": words(slip["class"]),
        "code": slip["code"],
        "url": slip["url"],
        "until": f"{long_date(until.isoformat())}, {until:%H:%M}",
    }


def _sized(name: str, text: str, sizes: Sequence[tuple[int, float, int]]) -> dict[str, Any]:
    """Set a text the smaller the longer it is: the texts below it keep their places.

    A line ends within a word only if a part of the word, between its hyphens, is longer than the line.
    """
    size, longest = next((size, longest) for most, size, longest in sizes if len(text) <= most)
    widest = max((letters_width(piece, bold=True) * size for piece in pieces_of(text)), default=0)
    divided = words(text, longest=longest if widest > _BESIDE_CODE else len(text))
    return {name: divided, f"{name}_size": size}
