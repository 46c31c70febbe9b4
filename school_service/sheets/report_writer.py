"""Workbooks made to be read and printed, not to be filled in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cache
from unicodedata import combining

from school_service.sheets.workbook_layout import (
    CellStyle,
    ColumnStyles,
    Marked,
    Page,
    Rows,
    Sheet,
    SheetLayout,
    Value,
    styled_alike,
)
from school_service.sheets.workbook_writer import write_sheets

_RED, _SHADED = "9C0006", "D9E2EC"
_TITLE_HEIGHT = 20  # points
_MARGINS = (0.7, 0.6)  # above and below a page, in inches
_SPARE = 1.15  # of a text's width: letters differ, and are wider where they are bold

_TITLE = styled_alike(CellStyle(bold=True, size=14, vertical="center"))
_LINE = styled_alike(CellStyle(vertical="center"))
_IN_TABLE = CellStyle(lines="around", vertical="center", wrapped=True)
_CENTRED = _IN_TABLE._replace(horizontal="center")
_HEADING = styled_alike(_CENTRED._replace(bold=True, fill=_SHADED))


@dataclass(frozen=True, slots=True)
class ReportColumn:
    """A column: its heading, between how many characters wide it is, and the decimal places of its figures.

    A text too long for the width is wrapped. `text`: its texts stand on the left, and not in the middle. Whole numbers
    have no places, and a `Marked` figure is bold, italic and red: it is seen without colour.
    """

    heading: str
    least: int = 6
    most: int = 12
    places: int = 0
    text: bool = False


@dataclass(frozen=True, slots=True)
class Report:
    """A sheet: lines above, a header, rows, and rows below with their sums.

    `frozen`: how many columns stay when the others scroll. `page_header`: the texts at the top of each printed page,
    left and right. `large`: printed on A3 rather than A4. `key`: the meanings of signs in cells, in lines above the
    header as wide as the table. `signed_by`: titles of the signers at the foot of each page. It is one page wide, in
    landscape, and as long as it has to be.
    """

    title: str
    lines: Sequence[str]
    columns: Sequence[ReportColumn]
    rows: Sequence[Sequence[Value]]
    summary: Sequence[Sequence[Value]] = ()
    frozen: int = 0
    large: bool = False
    page_header: tuple[str, str] = ("", "")
    key: Sequence[str] = ()
    signed_by: tuple[str, ...] = ()


def write_report(reports: Sequence[Report]) -> bytes:
    """Write a workbook (.xlsx) of these sheets. A text stays a text with any first character."""
    return write_sheets([_sheet(report) for report in reports])


def _sheet(report: Report) -> Sheet:
    columns = report.columns
    widths = [_width(column, report, position) for position, column in enumerate(columns)]
    lines = [*report.lines, *_key_lines(report.key, sum(widths))]
    rows = [
        Rows([[line] for line in lines[:1]], height=_TITLE_HEIGHT),
        Rows([[line] for line in lines[1:]]),
        Rows([[column.heading for column in columns]], lines_of),
        Rows(report.rows, lines_of),
        Rows(report.summary, lines_of),
    ]
    layout = SheetLayout(
        report.title,
        (
            (_TITLE,),
            (_LINE,),
            (_HEADING,) * len(columns),
            tuple(_cell_styles(column.places, text=column.text) for column in columns),
            tuple(_summary_styles(column.places) for column in columns),
        ),
        Page(
            landscape=True,
            a3=report.large,
            margins=_MARGINS,
            repeated_columns=report.frozen,
            signed_by=report.signed_by,
        ),
        header=len(lines) + 1,
        frozen_columns=report.frozen,
    )
    return Sheet(layout, widths, rows, page_header=report.page_header)


def _key_lines(key: Sequence[str], width: float) -> list[str]:
    """Set the parts of a key in lines of so many characters."""
    lines: list[str] = []
    for part in key:
        longer = f"{lines[-1]}   {part}" if lines else part
        if lines and _letters(longer) * _SPARE <= width:
            lines[-1] = longer
        else:
            lines.append(part)
    return lines


@cache
def _cell_styles(places: int, *, text: bool) -> ColumnStyles:
    number, whole = _figures(_CENTRED, places)
    return ColumnStyles(
        text=_IN_TABLE if text else _CENTRED,
        number=number,
        whole=whole,
        day=_CENTRED,
        marked=number._replace(bold=True, italic=True, colour=_RED),
    )


@cache
def _summary_styles(places: int) -> ColumnStyles:
    number, whole = _figures(_HEADING.text, places)
    text = _IN_TABLE._replace(bold=True, fill=_SHADED)
    return ColumnStyles(text=text, number=number, whole=whole, day=text, marked=number)


def _figures(style: CellStyle, places: int) -> tuple[CellStyle, CellStyle]:
    """Give the styles of figures with so many decimal places, and of whole numbers: these are counts."""
    return style._replace(number_format="0." + "0" * places if places else "0"), style._replace(
        number_format="0"
    )


def _width(column: ReportColumn, report: Report, position: int) -> float:
    """The width of a column in characters: of its longest text or figure, within its bounds."""
    values = [column.heading, *(row[position] for row in (*report.rows, *report.summary))]
    longest = max(_letters(_text_of(value, column)) for value in values)
    return round(min(max(longest * _SPARE + 1, column.least), column.most), 2)


def _text_of(value: Value, column: ReportColumn) -> str:
    if isinstance(value, Marked):
        value = value.value
    if isinstance(value, Decimal):
        return f"{value:.{column.places}f}"
    return "" if value is None else str(value)


def lines_of(text: str, width: float, spare: float = _SPARE) -> int:
    """How many lines a wrapped text takes, broken between words, or within a word longer than the line.

    `spare`: how many characters of the column's width a letter takes.
    """
    room = max(1, round((width - 1) / spare))
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
