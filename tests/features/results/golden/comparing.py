"""Comparing readings with the golden files."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from itertools import zip_longest
from typing import Any, NamedTuple

ACT, ANSWER, DOCUMENT, PAPER = ("act", "answer", "document", "paper")
"""Kinds of readings: JSON that answers an act or a GET; a document as it is stored; the text of a paper or workbook."""

NEIGHBOURS = 12  # tokens before and after the first that differs
_NOTHING = "(nothing)"


class Reading(NamedTuple):
    """Something that was read.

    The name tells the moment, the reader and the address. `about` is the status of the answer with the name of a file,
    or the columns beside a stored document.
    """

    name: str
    kind: str
    about: str
    text: str


class _Written(str):
    """A number as it is written."""


def differences(expected: Sequence[Reading], actual: Sequence[Reading]) -> list[str]:
    """Name the readings that differ, each with its first differing token and those around it.

    A stored document is the same byte for byte, an answer token by token: numbers as they are written, members and
    elements in their order, white space aside; on paper and in workbooks words count.
    """
    before, now = ({reading.name: reading for reading in readings} for readings in (expected, actual))
    missing = [f"{name}: is read no more" for name in before if name not in now]
    new = [f"{name}: was not read before" for name in now if name not in before]
    order = [] if missing or new or [*before] == [*now] else ["The readings are in another order."]
    pairs = ((name, _difference(reading, now[name])) for name, reading in before.items() if name in now)
    return [*missing, *new, *order, *(f"{name}: {how}" for name, how in pairs if how)]


def _difference(before: Reading, now: Reading) -> str | None:
    """Tell how a reading differs from the one before; None where it does not."""
    if before == now:
        return None
    of_before, of_now = [*tokens(before)], [*tokens(now)]
    for place, (old, new) in enumerate(zip_longest(of_before, of_now)):
        if old != new:
            return (
                f"token {place} is {_NOTHING if new is None else new}, and was {_NOTHING if old is None else old}\n"
                f"  was  {_around(of_before, place)}\n"
                f"  is   {_around(of_now, place)}"
            )
    return None


def _around(of: Sequence[str], place: int) -> str:
    shown = of[max(0, place - NEIGHBOURS) : place + NEIGHBOURS + 1]
    here = min(place, NEIGHBOURS)
    return " ".join([*shown[:here], ">>>", *shown[here : here + 1], "<<<", *shown[here + 1 :]])


def tokens(reading: Reading) -> Iterator[str]:
    """Give the tokens that are compared of a reading."""
    yield reading.kind
    yield from reading.about.split()
    if reading.kind in (ACT, ANSWER):
        yield from _of_json(
            json.loads(reading.text, parse_float=_Written, parse_int=_Written, object_pairs_hook=_Members)
        )
    elif reading.kind == DOCUMENT:
        yield from re.findall(r'"(?:[^"\\]|\\.)*"|[\w.+-]+|\s+|.', reading.text)
    else:
        yield from _UNREAD.sub("ṣe", reading.text).split()


# The font has no character for this letter: pypdf reads the number of its glyph in the file. It depends on the papers
# printed before by the same process.
_UNREAD = re.compile(r"\bs[A-Z]e\b")


class _Members(list[tuple[str, Any]]):
    """The members of an object, in their order."""


def _of_json(value: Any) -> Iterator[str]:
    if isinstance(value, _Members):
        yield "{"
        for name, member in value:
            yield json.dumps(name, ensure_ascii=False)
            yield from _of_json(_by_name(member) if name == "results" else member)
        yield "}"
    elif isinstance(value, list):
        yield "["
        for element in value:
            yield from _of_json(element)
        yield "]"
    else:
        yield value if isinstance(value, _Written) else json.dumps(value, ensure_ascii=False)


def _by_name(member: Any) -> Any:
    """Sort a student's results on a broadsheet: an object by the ids of subjects, whose members have no order."""
    return _Members(sorted(member)) if isinstance(member, _Members) else member
