"""Workbooks made to be filled in: a header in the first row, below it rows, and a sheet Details about them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from functools import cache, lru_cache
from typing import Literal

from openpyxl.utils import get_column_letter

from school_service.sheets.columns import MAX_ROWS, CellType, Column, NumberRange, SuggestedValues
from school_service.sheets.sheet_reader import DETAILS
from school_service.sheets.workbook_layout import (
    CellStyle,
    ColumnRule,
    ColumnStyles,
    Page,
    Protected,
    Rows,
    Sheet,
    SheetLayout,
    styled_alike,
)
from school_service.sheets.workbook_writer import write_sheets

MAX_WIDTH = 60  # characters; longer texts are wrapped
MAX_PORTRAIT_WIDTH = 110  # characters on a portrait page; wider sheets are printed in landscape

_FORMATS = {CellType.TEXT: "@", CellType.NUMBER: "General", CellType.DAY: "yyyy-mm-dd"}
_MARGINS = (0.9, 0.7)  # above and below a landscape page, in inches
_TEXT = CellStyle(_FORMATS[CellType.TEXT], vertical="top", wrapped=True)
_NUMBER = CellStyle(vertical="top")
_HEADING = _TEXT._replace(bold=True, fill="D9E2EC", lines="below")
_HEADING_TO_FILL = _HEADING._replace(colour="FFFFFF", fill="334E68")
_NEW_CELLS = {cell_type: CellStyle(number_format) for cell_type, number_format in _FORMATS.items()}
_DETAILS = (styled_alike(_TEXT._replace(bold=True)), styled_alike(_TEXT))

Value = str | int | float | Decimal | date | None


@dataclass(frozen=True, slots=True)
class Table:
    """A sheet with a header and rows, each a mapping from a column's name to a text, a number, a day or None.

    Without rows it is made to be filled in: the rules of its columns apply to every row to come. A `hidden` one is for
    the upload alone.
    """

    title: str
    columns: Sequence[Column]
    rows: Sequence[Mapping[str, Value]] = ()
    hidden: bool = False


def write_workbook(
    tables: Sequence[Table],
    details: Sequence[tuple[str, str]] = (),
    *,
    hidden: Sequence[tuple[str, str]] = (),
    page_header: tuple[str, str] = ("", ""),
    signed_by: str = "",
) -> bytes:
    """Write a workbook (.xlsx) of these sheets and, if given, a hidden sheet Details of labels and values.

    A person printing the workbook wants its rows: hidden sheets and rows are not printed.

    A text stays a text with any first character: it never becomes a formula, a number or a date. `hidden`: rows of
    Details for the upload alone. `page_header`: the texts at the top of a printed page, left and right, in two lines
    each. `signed_by`: the signer's title at the foot of each page of rows.
    """
    signing = (signed_by,) if signed_by else ()
    sheets = [_table_sheet(table, page_header, signing) for table in tables]
    if details:
        sheets.append(_details_sheet(details, hidden, page_header))
    return write_sheets(sheets)


def _table_sheet(table: Table, page_header: tuple[str, str], signed_by: tuple[str, ...]) -> Sheet:
    columns = table.columns
    names = [column.name for column in columns]
    values = [[row.get(name) for name in names] for row in table.rows]
    widths = _column_widths(columns, values)
    headings = tuple(
        _heading_styles(column.heading, to_fill=column.required and not column.locked) for column in columns
    )
    styles = tuple(_cell_styles(column.cell_type, locked=column.locked) for column in columns)
    locked = {column.locked for column in columns}
    layout = SheetLayout(
        table.title,
        (headings, styles),
        _page(widths)._replace(signed_by=signed_by),
        header=1,
        frozen_columns=_frozen_columns(columns),
        # A text that is typed into a cell that is still empty, such as 0803…, stays that text.
        new_cells=tuple(_NEW_CELLS[column.cell_type] for column in columns),
        rules=tuple(_rules(columns)),
        # Where some columns say whose row it is, and others are to be filled in, rows may be sorted.
        protected=Protected(resized=True, sorted=len(locked) == 2) if True in locked else None,
        hidden=table.hidden,
    )
    rows = (Rows([names], _lines_of), Rows(values, _lines_of))
    last_row_of_rules = (len(values) or MAX_ROWS) + 1
    return Sheet(layout, widths, rows, last_row_of_rules, page_header)


def _details_sheet(
    details: Sequence[tuple[str, str]], hidden: Sequence[tuple[str, str]], page_header: tuple[str, str]
) -> Sheet:
    widths = [min(longest + 2, MAX_WIDTH) for longest in _longest(zip(*details, strict=True))]
    rows = (Rows(details, _lines_of), Rows(hidden, hidden=True))
    layout = SheetLayout(DETAILS, (_DETAILS, _DETAILS), _page(widths), protected=Protected(), hidden=True)
    return Sheet(layout, widths, rows, page_header=page_header)


def _column_widths(columns: Sequence[Column], rows: Sequence[Sequence[Value]]) -> list[int]:
    """The width of each column in characters: of its longest text, within reason."""
    longest = _longest(zip(*rows, strict=True)) if rows else [0] * len(columns)
    return [
        min(max(length + 2, len(column.name) + 4, column.width), MAX_WIDTH)
        for column, length in zip(columns, longest, strict=True)
    ]


def _longest(columns: Iterable[Iterable[Value]]) -> Iterator[int]:
    return (max(map(len, map(str, values))) for values in columns)


def _lines_of(text: str, _width: float) -> int:
    """How many lines a text takes in a column as wide as columns get."""
    if len(text) < MAX_WIDTH - 5 and text.isprintable():
        return 1
    return sum(len(line) // (MAX_WIDTH - 5) + 1 for line in text.splitlines())


def _page(widths: Iterable[int]) -> Page:
    landscape = sum(widths) > MAX_PORTRAIT_WIDTH
    return Page(landscape, margins=_MARGINS if landscape else None, grid=True)


def _frozen_columns(columns: Sequence[Column]) -> int:
    """Count the columns with the person of a row: they stay while several others, to be filled in, scroll."""
    first = next((position for position, column in enumerate(columns) if not column.locked), 0)
    return first if sum(not column.locked for column in columns) > 1 else 0


@lru_cache(maxsize=256)
def _heading_styles(heading: str | None, *, to_fill: bool) -> ColumnStyles:
    style = _HEADING_TO_FILL if to_fill else _HEADING
    if heading is not None:
        # Programs find the column by its name, people read words: the fourth part of a format is for texts.
        style = style._replace(number_format=f';;;"{heading}"')
    return styled_alike(style)


@cache
def _cell_styles(cell_type: CellType, *, locked: bool) -> ColumnStyles:
    fill = "F2F2F2" if locked else None
    text, number = (style._replace(fill=fill, locked=locked) for style in (_TEXT, _NUMBER))
    day, other = (number._replace(number_format=_FORMATS[kind]) for kind in (CellType.DAY, cell_type))
    return ColumnStyles(text=text, number=other, whole=other, day=day, marked=other)


def _rules(columns: Sequence[Column]) -> Iterator[ColumnRule]:
    for number, column in enumerate(columns, 1):
        if column.cell_type is CellType.DAY:
            error = "Type a date, such as 2012-05-31."
            yield ColumnRule(number, "date", "greaterThan", "1", error=error, title=column.name)
        elif isinstance(column.rule, NumberRange) and column.rule.words:
            yield _number_or_word(number, column.name, column.rule)
        elif isinstance(column.rule, NumberRange):
            minimum, maximum = str(column.rule.minimum), str(column.rule.maximum)
            error = f"Type a {'whole ' if column.rule.whole else ''}number from {minimum} to {maximum}."
            kind: Literal["whole", "decimal"] = "whole" if column.rule.whole else "decimal"
            yield ColumnRule(number, kind, "between", minimum, maximum, error, column.name)
        elif isinstance(column.rule, SuggestedValues):
            yield ColumnRule(number, "list", None, f'"{",".join(column.rule.values)}"')


def _number_or_word(number: int, title: str, rule: NumberRange) -> ColumnRule:
    # The formula of the first row below the header: in each other it is of that row.
    cell = f"{get_column_letter(number)}2"
    is_number = f"AND(ISNUMBER({cell}),{cell}>={rule.minimum},{cell}<={rule.maximum})"
    either = ",".join([is_number, *(f'{cell}="{word}"' for word in rule.words)])
    error = f"Type a number from {rule.minimum} to {rule.maximum}, or {' or '.join(rule.words)}."
    return ColumnRule(number, "custom", None, f"OR({either})", error=error, title=title)
