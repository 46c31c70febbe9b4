"""How wide the columns of a table are, and how large its letters: no word is broken, and no text reaches into another.

Widths of letters are those of Noto Sans: a printer that measured each cell would set it twice.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from school_service.printing.card_table import CardColumn
from school_service.printing.wording import Words

# Hundredths of an em, rounded up.
_GROUPS = {
    28: " '!,.:;ijlJ", 34: "()`-I[]", 38: "f/{}", 44: "r\"?t", 48: "_csz", 50: "\N{EN DASH}", 54: "FvyLkx",
    58: "*EST|$+0123456789<=>YZ^ae~", 62: "VXPKbdghnopqu", 66: "ACR#B", 74: "&DGU", 80: "HNOQw", 94: "%@MWm",
    100: "\N{RIGHTWARDS ARROW}",
}  # fmt: skip
_WIDTHS = {letter: width for width, letters in _GROUPS.items() for letter in letters}
_OTHER = 75  # of a letter of no group
_BOLD = 1.1
_PAGE = 527.2  # points between the margins of a page
_SPARE = 1.0  # points of a column
_SMALLEST, _STEP = 5.0, 0.2  # points
_READ_EASILY = 7.0  # points: names of subjects have several lines before letters are smaller
_READ_WELL = 6.2  # points: marks have two lines before letters are smaller
_WIDEST = 15.0  # ems that a text may ask for
_BELOW = 5.8  # points, of the second line of a heading
_OF_TEACHERS = 0.82  # of the size of a subject's name
_Cell = str | tuple[str, ...]
_PIECES = re.compile(r"[^\s-]*+-|[^\s-]++")


class Fitted(NamedTuple):
    """The size of letters, the room beside each cell, and the width of each column, in points."""

    size: float
    gap: float
    widths: list[float]


class _Asked(NamedTuple):
    """How wide a column is to be, in ems: for cells of one line, and for words of one line at least."""

    whole: float
    least: float
    heading: float
    below: float
    is_text: bool


def letters_width(text: str, *, bold: bool = False) -> float:
    """How wide a text is, in ems; marks stand above and below their letters."""
    if not text.isascii():
        text = "".join(
            letter for letter in unicodedata.normalize("NFD", text) if not unicodedata.combining(letter)
        )
    return sum(_WIDTHS.get(letter, _OTHER) for letter in text) / 100 * (_BOLD if bold else 1)


def pieces_of(text: str) -> list[str]:
    """The pieces of a text between which a line may end: words, and the parts of a word with hyphens."""
    return _PIECES.findall(text)


def fit(
    columns: Sequence[CardColumn],
    cells: Sequence[Sequence[Words]],
    teachers: Sequence[Words | None],
    rows: int,
) -> Fitted:
    """Find the largest letters with which the columns stand beside each other; where there are none, the smallest.

    `cells` are those of each column, and `rows` how many stand below each other.
    """
    largest, gap = _largest(columns, rows)
    asked = [
        _widths_of(column, _distinct(of_column), _distinct(teachers) if place == 0 else ())
        for place, (column, of_column) in enumerate(zip(columns, cells, strict=True))
    ]
    room = _PAGE - len(columns) * 2 * gap
    for smallest, whole in (
        (_READ_EASILY, {True, False}),
        (_READ_WELL, {False}),
        (_SMALLEST, set[bool]()),
    ):
        size = largest
        while size >= smallest:
            widths = [_points(column, size, whole=column.is_text in whole) for column in asked]
            if sum(widths) <= room:
                return Fitted(size, gap, _shared_out(asked, widths, size, gap, room))
            size = round(size - _STEP, 1)
    widths = [_points(column, _SMALLEST, whole=False) for column in asked]
    scale = room / sum(widths)
    return Fitted(_SMALLEST, gap, [round(width * scale + 2 * gap, 2) for width in widths])


def _distinct(texts: Iterable[Words | None]) -> set[_Cell]:
    return {text if isinstance(text, str) else tuple(text) for text in texts if text is not None}


def _largest(columns: Sequence[CardColumn], rows: int) -> tuple[float, float]:
    """Few subjects are written larger than many, and few columns wider apart."""
    size = 8.6 if rows <= 10 else 8.0 if rows <= 16 else 7.2 if rows <= 30 else 7.0
    return (min(size, 6.8), 2.0) if sum(not column.text for column in columns) > 12 else (size, 3.0)


def _widths_of(column: CardColumn, cells: Iterable[_Cell], teachers: Iterable[_Cell]) -> _Asked:
    bold = column.strong
    whole = _widest((line for cell in cells for line in "".join(cell).split("\n")), bold=bold)
    least = _widest((piece for cell in cells for piece in _unbroken(cell)), bold=bold)
    of_names = _widest("".join(names) for names in teachers) * _OF_TEACHERS
    of_a_name = _widest(piece for names in teachers for piece in _unbroken(names)) * _OF_TEACHERS
    return _Asked(
        min(max(whole, of_names), _WIDEST) if column.text else whole,
        max(least, of_a_name),
        letters_width(column.heading, bold=True),
        _widest(column.below.split("\n")),
        column.text,
    )


def _widest(texts: Iterable[str], *, bold: bool = False) -> float:
    return max((letters_width(text, bold=bold) for text in texts), default=0)


def _unbroken(cell: _Cell) -> list[str]:
    """The pieces of a cell that stay in one line; an arrow is one with the figure behind it."""
    if not isinstance(cell, str):
        return [piece for part in cell for piece in pieces_of(part)]
    glued = cell.replace("\N{RIGHTWARDS ARROW} ", "\N{RIGHTWARDS ARROW}_")
    return pieces_of(glued)


def _points(asked: _Asked, size: float, *, whole: bool) -> float:
    """The width of a column at a size, for whole cells or for whole words."""
    ems = asked.whole if whole else asked.least
    return max(size * ems, size * asked.heading, _BELOW * asked.below) + _SPARE


def _shared_out(
    asked: Sequence[_Asked], widths: Sequence[float], size: float, gap: float, room: float
) -> list[float]:
    """Divide the room left among columns of texts: enough for their longest texts, and the rest to the first."""
    left = room - sum(widths)
    missing = [
        max(size * column.whole + _SPARE - width, 0) * column.is_text
        for column, width in zip(asked, widths, strict=True)
    ]
    share = min(1.0, left / sum(missing)) if any(missing) else 0.0
    given = [width + share * more for width, more in zip(widths, missing, strict=True)]
    first = room - sum(given)
    return [round(width + 2 * gap + (first if place == 0 else 0), 2) for place, width in enumerate(given)]
