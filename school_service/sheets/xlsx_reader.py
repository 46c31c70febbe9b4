"""Opening a workbook of any origin: its sheets, row by row, within bounds of memory and time.

A workbook is a zip of XML parts. Rows and shared strings are read by `xml_stream`, item by item; all other parts are
small, and are read as a whole. Their input is bounded here, because a few kilobytes can unpack to gigabytes. No
declaration of a file about itself is trusted. DTDs, and so entities, are refused.
"""

from __future__ import annotations

import logging
import posixpath
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date, time
from functools import lru_cache
from io import BytesIO
from math import isfinite
from typing import IO
from xml.etree.ElementTree import Element, fromstring
from zipfile import ZIP_DEFLATED, ZIP_STORED, BadZipFile, ZipFile

from openpyxl.styles.numbers import BUILTIN_FORMATS, is_date_format, is_timedelta_format
from openpyxl.utils.cell import column_index_from_string
from openpyxl.utils.datetime import CALENDAR_MAC_1904, CALENDAR_WINDOWS_1900, from_excel, from_ISO8601
from openpyxl.xml.constants import (
    ARC_STYLE,
    ARC_WORKBOOK,
    CONTYPES_NS,
    PKG_REL_NS,
    REL_NS,
    SHARED_STRINGS,
    XLSM,
    XLSX,
    XLTM,
    XLTX,
)

from school_service.core.errors import DomainError, Invalid, TooLarge
from school_service.sheets.xml_stream import ROW, STRING, TOO_MUCH_CONTENT, Items, refuse_dtd, tag, texts_in

MAX_UNPACKED_BYTES = 100 * 2**20  # bytes of all parts together
MAX_READ_BYTES = 32 * 2**20  # bytes of XML that are parsed: the shared strings, and the rows of sheets
MAX_PART_BYTES = 4 * 2**20  # bytes of a part that is read as a whole, such as the list of sheets …
MAX_PART_TAGS = 50_000  # … and how many "<" it may have
MAX_UNPACKED_AT_HAND = 2 * MAX_PART_BYTES  # bytes of the parts that are not unpacked a second time to be read
MAX_PARTS = 10_000  # files in the zip
MAX_COLUMNS = 16_384  # of a sheet in Excel
MAX_FORMAT_LENGTH = 255  # characters of a number format in Excel

NOT_A_WORKBOOK = (
    "The file is neither an Excel workbook (.xlsx) nor a .csv file: "
    "save the sheet as one of these, and send that."
)
BROKEN = "The workbook is broken and can't be read."
UNPACKS_TOO_LARGE = "The workbook unpacks to more than 100 MiB."

_CENTRAL_ENTRY = b"PK\x01\x02"
_CHUNK = 2**20
_DIGITS = "0123456789"
_LONG_NUMBER = 16  # digits, the most that a float holds
_MOST_DIGITS = 300  # of a whole number, so that it is a float, too
_NO_NUMBER = "#NUM!"
_KNOWN_BYTES = 2**15  # bytes of styles that are remembered
_FRACTION = re.compile("[.eE]")
_QUOTED = re.compile(r'"[^"]*+"|\\.')  # texts that a number format shows as they are written
_CONTENT_TYPES = "[Content_Types].xml"
_WORKBOOK_TYPES = (XLTM, XLTX, XLSM, XLSX)
_TYPES, _RELATIONSHIPS = f"{{{CONTYPES_NS}}}", f"{{{PKG_REL_NS}}}"
_RELATIONSHIP_ID = f"{{{REL_NS}}}id"
_STYLES, _FORMATS = f"{tag('cellXfs')}/{tag('xf')}", f"{tag('numFmts')}/{tag('numFmt')}"
_SHEETS = f"{tag('sheets')}/{tag('sheet')}"
_VALUE, _FORMULA = tag("v"), tag("f")
_TRUE = {"1", "t", "true"}
_ESCAPED = re.compile(r"_x([0-9A-Fa-f]{4})_")
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class CellError:
    """A failed computation of Excel's, such as #DIV/0!."""

    code: str


