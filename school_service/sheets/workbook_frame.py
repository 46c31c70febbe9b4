"""The frame of a workbook: all of it but the rows, as openpyxl writes it, made once for each layout.

openpyxl makes styles, rules, protection and page set-up. What differs from one workbook of a layout to the next
(rows, widths, how far the rules reach) is left open in the XML of its sheets, for `sheet_writer` to fill in.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from html import escape as escape_markup
from io import BytesIO
from itertools import zip_longest
from threading import Lock
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

from cachetools import LRUCache, cached
from openpyxl import Workbook
from openpyxl.cell import Cell, MergedCell
from openpyxl.packaging.core import DocumentProperties
from openpyxl.styles import Alignment, Border, Font, PatternFill, Protection, Side
from openpyxl.utils import get_column_letter
from openpyxl.worksheet.datavalidation import DataValidation
from openpyxl.worksheet.header_footer import HeaderFooterItem
from openpyxl.worksheet.page import PageMargins
from openpyxl.worksheet.properties import PageSetupProperties
from openpyxl.worksheet.worksheet import Worksheet
from openpyxl.writer.excel import ExcelWriter

from school_service.sheets.columns import CellType, Column, NumberRange, SuggestedValues
from school_service.sheets.sheet_reader import DETAILS
from school_service.sheets.xstring import escape

MAX_WIDTH = 60  # characters; what is longer is wrapped
LINE_HEIGHT = 15  # points
MAX_TITLE_LENGTH = 32  # characters of the title of Excel's own error message
MAX_HEADER_PART = 120  # characters of one side of a page's header, of which Excel takes 255 in all
MAX_CACHED_BYTES = 8 * 2**20  # bytes of all frames that are cached: one has some 10 to 20 KB

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

_COLUMN_BYTES = 300  # of a column of a layout and its styles, in memory

# No XML has this character: it stands where something is to be filled in. What is there is left out.
_OPEN = "\0"
_TO_OPEN = re.compile(
    r'(<dimension ref="|<col width="|<dataValidation sqref="[A-Z]+2:[A-Z]+|(?=</sheetData>)|<oddHeader>'
    r'|<protectedRange sqref="A2:[A-Z]+|<autoFilter ref="A1:[A-Z]+)[^"<]*'
)


@dataclass(frozen=True, slots=True)
class SheetLayout:
    """A sheet with a header, before it has rows; printed upright or in landscape."""

    title: str
    columns: tuple[Column, ...]
    landscape: bool


@dataclass(frozen=True, slots=True)
class WorkbookLayout:
    """What a frame depends on: its sheets, and whether Details come after them, in landscape or upright."""

    sheets: tuple[SheetLayout, ...]
    details_landscape: bool | None = None


@dataclass(frozen=True, slots=True)
class CellStyles:
    """The numbers of the styles of a column's cells: for a text, one that looks like a formula, a day, all else."""

    text: int
    quoted: int
    day: int
    other: int

    def of_text(self, text: str) -> int:
        """The style for a text: one that looks like a formula stays a text when it is edited, too."""
        return self.quoted if text.startswith(_FORMULA_SIGNS) else self.text


@dataclass(frozen=True, slots=True)
class SheetFrame:
    """A sheet without its rows: the XML around what is to be filled in, and the styles of its columns."""

    path: str
    xml: tuple[str, ...]
    styles: tuple[CellStyles, ...]

    def filled(
        self,
        *,
        rows: Iterable[str],
        last_row: int,
        last_row_of_rules: int,
        widths: Sequence[int],
        page_header: str,
    ) -> bytes:
        """Fill in the rows after the header, the number of the last, the widths of the columns, the page's header.

        `page_header` is what `page_header_text` makes.
        """
        dimension = f"A1:{get_column_letter(len(self.styles))}{last_row}"
        before_rules = [dimension, *map(str, widths), "".join(rows)]
        # After the rows come the range that may be sorted, if any, and rules: all reach equally far.
        rules = [str(last_row_of_rules)] * (len(self.xml) - 1 - len(before_rules) - 1)
        return "".join(_alternate(self.xml, [*before_rules, *rules, page_header])).encode()


@dataclass(frozen=True, slots=True)
class Frame:
    """A workbook without its sheets, as the bytes of a zip, and the frames of the sheets; Details come last."""

    archive: bytes
    sheets: tuple[SheetFrame, ...]

    def filled(self, sheets: Iterable[bytes]) -> bytes:
        """Add the sheets, each the XML that `SheetFrame.filled` made: the workbook is whole."""
        content = BytesIO(self.archive)
        with ZipFile(content, "a") as archive:
            for frame, xml in zip(self.sheets, sheets, strict=True):
                # Whatever the time is: the same records give the same bytes.
                archive.writestr(ZipInfo(frame.path), xml, ZIP_DEFLATED, compresslevel=1)
        return content.getvalue()


