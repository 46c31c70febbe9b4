"""Workbooks made to be filled in: rows written as XML into the frame of their layout.

The same records give the same bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from html import escape as escape_markup
from itertools import chain

from openpyxl.utils import get_column_letter
from openpyxl.utils.datetime import to_excel

from school_service.sheets.columns import MAX_ROWS, Column
from school_service.sheets.workbook_frame import (
    MAX_WIDTH,
    CellStyles,
    SheetLayout,
    WorkbookLayout,
    frame_of,
    height_of,
    page_header_text,
)
from school_service.sheets.xstring import escape

MAX_PORTRAIT_WIDTH = 110  # characters on a portrait page; wider sheets are printed in landscape

Value = str | int | float | Decimal | date | None


@dataclass(frozen=True, slots=True)
class Table:
    """A sheet with a header and rows, each a mapping from a column's name to a text, a number, a day or None.

    Without rows it is made to be filled in: the rules of its columns apply to every row that may come.
    """

    title: str
    columns: Sequence[Column]
    rows: Sequence[Mapping[str, Value]] = ()


def write_workbook(
    tables: Sequence[Table],
    details: Sequence[tuple[str, str]] = (),
    *,
    hidden: Sequence[tuple[str, str]] = (),
    page_header: tuple[str, str] = ("", ""),
) -> bytes:
    """Write a workbook (.xlsx) of these sheets and, where given, a sheet Details of labels and values.

    A text stays a text, whatever it starts with: it never becomes a formula, a number or a date. `hidden`: rows of
    Details that are for the upload alone. `page_header`: what a printed page says at the top, left and right, in
    two lines each.
    """
    header = page_header_text(*page_header)
    widths = [_column_widths(table) for table in tables]
    detail_widths = [min(longest + 2, MAX_WIDTH) for longest in _longest(zip(*details, strict=True))]
    layout = WorkbookLayout(
        tuple(
            SheetLayout(table.title, tuple(table.columns), _is_landscape(of_table))
            for table, of_table in zip(tables, widths, strict=True)
        ),
        _is_landscape(detail_widths) if details else None,
    )
    frame = frame_of(layout)
    sheets = [
        sheet.filled(
            rows=_rows(
                2, ([row.get(column.name) for column in table.columns] for row in table.rows), sheet.styles
            ),
            last_row=len(table.rows) + 1,
            last_row_of_rules=(len(table.rows) or MAX_ROWS) + 1,
            widths=of_table,
            page_header=header,
        )
        for table, of_table, sheet in zip(tables, widths, frame.sheets, strict=False)
    ]
    if details:
        sheet = frame.sheets[-1]
        shown = _rows(1, details, sheet.styles)
        rows = chain(shown, _hidden_rows(len(details) + 1, hidden, sheet.styles))
        last = len(details) + len(hidden)
        sheets.append(
            sheet.filled(
                rows=rows, last_row=last, last_row_of_rules=last, widths=detail_widths, page_header=header
            )
        )
    return frame.filled(sheets)


def _column_widths(table: Table) -> list[int]:
    """The width of each column in characters: of its longest text, within reason."""
    values = ([row.get(column.name) for row in table.rows] for column in table.columns)
    return [
        min(max(longest + 2, len(column.name) + 4, column.width), MAX_WIDTH)
        for column, longest in zip(table.columns, _longest(values), strict=True)
    ]


def _longest(columns: Iterable[Iterable[Value]]) -> Iterator[int]:
    return (max(map(len, map(str, values)), default=0) for values in columns)


def _is_landscape(widths: Iterable[int]) -> bool:
    return sum(widths) > MAX_PORTRAIT_WIDTH


def _rows(first: int, rows: Iterable[Sequence[Value]], styles: Sequence[CellStyles]) -> Iterator[str]:
    """Write the rows as XML, numbered from `first`."""
    columns = [(get_column_letter(position), of_column) for position, of_column in enumerate(styles, 1)]
    for number, values in enumerate(rows, first):
        height = 0
        cells = []
        for (letter, of_column), value in zip(columns, values, strict=True):
            if isinstance(value, str):
                cells.append(_text_cell(f"{letter}{number}", value, of_column))
                height = max(height, height_of(value))
            else:
                cells.append(_cell(f"{letter}{number}", value, of_column))
        tall = f' ht="{height}" customHeight="1"' if height else ""
        yield f'<row r="{number}"{tall}>{"".join(cells)}</row>'


def _hidden_rows(first: int, rows: Iterable[tuple[str, str]], styles: Sequence[CellStyles]) -> Iterator[str]:
    for number, (label, value) in enumerate(rows, first):
        cells = _text_cell(f"A{number}", label, styles[0]) + _text_cell(f"B{number}", value, styles[1])
        yield f'<row r="{number}" hidden="1">{cells}</row>'


def _text_cell(reference: str, text: str, styles: CellStyles) -> str:
    return inline_text(reference, text, styles.of_text(text))


def inline_text(reference: str, text: str, style: int) -> str:
    """Write a cell of text as XML, in the style of this number."""
    if not text:
        return f'<c r="{reference}" s="{style}"/>'
    # Without this attribute, space around a text is no part of it.
    space = "" if text == text.strip() else ' xml:space="preserve"'
    content = escape_markup(escape(text), quote=False)
    return f'<c r="{reference}" s="{style}" t="inlineStr"><is><t{space}>{content}</t></is></c>'


def _cell(reference: str, value: int | float | Decimal | date | None, styles: CellStyles) -> str:
    if value is None:
        return f'<c r="{reference}" s="{styles.other}"/>'
    if isinstance(value, date):
        # A day is a number to Excel, and its style shows it as a day.
        return f'<c r="{reference}" s="{styles.day}"><v>{to_excel(value):.16g}</v></c>'
    return f'<c r="{reference}" s="{styles.other}"><v>{float(value):.16g}</v></c>'
