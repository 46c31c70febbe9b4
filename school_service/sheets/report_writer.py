"""Workbooks made to be read and printed, with openpyxl: what is in them is not to be filled in.

The same records give the same bytes. `sheet_writer` makes those that are to be filled in.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from io import BytesIO
from unicodedata import combining
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

from openpyxl import Workbook
from openpyxl.cell import Cell, MergedCell
from openpyxl.packaging.core import DocumentProperties
from openpyxl.styles import Alignment, Border, Font, NamedStyle, PatternFill, Side
from openpyxl.utils import get_column_letter
from openpyxl.worksheet.header_footer import HeaderFooterItem
from openpyxl.worksheet.page import PageMargins
from openpyxl.worksheet.properties import PageSetupProperties
from openpyxl.worksheet.worksheet import Worksheet
from openpyxl.writer.excel import ExcelWriter

from school_service.sheets.workbook_frame import LINE_HEIGHT, plain_header
from school_service.sheets.xstring import escape

_TIMESTAMP = datetime(2000, 1, 1)  # noqa: DTZ001 (Excel knows no time zones): files of the same records are the same
_FONT = "Calibri"
_RED = "FF9C0006"
_HEADER = PatternFill("solid", fgColor="FFD9E2EC")
_THIN = Side(style="thin", color="FF829AB1")
_LINES = Border(left=_THIN, right=_THIN, top=_THIN, bottom=_THIN)
_FORMULA_SIGNS = ("=", "+", "-", "@")
_TITLE_HEIGHT = 20  # points
_PLACES = range(3)
_SPARE = 1.15  # of a text's width: letters differ, and are wider where they are bold

_TITLE, _LINE, _HEADING, _TEXT, _CENTRED, _FIGURE, _MARKED, _SUMMARY = (
    "School title", "School line", "School heading", "School text", "School centred", "School figure",
    "School figure below the pass mark", "School summary",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Marked:
    """A figure that is to be seen at once: bold, italic and red, so that it is seen without colour, too."""

    value: Decimal | int


Value = str | int | Decimal | Marked | None


@dataclass(frozen=True, slots=True)
class ReportColumn:
    """A column: its heading, between how many characters wide it is, and the decimal places of its figures.

    What does not fit into the width is wrapped. `text`: its texts stand on the left, and not in the middle.
    """

    heading: str
    least: int = 6
    most: int = 12
    places: int = 0
    text: bool = False


@dataclass(frozen=True, slots=True)
class Report:
    """A sheet: lines above, a header, rows, and rows below that sum them up.

    `frozen`: how many columns stay when the others scroll. `page_header`: what each printed page says at the top, left
    and right. `large`: printed on A3 rather than A4. It is one page wide, in landscape, and as long as it has to be.
    """

    title: str
    lines: Sequence[str]
    columns: Sequence[ReportColumn]
    rows: Sequence[Sequence[Value]]
    summary: Sequence[Sequence[Value]] = ()
    frozen: int = 0
    large: bool = False
    page_header: tuple[str, str] = ("", "")


def write_report(reports: Iterable[Report]) -> bytes:
    """Write a workbook (.xlsx) of these sheets. A text stays a text, whatever it starts with."""
    workbook = Workbook()
    workbook.remove(workbook.worksheets[0])
    workbook.properties = DocumentProperties(
        creator="School Service", created=_TIMESTAMP, modified=_TIMESTAMP
    )
    for style in _styles():
        workbook.add_named_style(style)
    for report in reports:
        _write(workbook.create_sheet(report.title), report)
    written, content = BytesIO(), BytesIO()
    ExcelWriter(workbook, ZipFile(written, "w")).save()
    with ZipFile(written) as parts, ZipFile(content, "w", ZIP_DEFLATED) as fixed:
        for name in parts.namelist():
            # Whatever the time is: the same records give the same bytes.
            fixed.writestr(ZipInfo(name), parts.read(name), ZIP_DEFLATED, compresslevel=1)
    return content.getvalue()


def _styles() -> Iterable[NamedStyle]:
    centre, left = (
        Alignment(horizontal="center", vertical="center", wrap_text=True),
        Alignment(vertical="center"),
    )
    wrapped = Alignment(vertical="center", wrap_text=True)
    plain, bold = Font(name=_FONT, size=11), Font(name=_FONT, size=11, bold=True)
    yield NamedStyle(_TITLE, font=Font(name=_FONT, size=14, bold=True), alignment=left)
    yield NamedStyle(_LINE, font=plain, alignment=left)
    yield NamedStyle(_HEADING, font=bold, fill=_HEADER, border=_LINES, alignment=centre)
    yield NamedStyle(_TEXT, font=plain, border=_LINES, alignment=wrapped)
    yield NamedStyle(_CENTRED, font=plain, border=_LINES, alignment=centre)
    marked = Font(name=_FONT, size=11, bold=True, italic=True, color=_RED)
    for places in _PLACES:
        for name, font, fill in (
            (_FIGURE, plain, None),
            (_MARKED, marked, None),
            (_SUMMARY, bold, _HEADER),
        ):
            yield NamedStyle(
                f"{name} {places}",
                font=font,
                fill=fill or PatternFill(),
                border=_LINES,
                alignment=centre,
                number_format=_format(places),
            )
    yield NamedStyle(_SUMMARY, font=bold, fill=_HEADER, border=_LINES, alignment=wrapped)


def _format(places: int) -> str:
    return "0." + "0" * places if places else "0"


def _write(sheet: Worksheet, report: Report) -> None:
    for number, line in enumerate(report.lines, 1):
        _set_text(sheet.cell(number, 1), line, _LINE if number > 1 else _TITLE)
    if report.lines:
        sheet.row_dimensions[1].height = _TITLE_HEIGHT
    header = len(report.lines) + 1
    widths = [_width(column, report, position) for position, column in enumerate(report.columns)]
    for position, (column, width) in enumerate(zip(report.columns, widths, strict=True), 1):
        sheet.column_dimensions[get_column_letter(position)].width = width
        _set_text(sheet.cell(header, position), column.heading, _HEADING)
    _set_height(sheet, header, [column.heading for column in report.columns], widths)
    for number, row in enumerate(report.rows, header + 1):
        _write_row(sheet, number, row, report.columns, widths)
    for number, row in enumerate(report.summary, header + 1 + len(report.rows)):
        _write_row(sheet, number, row, report.columns, widths, in_summary=True)
    sheet.freeze_panes = f"{get_column_letter(report.frozen + 1)}{header + 1}"
    _set_up_page(sheet, report, header)


def _write_row(
    sheet: Worksheet,
    number: int,
    row: Sequence[Value],
    columns: Sequence[ReportColumn],
    widths: Sequence[float],
    *,
    in_summary: bool = False,
) -> None:
    for position, (value, column) in enumerate(zip(row, columns, strict=True), 1):
        cell = sheet.cell(number, position)
        if isinstance(value, str):
            _set_text(cell, value, _SUMMARY if in_summary else _TEXT if column.text else _CENTRED)
            continue
        # A whole number in a column of percents is a count, of those who pass.
        shown = value.value if isinstance(value, Marked) else value
        places = 0 if shown is None or isinstance(shown, int) else column.places
        style = _SUMMARY if in_summary else _MARKED if isinstance(value, Marked) else _FIGURE
        cell.value = shown
        cell.style = f"{style} {places}"
    _set_height(sheet, number, row, widths)


def _set_text(cell: Cell | MergedCell, text: str, style: str) -> None:
    cell.value = escape(text)
    # openpyxl takes a text that starts with = for a formula.
    cell.data_type = "s"
    cell.style = style
    if text.startswith(_FORMULA_SIGNS):
        # It stays a text when it is edited, too.
        cell.quotePrefix = True


def _width(column: ReportColumn, report: Report, position: int) -> float:
    """The width of a column in characters: of its longest text or figure, within its bounds."""
    values = [column.heading, *(row[position] for row in (*report.rows, *report.summary))]
    longest = max(_letters(_shown(value, column)) for value in values)
    return min(max(longest * _SPARE + 1, column.least), column.most)


def _shown(value: Value, column: ReportColumn) -> str:
    if isinstance(value, Marked):
        value = value.value
    if isinstance(value, Decimal):
        return f"{value:.{column.places}f}"
    return "" if value is None else str(value)


def _set_height(sheet: Worksheet, number: int, row: Sequence[Value], widths: Sequence[float]) -> None:
    """Give a row the height that its longest text needs: not every program finds it by itself."""
    lines = max(
        (_lines(value, width) for value, width in zip(row, widths, strict=True) if isinstance(value, str)),
        default=1,
    )
    if lines > 1:
        sheet.row_dimensions[number].height = lines * LINE_HEIGHT


def _lines(text: str, width: float) -> int:
    """How many lines a text takes that is wrapped between words, or within one that is longer than the line."""
    room = max(1, round((width - 1) / _SPARE))
    lines, used = 1, 0
    for length in map(_letters, text.split()):
        if used and used + 1 + length > room:
            lines, used = lines + 1, 0
        more = (length - 1) // room
        lines += more
        used += bool(used) + length - more * room
    return lines


def _letters(text: str) -> int:
    """How many letters a text has: marks stand above and below them."""
    return len(text) if text.isascii() else sum(not combining(letter) for letter in text)


def _set_up_page(sheet: Worksheet, report: Report, header: int) -> None:
    sheet.page_setup.orientation = "landscape"
    sheet.page_setup.paperSize = Worksheet.PAPERSIZE_A3 if report.large else Worksheet.PAPERSIZE_A4
    sheet.page_margins = PageMargins(left=0.3, right=0.3, top=0.7, bottom=0.6, header=0.3, footer=0.3)
    sheet.page_setup.fitToHeight = 0
    sheet.sheet_properties.pageSetUpPr = PageSetupProperties(fitToPage=True)
    sheet.print_title_rows = f"{header}:{header}"
    if report.frozen:
        sheet.print_title_cols = f"A:{get_column_letter(report.frozen)}"
    header_line, footer = HeaderFooterItem(), HeaderFooterItem()
    header_line.left.text, header_line.right.text = map(plain_header, report.page_header)
    footer.right.text = "Page &P of &N"
    sheet.HeaderFooter.oddHeader, sheet.HeaderFooter.oddFooter = header_line, footer
