"""How a sheet of a workbook is described: its layout, shared with others, and its content.

A layout is made of named tuples: they are compared fast, and the frame of a workbook is found by its layouts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Literal, NamedTuple


@dataclass(frozen=True, slots=True)
class Marked:
    """A number or a text to be seen at once: its column has another style for such."""

    value: Decimal | str


Value = str | int | float | Decimal | Marked | date | None


class CellStyle(NamedTuple):
    """How a cell looks, and whether it may be changed if its sheet is protected. Colours are written as RRGGBB.

    `closing` lines are those around, with a thicker one on the right. An `upwards` text is read from the bottom to the
    top.
    """

    number_format: str = "General"
    bold: bool = False
    italic: bool = False
    size: int = 11  # points
    colour: str | None = None
    fill: str | None = None
    lines: Literal["below", "around", "closing"] | None = None
    horizontal: Literal["center"] | None = None
    vertical: Literal["top", "center"] | None = None
    wrapped: bool = False
    locked: bool = True
    upwards: bool = False


class ColumnStyles(NamedTuple):
    """How the cells of a column look, by their content: `whole` is for whole numbers, and for nothing."""

    text: CellStyle
    number: CellStyle
    whole: CellStyle
    day: CellStyle
    marked: CellStyle


class ColumnRule(NamedTuple):
    """The values allowed in a column (the first is 1), as OOXML says it; a list without `error` is a suggestion."""

    column: int
    kind: Literal["decimal", "whole", "date", "list", "custom"]
    operator: Literal["between", "greaterThan"] | None
    first: str
    second: str | None = None
    error: str | None = None
    title: str | None = None


class Protected(NamedTuple):
    """Locked cells can't be changed; the widths of columns may be, and the order of rows, if that is said."""

    resized: bool = False
    sorted: bool = False


class Page(NamedTuple):
    """How a sheet is printed: one page wide, and as long as it has to be.

    `margins` are those above and below, in inches, beside narrow ones; None are the margins of the program. The first
    `repeated_columns` are printed on each page. With a `scale`, in percent, it is as many pages wide as needed, and
    each ends after one of the columns `breaks` (the first is 1). `signed_by`: titles of the signers at the foot of each
    page.
    """

    landscape: bool
    a3: bool = False
    margins: tuple[float, float] | None = None
    grid: bool = False
    repeated_columns: int = 0
    scale: int = 0
    breaks: tuple[int, ...] = ()
    signed_by: tuple[str, ...] = ()


class SheetLayout(NamedTuple):
    """The layout of a sheet: its frame depends on this alone.

    `styles` are those of the columns, for each of the sheet's `Rows` in their order. The row of the `header` and the
    rows above it stay when the rows below scroll, and are printed on each page; 0: there is none. A header of several
    `header_rows` ends with this row. So do the first `frozen_columns`. `new_cells` are the styles of cells not yet
    written, by column; without them such cells have no style. A `hidden` sheet is not shown, nor printed. The first
    sheet's `font` is the workbook's; the widths of columns are counted in its digits.
    """

    title: str
    styles: tuple[tuple[ColumnStyles, ...], ...]
    page: Page
    header: int = 0
    frozen_columns: int = 0
    new_cells: tuple[CellStyle, ...] = ()
    rules: tuple[ColumnRule, ...] = ()
    protected: Protected | None = None
    hidden: bool = False
    header_rows: int = 1
    font: str = "Calibri"


class Rows(NamedTuple):
    """Rows of one look, and their content.

    `lines_of` tells how many lines a text takes in a column of so many characters: not every program finds the height
    of a row. `height` is the height of the row in points, if its texts do not need more.
    """

    values: Iterable[Sequence[Value]]
    lines_of: Callable[[str, float], int] | None = None
    height: int = 0
    hidden: bool = False


@dataclass(frozen=True, slots=True)
class Sheet:
    """A sheet: its layout, how many characters wide its columns are, its rows, and how far its rules reach.

    `page_header` are the texts at the top of each printed page, left and right. `merged` are ranges of cells shown as
    one, such as E4:N4, of a sheet without protection.
    """

    layout: SheetLayout
    widths: Sequence[float]
    rows: Sequence[Rows]
    last_row_of_rules: int = 0
    page_header: tuple[str, str] = ("", "")
    merged: Sequence[str] = ()


def styled_alike(style: CellStyle) -> ColumnStyles:
    """Give the styles of a column with cells of one look, for any content."""
    return ColumnStyles(style, style, style, style, style)