NOT_COMPUTED = CellError("of a formula without a result")
"""The result of a formula written by a program without computing it."""


@dataclass(frozen=True, slots=True)
class Percentage:
    """A number shown as a percentage: 0.45 as 45%."""

    number: float

    def __str__(self) -> str:
        return f"{self.number * 100:.15g}%"


_Styles = Mapping[int, type[date] | type[Percentage]]
"""The styles for a number shown as a date or a time, or as a percentage."""
Cell = str | int | float | bool | date | time | CellError | Percentage


class Workbook:
    """A workbook open for reading; macros, links and formulas are never run."""

    def __init__(self, archive: _Archive) -> None:
        self._archive = archive
        try:
            types = _content_types(archive.read_tree(_CONTENT_TYPES))
            part = next(types[kind] for kind in _WORKBOOK_TYPES if kind in types)
            workbook = archive.read_tree(part)
        except (KeyError, StopIteration):
            raise Invalid(NOT_A_WORKBOOK) from None
        properties = workbook.find(tag("workbookPr"))
        of_1904 = properties is not None and properties.get("date1904") in _TRUE
        self._epoch = CALENDAR_MAC_1904 if of_1904 else CALENDAR_WINDOWS_1900
        self._parts: dict[str, str] = {}
        self._merged: dict[str, list[str]] = {}
        worksheets = _worksheets(archive.read_tree(_relationships_of(part)), part)
        for sheet in workbook.iterfind(_SHEETS):
            worksheet = worksheets.get(sheet.get(_RELATIONSHIP_ID, ""))
            if worksheet is not None:
                self._parts.setdefault(sheet.attrib["name"], worksheet)
        self._shared_strings = self._read_strings(types[SHARED_STRINGS]) if SHARED_STRINGS in types else []
        self._styles = self._read_styles()

    @property
    def titles(self) -> list[str]:
        """The names of the sheets, hidden ones too, in their order."""
        return list(self._parts)

    def rows(self, title: str) -> Iterator[tuple[int, dict[int, Cell]]]:
        """Go through the rows of a sheet: the number of each as in Excel, and its filled cells by column.

        Columns count from 1. A formula counts by its stored value. Raises Invalid.
        """
        number = 0
        with _broken_workbook_is_invalid(), self._archive.stream(self._parts[title]) as stream:
            rows = Items(ROW, stream, self._archive.count_bytes)
            for row in rows:
                written = row.get("r")
                number = number + 1 if written is None else _row_number(written)
                cells = self._cells(row)
                rows.filled += len(cells)
                yield number, cells
            self._merged[title] = rows.merged

    def merged(self, title: str) -> list[str]:
        """Name the merged cells of a sheet after its rows were read, such as B3:C4: as many as MAX_MERGED at most."""
        return self._merged.get(title, [])

    def _cells(self, row: Element) -> dict[int, Cell]:
        column = 0
        cells: dict[int, Cell] = {}
        for cell in row:
            reference = cell.get("r")
            # Its column: the letters in front of the number of the row.
            column = column + 1 if reference is None else _number_of_column(reference.rstrip(_DIGITS))
            data_type = cell.get("t", "n")
            if data_type == "inlineStr":
                content = "".join(texts_in(cell))
            else:
                content = "".join([child.text or "" for child in cell if child.tag == _VALUE])
            if content:
                cells[column] = self._value(data_type, cell.get("s", "0"), content)
            elif data_type != "str" and cell.find(_FORMULA) is not None:
                # A formula whose result is an empty text leaves the cell blank; one without a result does not.
                cells[column] = NOT_COMPUTED
        return cells

    def _value(self, data_type: str, style: str, content: str) -> Cell:
        if data_type in {"inlineStr", "str"}:
            return _unescape(content) if "_x" in content else content
        if data_type == "n":
            number = _number(content)
            kind = self._styles.get(int(style))
            if kind is None or isinstance(number, CellError):
                return number
            return self._date(number) if kind is date else Percentage(number)
        if data_type == "s":
            return self._shared_strings[int(content)]
        if data_type == "b":
            return bool(int(content))
        if data_type == "e":
            return CellError(content)
        if data_type == "d":
            day_or_time: date | time = from_ISO8601(content)
            return day_or_time
        return _unescape(content) if "_x" in content else content

    def _date(self, number: float) -> date | time | CellError:
        try:
            day_or_time: date | time = from_excel(number, self._epoch)
        except (ValueError, OverflowError):
            return CellError(_NO_NUMBER)
        return day_or_time

    def _read_strings(self, part: str) -> list[str]:
        shared = []
        with self._archive.stream(part) as stream:
            strings = Items(STRING, stream, self._archive.count_bytes)
            for string in strings:
                texts = texts_in(string)
                strings.filled += len(texts)
                text = "".join(texts)
                shared.append(_unescape(text) if "_x" in text else text)
        return shared

    def _read_styles(self) -> _Styles:
        try:
            content = self._archive.read_small(ARC_STYLE)
        except KeyError:
            return {}
        # Sheets that were made by one program have the same styles.
        return _known_styles(content) if len(content) <= _KNOWN_BYTES else _styles_in(content)


