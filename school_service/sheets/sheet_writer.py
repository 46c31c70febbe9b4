"""Workbooks made to be filled in: the same records give the same bytes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from io import BytesIO
from pathlib import Path
from typing import Any
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

from openpyxl import Workbook
from openpyxl.packaging.core import DocumentProperties
from openpyxl.styles import Alignment, Border, Font, PatternFill, Protection, Side
from openpyxl.utils import get_column_letter
from openpyxl.worksheet.datavalidation import DataValidation
from openpyxl.worksheet.page import PageMargins
from openpyxl.worksheet.properties import PageSetupProperties
from openpyxl.worksheet.worksheet import Worksheet
from openpyxl.writer.excel import ExcelWriter

from school_service.sheets.columns import MAX_ROWS, CellType, Column, NumberRange, SuggestedValues
from school_service.sheets.sheet_reader import DETAILS
from school_service.sheets.xstring import escape

MAX_WIDTH = 60  # characters; what is longer is wrapped
MAX_PORTRAIT_WIDTH = 110  # characters on a portrait page; wider sheets are printed in landscape
LINE_HEIGHT = 15  # points
MAX_TITLE_LENGTH = 32  # characters of the title of Excel's own error message

_TIMESTAMP = datetime(2000, 1, 1)  # noqa: DTZ001 (Excel knows no time zones): files of the same records are the same
_FORMATS = {CellType.TEXT: "@", CellType.NUMBER: "General", CellType.DAY: "yyyy-mm-dd"}
_BOLD = Font(name="Calibri", size=11, bold=True)
_BOLD_ON_DARK = Font(name="Calibri", size=11, bold=True, color="FFFFFFFF")
_HEADER = PatternFill("solid", fgColor="FFD9E2EC")
_TO_FILL = PatternFill("solid", fgColor="FF334E68")
_LOCKED = PatternFill("solid", fgColor="FFF2F2F2")
_LINE = Border(bottom=Side(style="thin", color="FF829AB1"))
_FORMULA_SIGNS = ("=", "+", "-", "@")
_TOP = Alignment(vertical="top")
_WRAPPED = Alignment(vertical="top", wrap_text=True)


_Styles = dict[tuple[bool, bool], Any]


@dataclass(frozen=True, slots=True)
class Table:
    """A sheet with a header and rows, each a mapping from a column's name to a text, a number, a day or None.

    Without rows it is made to be filled in: the rules of its columns apply to every row that may come.
    """

    title: str
    columns: Sequence[Column]
    rows: Sequence[Mapping[str, str | int | Decimal | date | None]] = ()


def write_workbook(tables: Sequence[Table], details: Sequence[tuple[str, str]] = ()) -> bytes:
    """Write a workbook (.xlsx) of these sheets and, where given, a sheet Details of labels and values.

    A text stays a text, whatever it starts with: it never becomes a formula, a number or a date.
    """
    workbook = Workbook()
    workbook.remove(workbook.worksheets[0])
    workbook.properties = DocumentProperties(
        creator="School Service", created=_TIMESTAMP, modified=_TIMESTAMP
    )
    for table in tables:
        _write_table(workbook.create_sheet(table.title), table)
    if details:
        _write_details(workbook.create_sheet(DETAILS), details)
    content = BytesIO()
    ExcelWriter(workbook, _TimelessZip(content, "w", ZIP_DEFLATED)).save()
    return content.getvalue()


def _write_table(sheet: Worksheet, table: Table) -> None:
    total = 0
    for position, column in enumerate(table.columns, 1):
        styles: _Styles = {}
        letter = get_column_letter(position)
        _write_header(sheet.cell(1, position), column)
        longest = len(column.name) + 2
        for number, row in enumerate(table.rows, 2):
            value = row.get(column.name)
            _write_cell(sheet.cell(number, position), value, column, styles)
            longest = max(longest, len(str(value)))
        sheet.column_dimensions[letter].width = width = min(max(longest + 2, column.width), MAX_WIDTH)
        total += width
        # For the cells that are still empty: a text that is typed there, such as 0803…, stays that text.
        sheet.column_dimensions[letter].number_format = _FORMATS[column.cell_type]
        rule = _validation(column)
        if rule is not None:
            rule.add(f"{letter}2:{letter}{(len(table.rows) or MAX_ROWS) + 1}")
            sheet.add_data_validation(rule)
    sheet.freeze_panes = _first_to_scroll(table.columns)
    if any(column.locked for column in table.columns):
        sheet.protection.enable()
        sheet.protection.formatColumns = False  # its width may be changed
    _set_up_page(sheet, total)


def _first_to_scroll(columns: Sequence[Column]) -> str:
    """Name the cell that scrolls first: the header stays, and beside several columns to fill in whose row it is."""
    first = next((position for position, column in enumerate(columns, 1) if not column.locked), 1)
    several = len(columns) - first > 0
    return f"{get_column_letter(first if several else 1)}2"


def _write_details(sheet: Worksheet, details: Sequence[tuple[str, str]]) -> None:
    for number, pair in enumerate(details, 1):
        for position, text in enumerate(pair, 1):
            _write_text_cell(sheet.cell(number, position), text)
        sheet.cell(number, 1).font = _BOLD
    total = 0
    for index, letter in enumerate("AB"):
        longest = max(len(pair[index]) for pair in details)
        sheet.column_dimensions[letter].width = width = min(longest + 2, MAX_WIDTH)
        total += width
    sheet.protection.enable()
    _set_up_page(sheet, total)


def _write_header(cell: Any, column: Column) -> None:
    _write_text_cell(cell, column.name)
    to_fill = column.required and not column.locked
    cell.font = _BOLD_ON_DARK if to_fill else _BOLD
    cell.fill = _TO_FILL if to_fill else _HEADER
    cell.border = _LINE


def _write_cell(cell: Any, value: Any, column: Column, styles: _Styles) -> None:
    """Write a cell of a column; `styles` caches the styles of its cells, because making one takes long."""
    text = isinstance(value, str)
    quoted = text and value[:1] in _FORMULA_SIGNS
    style = styles.get((text, quoted))
    if style is None:
        cell.number_format = _FORMATS[CellType.TEXT if text else column.cell_type]
        cell.protection = Protection(locked=column.locked)
        cell.alignment = _WRAPPED if text else _TOP
        cell.quotePrefix = quoted
        if column.locked:
            cell.fill = _LOCKED
        style = styles[text, quoted] = cell._style
    cell._style = copy(style)
    if text:
        _write_text(cell, value)
    else:
        cell.value = value


def _write_text_cell(cell: Any, text: str) -> None:
    cell.number_format = _FORMATS[CellType.TEXT]
    cell.quotePrefix = text[:1] in _FORMULA_SIGNS
    cell.alignment = _WRAPPED
    _write_text(cell, text)


def _write_text(cell: Any, text: str) -> None:
    cell.value = escape(text)
    # openpyxl takes a text that starts with = for a formula.
    cell.data_type = "s"
    lines = sum(len(line) // (MAX_WIDTH - 5) + 1 for line in text.splitlines())
    if lines > 1:
        # Not every program finds the height of a row by itself.
        height = cell.parent.row_dimensions[cell.row].height or 0
        cell.parent.row_dimensions[cell.row].height = max(height, lines * LINE_HEIGHT)


def _validation(column: Column) -> DataValidation | None:
    if column.cell_type is CellType.DAY:
        rule = DataValidation(type="date", operator="greaterThan", formula1="1")
        rule.error = "Type a date, such as 2012-05-31."
    elif isinstance(column.rule, NumberRange):
        minimum, maximum = str(column.rule.minimum), str(column.rule.maximum)
        rule = DataValidation(type="decimal", operator="between", formula1=minimum, formula2=maximum)
        rule.type = "whole" if column.rule.whole else "decimal"
        rule.error = f"Type a {'whole ' if column.rule.whole else ''}number from {minimum} to {maximum}."
    elif isinstance(column.rule, SuggestedValues):
        return DataValidation(
            type="list",
            formula1=f'"{",".join(column.rule.values)}"',
            allow_blank=True,
            showErrorMessage=False,
        )
    else:
        return None
    rule.allow_blank = rule.showErrorMessage = True
    rule.errorTitle = escape(column.name)[:MAX_TITLE_LENGTH]
    return rule


def _set_up_page(sheet: Worksheet, width: int) -> None:
    """Set up the page: A4, as wide as the sheet, the header and the grid on each."""
    if width > MAX_PORTRAIT_WIDTH:
        sheet.page_setup.orientation = "landscape"
        sheet.page_margins = PageMargins(left=0.3, right=0.3, top=0.5, bottom=0.5)
    else:
        sheet.page_setup.orientation = "portrait"
    sheet.print_options.gridLines = True
    sheet.page_setup.paperSize = Worksheet.PAPERSIZE_A4
    sheet.page_setup.fitToHeight = 0
    sheet.sheet_properties.pageSetUpPr = PageSetupProperties(fitToPage=True)
    if sheet.freeze_panes:
        sheet.print_title_rows = "1:1"


class _TimelessZip(ZipFile):
    """A zip whose files have no timestamps."""

    def writestr(self, zinfo_or_arcname: Any, data: Any, *_options: Any, **_named: Any) -> None:
        """Add a file."""
        super().writestr(ZipInfo(zinfo_or_arcname), data, ZIP_DEFLATED)

    def write(self, filename: Any, arcname: Any = None, *_options: Any, **_named: Any) -> None:
        """Add a file of the file system."""
        self.writestr(arcname, Path(filename).read_bytes())
