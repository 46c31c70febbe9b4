"""Workbooks made to be read and printed: what is in them is not to be filled in, as in those of `sheet_writer`.

openpyxl makes styles and page set-up, once for each layout; columns and rows are written as XML into its sheets. The
same records give the same bytes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from functools import lru_cache
from io import BytesIO
from unicodedata import combining
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

from openpyxl import Workbook
from openpyxl.cell import Cell
from openpyxl.packaging.core import DocumentProperties
from openpyxl.styles import Alignment, Border, Font, NamedStyle, PatternFill, Side
from openpyxl.utils import get_column_letter
from openpyxl.worksheet.header_footer import HeaderFooterItem
from openpyxl.worksheet.page import PageMargins
from openpyxl.worksheet.properties import PageSetupProperties
from openpyxl.worksheet.worksheet import Worksheet
from openpyxl.writer.excel import ExcelWriter

from school_service.sheets.sheet_writer import inline_text
from school_service.sheets.workbook_frame import LINE_HEIGHT, page_header_text

_TIMESTAMP = datetime(2000, 1, 1)  # noqa: DTZ001 (Excel knows no time zones): files of the same records are the same
_FONT = "Calibri"
_RED = "FF9C0006"
_HEADER = PatternFill("solid", fgColor="FFD9E2EC")
_THIN = Side(style="thin", color="FF829AB1")
_LINES = Border(left=_THIN, right=_THIN, top=_THIN, bottom=_THIN)
_FORMULA_SIGNS = ("=", "+", "-", "@")
_TITLE_HEIGHT = 20  # points
MAX_FRAMES = 20  # of layouts; one has some 20 KB
_TO_FILL = ("<dimension[^>]*/>", "<sheetData ?(?:/>|></sheetData>)", "<oddHeader>[^<]*</oddHeader>")
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


@dataclass(frozen=True, slots=True)
class _Layout:
    """What the frame of a sheet depends on; `header` is the row of the header."""

    title: str
    header: int
    frozen: int
    large: bool


@dataclass(frozen=True, slots=True)
class _Frame:
    """A workbook without what is in its sheets: its other parts, the sheets' XML, and the numbers of the styles."""

    parts: tuple[tuple[str, bytes], ...]
    sheets: tuple[tuple[str, str], ...]
    styles: Mapping[str, int]
    quoted: Mapping[str, int]

    def text_style(self, style: str, text: str) -> int:
        """The number of a style for a text: one that looks like a formula stays a text when it is edited, too."""
        return (self.quoted if text.startswith(_FORMULA_SIGNS) else self.styles)[style]


def write_report(reports: Sequence[Report]) -> bytes:
    """Write a workbook (.xlsx) of these sheets. A text stays a text, whatever it starts with."""
    layouts = (_Layout(one.title, len(one.lines) + 1, one.frozen, one.large) for one in reports)
    frame = _frame_of(tuple(layouts))
    content = BytesIO()
    with ZipFile(content, "w", ZIP_DEFLATED) as archive:
        # Whatever the time is: the same records give the same bytes.
        for name, part in frame.parts:
            archive.writestr(ZipInfo(name), part, ZIP_DEFLATED, compresslevel=1)
        for (name, xml), report in zip(frame.sheets, reports, strict=True):
            archive.writestr(ZipInfo(name), _filled(xml, report, frame), ZIP_DEFLATED, compresslevel=1)
    return content.getvalue()


@lru_cache(maxsize=MAX_FRAMES)
def _frame_of(layouts: tuple[_Layout, ...]) -> _Frame:
    workbook = Workbook()
    workbook.remove(workbook.worksheets[0])
    workbook.properties = DocumentProperties(
        creator="School Service", created=_TIMESTAMP, modified=_TIMESTAMP
    )
    for layout in layouts:
        _set_up(workbook.create_sheet(layout.title), layout)
    styles, quoted = {}, {}
    for style in _styles():
        workbook.add_named_style(style)
        cell = Cell(workbook.worksheets[0], 1, 1)
        cell.style = style.name
        styles[style.name] = cell.style_id
        cell.quotePrefix = True
        quoted[style.name] = cell.style_id
    written = BytesIO()
    ExcelWriter(workbook, ZipFile(written, "w")).save()
    paths = [sheet.path.removeprefix("/") for sheet in workbook.worksheets]
    with ZipFile(written) as parts:
        others = tuple((name, parts.read(name)) for name in parts.namelist() if name not in paths)
        sheets = tuple((path, parts.read(path).decode()) for path in paths)
    for path, xml in sheets:
        if not all(re.search(opening, xml) for opening in _TO_FILL):
            raise RuntimeError(f"openpyxl writes {path} in a way that is not known here")
    return _Frame(others, sheets, styles, quoted)


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