def open_workbook(file: IO[bytes]) -> Workbook:
    """Open an uploaded workbook (.xlsx, or .xlsm without its macros).

    Raises Invalid if it is none, is broken or has too much content; TooLarge if it unpacks to over 100 MiB.
    """
    content = file.read()
    if not content.startswith(b"PK"):
        raise Invalid(NOT_A_WORKBOOK)
    if content.count(_CENTRAL_ENTRY) > MAX_PARTS:
        raise Invalid(TOO_MUCH_CONTENT)
    with _broken_workbook_is_invalid():
        return Workbook(_Archive(content))


def _number(content: str) -> int | float | CellError:
    """Parse a number; one beyond Excel's is an error. Raises ValueError for one with more digits than those."""
    if _FRACTION.search(content):
        number = float(content)
        return number if isfinite(number) else CellError(_NO_NUMBER)
    if len(content) > _MOST_DIGITS:
        raise ValueError(f"a number of {len(content)} digits")
    return int(content)


def _unescape(text: str) -> str:
    """Read characters beyond XML's set, `_x0001_`; a code of no character (NUL, half of a pair) stays as it is."""
    return _ESCAPED.sub(lambda match: _character(int(match[1], 16)) or match[0], text)


def _character(number: int) -> str | None:
    return None if number == 0 or 0xD800 <= number <= 0xDFFF else chr(number)


def _kind_of(code: str) -> type[date] | type[Percentage] | None:
    """Answer whether a number format shows a date or a percentage; None if it shows a number."""
    if is_date_format(code):
        return None if is_timedelta_format(code) else date
    return Percentage if "%" in _QUOTED.sub("", code) else None


def _styles_in(content: bytes) -> _Styles:
    sheet = _tree_of(content)
    formats = dict(BUILTIN_FORMATS)
    for custom in sheet.iterfind(_FORMATS):
        formats[int(custom.get("numFmtId", 0))] = custom.get("formatCode", "")[:MAX_FORMAT_LENGTH]
    codes = [formats.get(int(style.get("numFmtId", 0)), "") for style in sheet.iterfind(_STYLES)]
    # Each format is looked at once: a file may have tens of thousands of styles, and a format that takes long.
    kinds = {code: kind for code in set(codes) if (kind := _kind_of(code)) is not None}
    return {style: kinds[code] for style, code in enumerate(codes) if code in kinds}


_known_styles = lru_cache(64)(_styles_in)


def _content_types(tree: Element) -> dict[str, str]:
    """Read the parts by their type of content; of two parts of one type, the first counts."""
    types: dict[str, str] = {}
    for part in tree.iterfind(f"{_TYPES}Override"):
        types.setdefault(part.attrib["ContentType"], part.attrib["PartName"].removeprefix("/"))
    for kind in tree.iterfind(f"{_TYPES}Default"):
        # Some programs give this type to all XML that they do not name.
        if kind.attrib["ContentType"] in _WORKBOOK_TYPES:
            types.setdefault(kind.attrib["ContentType"], ARC_WORKBOOK)
    return types


