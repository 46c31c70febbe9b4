"""The table of subjects on a report card, made of the card's document: its columns, and their cells."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from school_service.printing.wording import NOT_THERE, Document, Words, words

_EM = 0.62  # of a digit of Noto Sans, and a little room
_WIDEST = 7.0  # ems: longer cells have several lines
_LONGEST = {"grade": 4, "remark": 11}  # characters of a word that fit into columns where there are many
_SHARES = {"Subject": (28, 38), "Remark": (13, 22)}  # of the columns of texts, at least and at most
_STRONG, _TEXTS = {"percent", "cumulative"}, {"name", "remark"}
_OF_TERM = {"ca_total"}  # members with a sign where a subject of the term has none


class CardColumn(NamedTuple):
    """A column of the table of subjects: two lines of its heading, the group it is in, its cells, how it stands."""

    heading: str
    below: str
    group: str
    cells: list[str | Words]
    strong: bool = False
    text: bool = False


def table_of(columns: Sequence[Document], subjects: Sequence[Document]) -> list[CardColumn]:
    """Compose the table of a document: `columns` are among its keys."""
    return [
        CardColumn(
            column["heading"],
            column["below"],
            column["group"],
            [_cell(column["member"], subject) for subject in subjects],
            strong=column["member"] in _STRONG,
            text=column["member"] in _TEXTS,
        )
        for column in columns
    ]


def teachers_of(subject: Document) -> Words | None:
    """Write the teachers of a subject, as they stand below its name."""
    return words(", ".join(subject["teachers"] or ()))


def _cell(member: str, subject: Document) -> str | Words:
    """Write a member of a subject."""
    name, _, part = member.partition(".")
    if name in {"name", "grade", "remark"}:
        return (words(subject[name], _LONGEST[name]) if name in _LONGEST else words(subject[name])) or ""
    if name in {"total", "percent", "position"}:
        text: str = subject[f"{name}_text"]
        return text
    if name == "marks":
        return next((mark["text"] for mark in subject["marks"] or () if mark["category"] == part), "")
    if name == "class":
        return (subject["class"] or {}).get(part) or ""
    figure = subject["terms"][part] if name == "terms" else subject[name]
    if figure is None and name in _OF_TERM and subject["marks"] is None:
        return ""
    return NOT_THERE if figure is None else str(figure)


def width_of(column: CardColumn) -> float:
    """How wide a column of figures has to be for its longest line, in ems."""
    cells = [cell for cell in column.cells if isinstance(cell, str)]
    lines = [column.heading, *(line for cell in cells for line in cell.split("\n"))]
    # A cell in parts may have several lines: its words alone are to have one.
    lines += [word for cell in column.cells if isinstance(cell, list) for word in "".join(cell).split()]
    below = [0.75 * len(line) for line in column.below.split("\n")]
    return min(_EM * max(*map(len, lines), *below), _WIDEST)


def share_of(column: CardColumn) -> int:
    """The share of a column of texts in the room left by figures, beside the other: by its longest text."""
    lengths = (len(cell if isinstance(cell, str) else "".join(cell)) for cell in column.cells)
    least, most = _SHARES[column.heading]
    return min(max(least, *lengths, 0), most)
