"""Every workbook (.xlsx) of the service is written here, as described by `workbook_layout`.

openpyxl makes the frame of a workbook, once for each layout: styles, rules, protection, page set-up. The differences
between workbooks of a layout (columns, rows, how far the rules reach, the header of its pages) are left open in the XML
of its sheets, and are written there. The same records give the same bytes.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from html import escape as escape_markup
from io import BytesIO
from itertools import chain, count, repeat
from threading import Lock
from typing import NamedTuple
from xml.etree.ElementTree import canonicalize
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

from cachetools import LRUCache, cached
from openpyxl import Workbook
from openpyxl.cell import WriteOnlyCell
from openpyxl.packaging.core import DocumentProperties
from openpyxl.styles import Alignment, Border, Font, PatternFill, Protection, Side
from openpyxl.utils import get_column_letter
from openpyxl.utils.datetime import to_excel
from openpyxl.utils.indexed_list import IndexedList
from openpyxl.worksheet.datavalidation import DataValidation
from openpyxl.worksheet.header_footer import HeaderFooterItem
from openpyxl.worksheet.page import PageMargins
from openpyxl.worksheet.pagebreak import Break
from openpyxl.worksheet.properties import PageSetupProperties
from openpyxl.worksheet.worksheet import Worksheet

from school_service.sheets.workbook_layout import (
    CellStyle,
    ColumnRule,
    ColumnStyles,
    Marked,
    Page,
    Sheet,
    SheetLayout,
    Value,
)

LINE_HEIGHT = 15  # points
MAX_TITLE_LENGTH = 32  # characters of the title of Excel's own error message
MAX_HEADER_PART = 120  # characters of one side of a page's header; Excel takes 255 in all
MAX_CACHED_BYTES = 8 * 2**20  # bytes of all frames that are cached: one has some 10 to 20 KB

_ROOM_TO_SIGN = 0.3  # inches
_TO_SIGN, _TO_DATE = "_" * 24, "_" * 12
_TIMESTAMP = datetime(2000, 1, 1)  # noqa: DTZ001 (Excel knows no time zones): files of the same records are the same
_FORMULA_SIGNS = ("=", "+", "-", "@")
_STYLES_BYTES = 1_000  # of the styles of a column, in memory, with their part of the layout
_LINE = Side(style="thin", color="FF829AB1")
_THICK = Side(style="medium", color="FF486581")
_BORDERS = {
    "below": Border(bottom=_LINE),
    "around": Border(left=_LINE, right=_LINE, top=_LINE, bottom=_LINE),
    "closing": Border(left=_LINE, right=_THICK, top=_LINE, bottom=_LINE),
}
_MODIFIED = re.compile(rb"(<dcterms:modified[^>]*+>)[^<]*+")
# Characters not allowed by XML 1.0, a carriage return (which it turns into a line feed), and a start that looks like an
# escape.
_TO_ESCAPE = re.compile(r"[\x00-\x08\x0b-\x1f\ud800-\udfff\ufffe\uffff]|_(?=x[0-9A-Fa-f]{4}_)")

# Texts that are written as they are, one in a line, such as most names and admission numbers: words of letters and
# digits with one sign between two of them.
_PLAIN_TEXTS = re.compile(r"[^\W_]++(?>(?:[ ./'\n-][^\W_]++)*)")


def write_sheets(sheets: Sequence[Sheet]) -> bytes:
    """Write a workbook of these sheets.

    A text stays a text with any first character: it never becomes a formula, a number or a date.
    """
    frame = frame_of(tuple(sheet.layout for sheet in sheets))
    content = BytesIO(frame.archive)
    with ZipFile(content, "a") as archive:
        for of_sheet, sheet in zip(frame.sheets, sheets, strict=True):
            # Without the present time: the same records give the same bytes.
            archive.writestr(ZipInfo(of_sheet.path), _filled(of_sheet, sheet), ZIP_DEFLATED, compresslevel=1)
    return content.getvalue()


# The frame, which openpyxl makes


class StyleNumbers(NamedTuple):
    """The numbers of the styles of a column in a workbook: `quoted` is for texts with the looks of formulas."""

    text: int
    quoted: int
    number: int
    whole: int
    day: int
    marked: int


@dataclass(frozen=True, slots=True)
class SheetFrame:
    """A sheet without its content: its XML, in pieces, and the numbers of the styles of its layout.

    Every other piece is the name of a text to be written there.
    """

    path: str
    xml: tuple[str, ...]
    styles: tuple[tuple[StyleNumbers, ...], ...]
    new_cells: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Frame:
    """A workbook without its sheets, as the bytes of a zip, and the frames of the sheets."""

    archive: bytes
    sheets: tuple[SheetFrame, ...]


def _size_of(frame: Frame) -> int:
    """About how many bytes a cached frame takes, with its layout."""
    size = len(frame.archive)
    for sheet in frame.sheets:
        size += sum(map(len, sheet.xml)) + _STYLES_BYTES * sum(map(len, sheet.styles))
    return size


_frames: LRUCache[tuple[Hashable, ...], Frame] = LRUCache(MAX_CACHED_BYTES, _size_of)


@cached(_frames, lock=Lock())
def frame_of(layouts: tuple[SheetLayout, ...]) -> Frame:
    """Make the frame of a workbook with openpyxl, or find it among those made before."""
    workbook = Workbook()
    workbook.remove(workbook.worksheets[0])
    workbook.properties = DocumentProperties(creator="School Service", created=_TIMESTAMP)
    font = layouts[0].font
    workbook._fonts = IndexedList([Font(name=font, size=CellStyle().size, family=2)])  # type: ignore[attr-defined]
    sheets = [_make_sheet(workbook, layout) for layout in layouts]
    numbers: dict[ColumnStyles, StyleNumbers] = {}  # of the workbook: hundreds of columns may look alike
    for sheet, layout in zip(sheets, layouts, strict=True):
        for styles_of_column in chain.from_iterable(layout.styles):
            if styles_of_column not in numbers:
                numbers[styles_of_column] = _style_numbers(sheet, styles_of_column, font)
    styles = [
        tuple(tuple(numbers[column] for column in rows) for rows in layout.styles) for layout in layouts
    ]
    new_cells = [
        tuple(_style_number(sheet, style, font) for style in layout.new_cells)
        for sheet, layout in zip(sheets, layouts, strict=True)
    ]
    written = BytesIO()
    workbook.save(written)

    archive = BytesIO()
    paths = [sheet.path.removeprefix("/") for sheet in sheets]
    with ZipFile(written) as parts, ZipFile(archive, "w", ZIP_DEFLATED, compresslevel=9) as fixed:
        for name in parts.namelist():
            if name not in paths:
                # openpyxl writes when it was saved, into the properties of the document.
                part = _MODIFIED.sub(rf"\g<1>{_TIMESTAMP.isoformat()}Z".encode(), parts.read(name))
                fixed.writestr(ZipInfo(name), part, ZIP_DEFLATED)
        xml = [
            _pieces(parts.read(path).decode(), layout) for path, layout in zip(paths, layouts, strict=True)
        ]
    return Frame(archive.getvalue(), tuple(map(SheetFrame, paths, xml, styles, new_cells)))


def _style_numbers(sheet: Worksheet, styles: ColumnStyles, font: str) -> StyleNumbers:
    others = {name: _style_number(sheet, style, font) for name, style in styles._asdict().items()}
    return StyleNumbers(**others, quoted=_style_number(sheet, styles.text, font, quoted=True))


def _style_number(sheet: Worksheet, style: CellStyle, font: str, *, quoted: bool = False) -> int:
    """Add a style to a workbook and answer its number; `quoted`: its texts stay texts when they are edited, too."""
    cell = WriteOnlyCell(sheet)
    cell.number_format = style.number_format
    if style.bold or style.italic or style.colour or style.size != CellStyle().size:
        colour = None if style.colour is None else f"FF{style.colour}"
        cell.font = Font(name=font, size=style.size, bold=style.bold, italic=style.italic, color=colour)
    if style.fill is not None:
        cell.fill = PatternFill("solid", fgColor=f"FF{style.fill}")
    if style.lines is not None:
        cell.border = _BORDERS[style.lines]
    if style.horizontal or style.vertical or style.wrapped or style.upwards:
        cell.alignment = Alignment(
            style.horizontal,
            style.vertical,
            textRotation=90 if style.upwards else 0,
            wrap_text=style.wrapped or None,
        )
    cell.protection = Protection(locked=style.locked)
    cell.quotePrefix = quoted
    number: int = cell.style_id
    return number


# Where a rule reaches to the last row of a sheet, openpyxl is told the last that there can be.
_LAST_ROW = "1048576"
_REACHING = rf'( (?:sq)?ref="[A-Z]+[0-9]+:[A-Z]+){_LAST_ROW}(?=")'
# No XML has this character: the names of places to be written stand between two of it.
_MARK = "\0"


def _pieces(xml: str, layout: SheetLayout) -> tuple[str, ...]:
    """Divide the XML of a sheet at the places to be written; raises RuntimeError if a place is not found."""
    # In its canonical form, a document is written in one way alone, by any version of openpyxl.
    xml = canonicalize(xml)
    reaching = len(layout.rules)
    data, end_of_data = "<sheetData>", "</sheetData>"
    places = [
        (r'<dimension ref="[^"]*"', f'<dimension ref="{_place("dimension")}"'),
        (data + end_of_data, f"{_place('columns')}{data}{_place('rows')}{end_of_data}{_place('merged')}"),
        ("<oddHeader>[^<]*<", f"<oddHeader>{_place('page_header')}<"),
    ]
    if layout.protected is not None and layout.protected.sorted:
        # Spreadsheet programs sort locked cells only within a range that may be edited all the same. openpyxl writes
        # no such ranges, and for a filter also a name that would have to reach as far as the rows.
        last = f"{get_column_letter(len(layout.new_cells))}{_LAST_ROW}"
        first = layout.header + 1
        sorting = (
            f'<protectedRanges><protectedRange sqref="A{first}:{last}" name="rows"/></protectedRanges>'
            f'<autoFilter ref="A{layout.header}:{last}"/>'
        )
        places.append(("</sheetProtection>", f"</sheetProtection>{sorting}"))
        reaching += 2
    expected = [
        *((*place, 1) for place in places),
        (_REACHING, rf"\1{_place('last_row_of_rules')}", reaching),
    ]
    for pattern, with_place, times in expected:
        xml, count = re.subn(pattern, with_place, xml)
        if count != times:
            raise RuntimeError(f"openpyxl writes the sheet {layout.title} in a way that is not known here")
    return tuple(xml.split(_MARK))


def _place(name: str) -> str:
    return f"{_MARK}{name}{_MARK}"


def _make_sheet(workbook: Workbook, layout: SheetLayout) -> Worksheet:
    sheet: Worksheet = workbook.create_sheet(layout.title)
    if layout.header:
        sheet.freeze_panes = f"{get_column_letter(layout.frozen_columns + 1)}{layout.header + 1}"
        sheet.print_title_rows = f"{layout.header - layout.header_rows + 1}:{layout.header}"
    for rule in layout.rules:
        validation = _validation(rule)
        letter = get_column_letter(rule.column)
        validation.add(f"{letter}{layout.header + 1}:{letter}{_LAST_ROW}")
        sheet.add_data_validation(validation)
    if layout.protected is not None:
        sheet.protection.enable()
        # Protection forbids it where the attribute is true.
        sheet.protection.formatColumns = not layout.protected.resized
        sheet.protection.sort = sheet.protection.autoFilter = not layout.protected.sorted
    _set_up_page(sheet, layout.page)
    if layout.hidden:
        sheet.sheet_state = Worksheet.SHEETSTATE_HIDDEN
    return sheet


def _validation(rule: ColumnRule) -> DataValidation:
    return DataValidation(
        type=rule.kind,
        operator=rule.operator,
        formula1=rule.first,
        formula2=rule.second,
        allow_blank=True,
        showErrorMessage=rule.error is not None,
        error=rule.error,
        errorTitle=None if rule.title is None else escape(rule.title)[:MAX_TITLE_LENGTH],
    )


def _set_up_page(sheet: Worksheet, page: Page) -> None:
    """Set up the pages of a sheet; their header is written later."""
    sheet.page_setup.orientation = "landscape" if page.landscape else "portrait"
    sheet.page_setup.paperSize = Worksheet.PAPERSIZE_A3 if page.a3 else Worksheet.PAPERSIZE_A4
    if page.scale:
        sheet.page_setup.scale = page.scale
        for column in page.breaks:
            sheet.col_breaks.append(Break(column))
    else:
        sheet.page_setup.fitToHeight = 0
        sheet.sheet_properties.pageSetUpPr = PageSetupProperties(fitToPage=True)
    if page.margins is not None:
        top, bottom = page.margins
        bottom += _ROOM_TO_SIGN * bool(page.signed_by)
        sheet.page_margins = PageMargins(0.3, 0.3, top, bottom, header=0.3, footer=0.3)
    if page.grid:
        sheet.print_options.gridLines = True
    if page.repeated_columns:
        sheet.print_title_cols = f"A:{get_column_letter(page.repeated_columns)}"
    header, footer = HeaderFooterItem(), HeaderFooterItem()
    header.left.text = "to be written"
    footer.right.text = "Page &P of &N"
    if page.signed_by:
        footer.left.text = "     ".join(f"{who}: {_TO_SIGN}  Date: {_TO_DATE}" for who in page.signed_by)
        # A wide sheet is printed smaller than it is; a hand writes no smaller.
        sheet.HeaderFooter.scaleWithDoc = False
    sheet.HeaderFooter.oddHeader, sheet.HeaderFooter.oddFooter = header, footer


# Writing into the frame


def _filled(frame: SheetFrame, sheet: Sheet) -> bytes:
    """Write the open places in the XML of a sheet."""
    rows = list(_sheet_rows(sheet, frame.styles))
    written = {
        "dimension": f"A1:{get_column_letter(len(sheet.widths))}{len(rows)}",
        "columns": _columns(sheet.widths, frame.new_cells),
        "rows": "".join(rows),
        "merged": _merged(sheet),
        "last_row_of_rules": str(sheet.last_row_of_rules),
        "page_header": _page_header(*sheet.page_header),
    }
    pieces = list(frame.xml)
    pieces[1::2] = [written[name] for name in frame.xml[1::2]]
    return "".join(pieces).encode()


def _merged(sheet: Sheet) -> str:
    if not sheet.merged:
        return ""
    if sheet.layout.protected is not None:
        raise RuntimeError(
            f"the cells of the sheet {sheet.layout.title}, which is protected, can't be merged"
        )
    ranges = "".join(f'<mergeCell ref="{cells}"/>' for cells in sheet.merged)
    return f'<mergeCells count="{len(sheet.merged)}">{ranges}</mergeCells>'


def _columns(widths: Sequence[float], new_cells: Sequence[int]) -> str:
    styles = [f' style="{style}"' for style in new_cells] or [""] * len(widths)
    columns = "".join(
        f'<col min="{number}" max="{number}" width="{width:g}"{style} customWidth="1"/>'
        for number, (width, style) in enumerate(zip(widths, styles, strict=True), 1)
    )
    return f"<cols>{columns}</cols>"


def _sheet_rows(sheet: Sheet, styles: Sequence[Sequence[StyleNumbers]]) -> Iterator[str]:
    """Write the rows of a sheet as XML, numbered from 1. They are written by column: most of its cells are alike."""
    columns = [(get_column_letter(position), width) for position, width in enumerate(sheet.widths, 1)]
    first = 1
    for rows, of_columns in zip(sheet.rows, styles, strict=True):
        values = list(rows.values)
        if not values:
            continue
        cells, lines = [], []
        described = zip(columns, of_columns, strict=False)
        for ((letter, width), style), of_column in zip(described, zip(*values, strict=True), strict=True):
            cells.append(_column_cells(letter, first, of_column, style))
            if rows.lines_of is not None:
                lines.append(
                    [rows.lines_of(value, width) if isinstance(value, str) else 1 for value in of_column]
                )
        most_lines = map(max, zip(*lines, strict=True)) if lines else repeat(1)
        hidden = ' hidden="1"' if rows.hidden else ""
        for number, of_row, needed in zip(count(first), zip(*cells, strict=True), most_lines, strict=False):
            height = max(rows.height, needed * LINE_HEIGHT if needed > 1 else 0)
            tall = f' ht="{height}" customHeight="1"' if height else ""
            yield f'<row r="{number}"{tall}{hidden}>{"".join(of_row)}</row>'
        first += len(values)


def _column_cells(letter: str, first: int, values: Sequence[Value], numbers: StyleNumbers) -> list[str]:
    """Write the cells of a column, from the row `first` on."""
    if _are_plain(values):
        # Nearly all columns are, and this takes a third of the time.
        return [
            f'<c r="{letter}{row}" s="{numbers.text}" t="inlineStr"><is><t>{text}</t></is></c>'
            for row, text in enumerate(values, first)
        ]
    return [_cell(f"{letter}{row}", value, numbers) for row, value in enumerate(values, first)]


def _are_plain(values: Sequence[Value]) -> bool:
    """Tell whether values are texts to be written as they are."""
    try:
        return _PLAIN_TEXTS.fullmatch("\n".join(values)) is not None  # type: ignore[arg-type]
    except TypeError:
        return False


def _text_cell(reference: str, text: str, numbers: StyleNumbers) -> str:
    style = numbers.quoted if text.startswith(_FORMULA_SIGNS) else numbers.text
    if not text:
        return f'<c r="{reference}" s="{style}"/>'
    # Without this attribute, space around a text is no part of it.
    space = "" if text == text.strip() else ' xml:space="preserve"'
    content = escape_markup(escape(text), quote=False)
    return f'<c r="{reference}" s="{style}" t="inlineStr"><is><t{space}>{content}</t></is></c>'


def _cell(reference: str, value: Value, numbers: StyleNumbers) -> str:
    if isinstance(value, str):
        return _text_cell(reference, value, numbers)
    if value is None:
        return f'<c r="{reference}" s="{numbers.whole}"/>'
    if isinstance(value, int):
        style, number = numbers.whole, float(value)
    elif isinstance(value, Marked):
        if isinstance(value.value, str):
            return _text_cell(reference, value.value, numbers._replace(text=numbers.marked))
        style, number = numbers.marked, float(value.value)
    elif isinstance(value, date):
        # A day is a number to Excel, and its style shows it as a day.
        style, number = numbers.day, to_excel(value)
    else:
        style, number = numbers.number, float(value)
    return f'<c r="{reference}" s="{style}"><v>{number:.16g}</v></c>'


def escape(text: str) -> str:
    """Write characters beyond XML's set as Excel writes them: `_x0001_` (ECMA-376, ST_Xstring)."""
    if text.isprintable() and "_x" not in text:
        return text  # as nearly all are: to look closer takes longer
    return _TO_ESCAPE.sub(lambda match: f"_x{ord(match[0]):04X}_", text)


def _page_header(left: str, right: str) -> str:
    """Write the header of printed pages as XML: Excel takes 255 characters, and a name may have many."""
    text = "".join(f"{code}{_without_codes(part)}" for code, part in (("&L", left), ("&R", right)) if part)
    return escape_markup(text, quote=False)


def _without_codes(text: str) -> str:
    """Write a text without & as a code, cut to so many units of UTF-16 as one side of a header may have."""
    result = ""
    units = 0
    for letter in text:
        written = "&&" if letter == "&" else letter if letter.isprintable() or letter == "\n" else " "
        units += len(written) + (letter > "\uffff")
        if units > MAX_HEADER_PART:
            break
        result += written
    return result