def _size_of(frame: Frame) -> int:
    """About how many bytes a cached frame takes, with its layout."""
    of_sheets = (sum(map(len, sheet.xml)) + len(sheet.styles) * _COLUMN_BYTES for sheet in frame.sheets)
    return len(frame.archive) + sum(of_sheets)


_frames: LRUCache[str, Frame] = LRUCache(MAX_CACHED_BYTES, _size_of)


# By the layout as text: 20 and 20.00 are equal, and are written differently.
@cached(_frames, repr, Lock())
def frame_of(layout: WorkbookLayout) -> Frame:
    """Make the frame of a layout with openpyxl, or find it among those that were made before."""
    workbook = Workbook()
    workbook.remove(workbook.worksheets[0])
    workbook.properties = DocumentProperties(
        creator="School Service", created=_TIMESTAMP, modified=_TIMESTAMP
    )
    styles = [_make_table(workbook.create_sheet(sheet.title), sheet) for sheet in layout.sheets]
    if layout.details_landscape is not None:
        styles.append(_make_details(workbook.create_sheet(DETAILS), landscape=layout.details_landscape))
    written = BytesIO()
    ExcelWriter(workbook, ZipFile(written, "w")).save()

    archive = BytesIO()
    with ZipFile(written) as parts, ZipFile(archive, "w", ZIP_DEFLATED, compresslevel=9) as fixed:
        paths = [sheet.path.removeprefix("/") for sheet in workbook.worksheets]
        for name in parts.namelist():
            if name not in paths:
                fixed.writestr(ZipInfo(name), parts.read(name), ZIP_DEFLATED)
        sheets = [
            SheetFrame(sheet.path.removeprefix("/"), _xml_to_fill(parts.read(path).decode(), sheet), of_sheet)
            for path, sheet, of_sheet in zip(paths, workbook.worksheets, styles, strict=True)
        ]
    for frame, sheet in zip(sheets, workbook.worksheets, strict=True):
        rules = len(sheet.data_validations.dataValidation)
        sorting = 2 if _is_sorted(sheet) else 0
        if len(frame.xml) - 1 != len(("dimension", "rows", "header")) + len(frame.styles) + rules + sorting:
            raise RuntimeError(f"openpyxl writes {frame.path} in a way that is not known here")
    return Frame(archive.getvalue(), tuple(sheets))