def _filled(xml: str, report: Report, frame: _Frame) -> bytes:
    """Fill in the columns, the rows and the page's header of a sheet."""
    widths = [_width(column, report, position) for position, column in enumerate(report.columns)]
    last = len(report.lines) + 1 + len(report.rows) + len(report.summary)
    columns = "".join(
        f'<col min="{n}" max="{n}" width="{width:.2f}" customWidth="1"/>' for n, width in enumerate(widths, 1)
    )
    rows = "".join(_rows(report, widths, frame))
    filled = (
        f'<dimension ref="A1:{get_column_letter(len(widths))}{last}"/>',
        f"<cols>{columns}</cols><sheetData>{rows}</sheetData>",
        f"<oddHeader>{page_header_text(*report.page_header)}</oddHeader>",
    )
    for opening, text in zip(_TO_FILL, filled, strict=True):
        before, found, after = xml.partition(re.search(opening, xml)[0])  # type: ignore[index]
        xml = f"{before}{text}{after}" if found else xml
    return xml.encode()


def _rows(report: Report, widths: Sequence[float], frame: _Frame) -> Iterator[str]:
    letters = [get_column_letter(position) for position in range(1, len(widths) + 1)]
    for number, line in enumerate(report.lines, 1):
        style = _TITLE if number == 1 else _LINE
        cell = inline_text(f"A{number}", line, frame.text_style(style, line))
        yield _row(number, [cell], _TITLE_HEIGHT if number == 1 else 0)
    header = len(report.lines) + 1
    headings = [column.heading for column in report.columns]
    cells = [
        inline_text(f"{letter}{header}", heading, frame.text_style(_HEADING, heading))
        for letter, heading in zip(letters, headings, strict=True)
    ]
    yield _row(header, cells, _height(headings, widths))
    for first, rows, in_summary in (
        (header + 1, report.rows, False),
        (header + 1 + len(report.rows), report.summary, True),
    ):
        for number, row in enumerate(rows, first):
            cells = [
                _cell(f"{letter}{number}", value, column, frame, in_summary=in_summary)
                for letter, value, column in zip(letters, row, report.columns, strict=True)
            ]
            yield _row(number, cells, _height(row, widths))


def _row(number: int, cells: Iterable[str], height: int) -> str:
    tall = f' ht="{height}" customHeight="1"' if height else ""
    return f'<row r="{number}"{tall}>{"".join(cells)}</row>'


def _cell(reference: str, value: Value, column: ReportColumn, frame: _Frame, *, in_summary: bool) -> str:
    if isinstance(value, str):
        style = _SUMMARY if in_summary else _TEXT if column.text else _CENTRED
        return inline_text(reference, value, frame.text_style(style, value))
    # A whole number in a column of percents is a count, of those who pass.
    shown = value.value if isinstance(value, Marked) else value
    places = 0 if shown is None or isinstance(shown, int) else column.places
    name = _SUMMARY if in_summary else _MARKED if isinstance(value, Marked) else _FIGURE
    number = frame.styles[f"{name} {places}"]
    return (
        f'<c r="{reference}" s="{number}"/>'
        if shown is None
        else f'<c r="{reference}" s="{number}"><v>{shown}</v></c>'
    )


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


def _height(row: Sequence[Value], widths: Sequence[float]) -> int:
    """The height in points that the longest text of a row needs, 0 for one line: not every program finds it."""
    lines = max(
        (_lines(value, width) for value, width in zip(row, widths, strict=True) if isinstance(value, str)),
        default=1,
    )
    return lines * LINE_HEIGHT if lines > 1 else 0


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


def _set_up(sheet: Worksheet, layout: _Layout) -> None:
    """Set up a sheet and its pages; the page's header is filled in later."""
    sheet.freeze_panes = f"{get_column_letter(layout.frozen + 1)}{layout.header + 1}"
    sheet.page_setup.orientation = "landscape"
    sheet.page_setup.paperSize = Worksheet.PAPERSIZE_A3 if layout.large else Worksheet.PAPERSIZE_A4
    sheet.page_margins = PageMargins(left=0.3, right=0.3, top=0.7, bottom=0.6, header=0.3, footer=0.3)
    sheet.page_setup.fitToHeight = 0
    sheet.sheet_properties.pageSetUpPr = PageSetupProperties(fitToPage=True)
    sheet.print_title_rows = f"{layout.header}:{layout.header}"
    if layout.frozen:
        sheet.print_title_cols = f"A:{get_column_letter(layout.frozen)}"
    header, footer = HeaderFooterItem(), HeaderFooterItem()
    header.left.text = "to be filled in"
    footer.right.text = "Page &P of &N"
    sheet.HeaderFooter.oddHeader, sheet.HeaderFooter.oddFooter = header, footer