def _relationships_of(part: str) -> str:
    """Name the part with the relationships of another."""
    folder, name = posixpath.split(part)
    return posixpath.join(folder, "_rels", f"{name}.rels")


def _worksheets(relationships: Element, part: str) -> dict[str, str]:
    """Find the worksheets of a workbook: their parts, by the ids of the relationships."""
    folder = posixpath.dirname(part)
    return {
        relationship.attrib["Id"]: posixpath.normpath(
            posixpath.join("/", folder, relationship.attrib["Target"])
        )[1:]
        for relationship in relationships.iterfind(f"{_RELATIONSHIPS}Relationship")
        if relationship.get("Type", "").endswith("/worksheet")
    }


class _Archive(ZipFile):
    """The zip of a workbook within the bounds: all of it is unpacked once to check them."""

    def __init__(self, content: bytes) -> None:
        super().__init__(BytesIO(content))
        self._unread = MAX_READ_BYTES
        self._at_hand: dict[str, bytes] = {}
        unpacked = 0
        for info in self.infolist():
            if info.compress_type not in (ZIP_STORED, ZIP_DEFLATED):
                raise BadZipFile("a part is compressed in a way that workbooks do not use")
            # Of two parts of one name the last is read.
            self._at_hand.pop(info.filename, None)
            with self.open(info) as part:
                first = chunk = part.read(_CHUNK)
                while chunk:
                    unpacked += len(chunk)
                    if unpacked > MAX_UNPACKED_BYTES:
                        raise TooLarge(UNPACKS_TOO_LARGE)
                    is_whole = len(chunk) < _CHUNK and chunk is first
                    if is_whole and unpacked <= MAX_UNPACKED_AT_HAND:
                        self._at_hand[info.filename] = chunk
                    chunk = part.read(_CHUNK)

    def read_tree(self, name: str) -> Element:
        """Read a small part as a tree. Raises KeyError if there is none, Invalid if it is large."""
        return _tree_of(self.read_small(name))

    def read_small(self, name: str) -> bytes:
        """Read the bytes of a small part. Raises KeyError if there is none, Invalid if it is large."""
        content = self._at_hand.get(name)
        if content is None:
            with self.open(name) as part:
                content = part.read(MAX_PART_BYTES + 1)
        if len(content) > MAX_PART_BYTES or content.count(b"<") > MAX_PART_TAGS:
            raise Invalid(TOO_MUCH_CONTENT)
        return content

    def stream(self, name: str) -> IO[bytes]:
        """Open a part. Raises KeyError if there is none."""
        content = self._at_hand.get(name)
        return self.open(name) if content is None else BytesIO(content)

    def count_bytes(self, size: int) -> None:
        """Count the bytes read of the large parts. Raises Invalid if they are too many."""
        self._unread -= size
        if self._unread < 0:
            raise Invalid(TOO_MUCH_CONTENT)


def _tree_of(content: bytes) -> Element:
    refuse_dtd(content)
    return fromstring(content)  # noqa: S314 -- without a DTD there is nothing to expand


@lru_cache(MAX_COLUMNS)
def _number_of_column(letters: str) -> int:
    number: int = column_index_from_string(letters)
    return number


def _row_number(written: str) -> int:
    """Parse the number of a row; some programs write it as 7.0."""
    if written.isdecimal() and len(written) < _LONG_NUMBER:
        return int(written)
    number = float(written)
    if not number.is_integer():
        raise ValueError(f"{written} is not the number of a row")
    return int(number)


@contextmanager
def _broken_workbook_is_invalid() -> Iterator[None]:
    """Turn any error of the readers of zip, XML and workbooks into Invalid: the file is broken."""
    try:
        yield
    except (DomainError, MemoryError):
        raise
    except Exception as error:
        # The kind alone: the words of many errors quote a cell.
        _log.info("broken workbook", extra={"reason": type(error).__name__})
        raise Invalid(BROKEN) from None