def height_of(text: str) -> int:
    """The height in points that a text needs in a column as wide as columns get; 0 where one line will do.

    Not every program finds the height of a row by itself.
    """
    if len(text) < MAX_WIDTH - 5 and text.isprintable():
        return 0
    lines = sum(len(line) // (MAX_WIDTH - 5) + 1 for line in text.splitlines())
    return lines * LINE_HEIGHT if lines > 1 else 0


def _alternate(around: Iterable[str], between: Iterable[str]) -> Iterator[str]:
    for outer, inner in zip_longest(around, between, fillvalue=""):
        yield outer
        yield inner


def _is_sorted(sheet: Worksheet) -> bool:
    """Tell whether the rows of a sheet can be sorted although it is protected: those of a class, below their header."""
    return bool(sheet.protection.sheet) and not sheet.protection.sort


def _xml_to_fill(xml: str, sheet: Worksheet) -> tuple[str, ...]:
    xml = re.sub(r"<sheetData ?/>", "<sheetData></sheetData>", xml)
    if _is_sorted(sheet):
        # Spreadsheet programs sort locked cells only within a range that may be edited all the same. openpyxl writes
        # no such ranges, and for a filter also a name that would have to reach as far as the rows.
        last = get_column_letter(sheet.max_column)
        sorting = f'<protectedRanges><protectedRange sqref="A2:{last}2" name="rows"/></protectedRanges>'
        xml = re.sub(
            r"(<sheetProtection [^>]*/>)", rf'\1{sorting}<autoFilter ref="A1:{last}2"/>', xml, count=1
        )
    return tuple(_TO_OPEN.sub(rf"\1{_OPEN}", xml).split(_OPEN))


def _make_table(sheet: Worksheet, layout: SheetLayout) -> tuple[CellStyles, ...]:
    styles = []
    for position, column in enumerate(layout.columns, 1):
        letter = get_column_letter(position)
        _write_header(sheet, position, column)
        sheet.column_dimensions[letter].width = column.width
        # For the cells that are still empty: a text that is typed there, such as 0803…, stays that text.
        sheet.column_dimensions[letter].number_format = _FORMATS[column.cell_type]
        rule = _validation(column)
        if rule is not None:
            rule.add(f"{letter}2:{letter}3")
            sheet.add_data_validation(rule)
        styles.append(_column_styles(sheet, column))
    sheet.freeze_panes = _first_to_scroll(layout.columns)
    if any(column.locked for column in layout.columns):
        sheet.protection.enable()
        sheet.protection.formatColumns = False  # its width may be changed
    if _is_of_people(layout.columns):
        sheet.protection.sort = sheet.protection.autoFilter = False  # both are allowed
    _set_up_page(sheet, landscape=layout.landscape)
    return tuple(styles)


def _is_of_people(columns: Sequence[Column]) -> bool:
    """Tell whether some columns say whose row it is, and others are to be filled in."""
    return len({column.locked for column in columns}) == 2


def _first_to_scroll(columns: Sequence[Column]) -> str:
    """Name the cell that scrolls first: the header stays, and beside several columns to fill in whose row it is."""
    first = next((position for position, column in enumerate(columns, 1) if not column.locked), 1)
    several = len(columns) - first > 0
    return f"{get_column_letter(first if several else 1)}2"


def _make_details(sheet: Worksheet, *, landscape: bool) -> tuple[CellStyles, ...]:
    for letter in "AB":
        sheet.column_dimensions[letter].width = MAX_WIDTH
    sheet.protection.enable()
    _set_up_page(sheet, landscape=landscape)
    return _detail_styles(sheet, _BOLD), _detail_styles(sheet, None)


def _write_header(sheet: Worksheet, position: int, column: Column) -> None:
    cell = sheet.cell(1, position)
    _style_text(cell, quoted=column.name.startswith(_FORMULA_SIGNS))
    if column.heading is not None:
        # Programs find the column by its name, people read words: the fourth part of a format is that of texts.
        cell.number_format = f';;;"{column.heading}"'
    cell.value = escape(column.name)
    # openpyxl takes a text that starts with = for a formula.
    cell.data_type = "s"
    to_fill = column.required and not column.locked
    cell.font = _BOLD_ON_DARK if to_fill else _BOLD
    cell.fill = _TO_FILL if to_fill else _HEADER
    cell.border = _LINE
    if height := height_of(column.name):
        row = sheet.row_dimensions[1]
        row.height = max(row.height or 0, height)


def _style_text(cell: Cell | MergedCell, *, quoted: bool = False) -> None:
    cell.number_format = _FORMATS[CellType.TEXT]
    cell.quotePrefix = quoted
    cell.alignment = _WRAPPED


def _detail_styles(sheet: Worksheet, font: Font | None) -> CellStyles:
    def style(*, quoted: bool = False) -> int:
        cell = Cell(sheet, 1, 1)
        _style_text(cell, quoted=quoted)
        if font is not None:
            cell.font = font
        number: int = cell.style_id
        return number

    return CellStyles(text=style(), quoted=style(quoted=True), day=style(), other=style())


def _column_styles(sheet: Worksheet, column: Column) -> CellStyles:
    def style(cell_type: CellType | None = None, *, quoted: bool = False) -> int:
        cell = Cell(sheet, 1, 1)
        if cell_type is None:
            _style_text(cell, quoted=quoted)
        else:
            cell.number_format = _FORMATS[cell_type]
            cell.alignment = _TOP
        cell.protection = Protection(locked=column.locked)
        if column.locked:
            cell.fill = _LOCKED
        number: int = cell.style_id
        return number

    return CellStyles(style(), style(quoted=True), style(CellType.DAY), style(column.cell_type))


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


def page_header_text(left: str, right: str) -> str:
    """Write the header of printed pages as XML: Excel takes 255 characters, of which a name may have many."""
    parts = (("&L", left, MAX_HEADER_PART), ("&R", right, MAX_HEADER_PART))
    text = "".join(f"{code}{_plain_header(part, longest)}" for code, part, longest in parts if part)
    return escape_markup(text, quote=False)


def _plain_header(text: str, longest: int) -> str:
    """A text in which & is no code, cut to so many units of UTF-16."""
    result = ""
    units = 0
    for letter in text:
        written = "&&" if letter == "&" else letter if letter.isprintable() or letter == "\n" else " "
        units += len(written) + (letter > "\uffff")
        if units > longest:
            break
        result += written
    return result


def _set_up_page(sheet: Worksheet, *, landscape: bool) -> None:
    """Set up the page: A4, as wide as the sheet, the header and the grid on each."""
    if landscape:
        sheet.page_setup.orientation = "landscape"
        sheet.page_margins = PageMargins(left=0.3, right=0.3, top=0.9, bottom=0.7, header=0.3, footer=0.3)
    else:
        sheet.page_setup.orientation = "portrait"
    sheet.print_options.gridLines = True
    sheet.page_setup.paperSize = Worksheet.PAPERSIZE_A4
    header, footer = HeaderFooterItem(), HeaderFooterItem()
    header.left.text = "to be filled in"
    footer.right.text = "Page &P of &N"
    sheet.HeaderFooter.oddHeader, sheet.HeaderFooter.oddFooter = header, footer
    sheet.page_setup.fitToHeight = 0
    sheet.sheet_properties.pageSetUpPr = PageSetupProperties(fitToPage=True)
    if sheet.freeze_panes:
        sheet.print_title_rows = "1:1"
