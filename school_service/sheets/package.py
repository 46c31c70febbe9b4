"""Opening a workbook that anyone may have made: its sheets, row by row, within bounds of memory and time.

A workbook is a zip of XML parts. openpyxl reads them; what it is handed is bounded here, because a few
kilobytes can unpack to gigabytes and a single element can grow without end. Nothing that a file says of
itself is believed: bytes, elements and names are counted as they come. DTDs, and so entities, are refused.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date, time
from io import BytesIO
from typing import IO, Any
from xml.etree.ElementTree import Element
from zipfile import ZIP_DEFLATED, ZIP_STORED, BadZipFile, ZipFile

from defusedxml.ElementTree import fromstring, iterparse
from openpyxl.reader.excel import ExcelReader
from openpyxl.styles.numbers import BUILTIN_FORMATS, is_date_format, is_timedelta_format
from openpyxl.utils.datetime import from_excel
from openpyxl.worksheet._reader import FORMULA_TAG, ROW_TAG, WorkSheetParser
from openpyxl.xml.constants import ARC_STYLE, SHARED_STRINGS, SHEET_MAIN_NS

from school_service.errors import DomainError, Invalid, TooLarge
from school_service.sheets.escapes import unescape

MOST_UNPACKED = 100 * 2**20  # bytes of all parts together
MOST_READ = 32 * 2**20  # bytes of XML of what is kept: the texts, and the rows of the sheets that are read
MOST_STRUCTURE = 4 * 2**20  # bytes of a part that is read as a whole, such as the list of sheets …
MOST_MARKS = 50_000  # … and how many "<" it may hold
MOST_PARTS = 10_000  # files in the zip
MOST_ELEMENTS = 1_000_000  # of a part that is read piece by piece
MOST_NAMES = 5_000  # different names of its elements and attributes: a parser remembers each
MOST_DEPTH = 50
MOST_OF_PIECE = 2**20  # bytes of a row, or of a text …
MOST_ELEMENTS_OF_PIECE = 50_000  # … and its elements: Excel's widest row has 16,384 cells
MOST_OF_FORMAT = 255  # characters of a number format in Excel

NO_WORKBOOK = "The file is no Excel workbook (.xlsx)."
OLD_WORKBOOK = (
    "The file is an old Excel workbook (.xls) or has a password: save it as .xlsx, without a password."
)
BROKEN = "The workbook is broken and can't be read."
UNPACKS_TO_TOO_MUCH = "The workbook unpacks to more than 100 MiB."
HOLDS_TOO_MUCH = "The workbook holds too much to be read: copy the sheet into a new workbook."

_OLE = bytes.fromhex("d0cf11e0a1b11ae1")  # the container of .xls, and of workbooks with a password
_CENTRAL_ENTRY = b"PK\x01\x02"
_CHUNK = 2**20
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class CellError:
    """What Excel could not compute, such as #DIV/0!."""

    code: str


NOT_COMPUTED = CellError("of a formula without a result")
"""What a program leaves that writes formulas and computes none."""

Cell = str | int | float | bool | date | time | CellError


class Workbook:
    """A workbook that is open for reading; macros, links and formulas are never run."""

    def __init__(self, archive: _Archive) -> None:
        reader = ExcelReader(BytesIO(archive.content), read_only=True, data_only=True, keep_links=False)
        reader.archive = archive
        try:
            reader.read_manifest()
            reader.read_workbook()
        except (KeyError, OSError):
            raise Invalid(NO_WORKBOOK) from None
        self._archive = archive
        self._epoch = reader.wb.epoch
        self._parts: dict[str, str] = {}
        for sheet in reader.parser.sheets:
            part = reader.parser.rels.get(sheet.id)
            if part is not None and part.Type.endswith("/worksheet"):
                self._parts.setdefault(sheet.name, part.target)
        manifest: Any = reader.package
        texts = manifest.find(SHARED_STRINGS)
        self._texts = [] if texts is None else list(self._read_texts(texts.PartName[1:]))
        self._days = self._styles_of_days()

    @property
    def titles(self) -> list[str]:
        """The names of the sheets, hidden ones too, in their order."""
        return list(self._parts)

    def rows(self, title: str) -> Iterator[tuple[int, dict[int, Cell]]]:
        """Go through the rows of a sheet: the number of each as in Excel, and its filled cells by column.

        Columns count from 1. A formula counts by its stored value. Raises Invalid.
        """
        with _judged():
            parser = WorkSheetParser(BytesIO(), self._texts, data_only=True)
            for row in self._archive.pieces(self._parts[title], ROW_TAG):
                element: Any = row
                number, cells = parser.parse_row(element)
                parser.row_dimensions.clear()
                read = (
                    (_place(cell), self._value(cell, made)) for cell, made in zip(cells, row, strict=True)
                )
                yield number, {place: value for place, value in read if value is not None}

    def _value(self, cell: dict[str, Any], element: Element) -> Cell | None:
        value, kind = cell["value"], cell["data_type"]
        if value is None:
            # Of a formula whose result is an empty text, nothing; of one that has no result, the want of it.
            return NOT_COMPUTED if kind != "str" and element.find(FORMULA_TAG) is not None else None
        if kind == "e":
            return CellError(str(value))
        if isinstance(value, str):
            return unescape(value)
        if kind == "n" and cell["style_id"] in self._days:
            try:
                moment: date | time = from_excel(value, self._epoch)
            except (ValueError, OverflowError):
                return CellError("#NUM!")
            return moment
        found: Cell = value
        return found

    def _read_texts(self, part: str) -> Iterator[str]:
        for piece in self._archive.pieces(part, _name("si")):
            # Of a text in parts, each of its own font, the parts; of hints for pronouncing it, nothing.
            texts = [piece.find(_name("t")), *(run.find(_name("t")) for run in piece.iterfind(_name("r")))]
            yield "".join(text.text or "" for text in texts if text is not None)

    def _styles_of_days(self) -> frozenset[int]:
        """The styles that show a number as a moment."""
        try:
            sheet = fromstring(self._archive.read(ARC_STYLE))
        except KeyError:
            return frozenset()
        formats = dict(BUILTIN_FORMATS)
        for made in sheet.iterfind(f"{_name('numFmts')}/{_name('numFmt')}"):
            formats[int(made.get("numFmtId", 0))] = made.get("formatCode", "")[:MOST_OF_FORMAT]
        shown = (formats.get(int(style.get("numFmtId", 0)), "") for style in sheet.iterfind(_STYLES))
        return frozenset(
            place
            for place, code in enumerate(shown)
            if is_date_format(code) and not is_timedelta_format(code)
        )


def open_workbook(file: IO[bytes]) -> Workbook:
    """Open an uploaded workbook (.xlsx, or .xlsm without its macros).

    Raises Invalid where it is none, is broken or holds too much; TooLarge where it unpacks to over 100 MiB.
    """
    content = file.read()
    if content.startswith(_OLE):
        raise Invalid(OLD_WORKBOOK)
    if not content.startswith(b"PK"):
        raise Invalid(NO_WORKBOOK if content else "The file is empty.")
    if content.count(_CENTRAL_ENTRY) > MOST_PARTS:
        raise Invalid(HOLDS_TOO_MUCH)
    with _judged():
        return Workbook(_Archive(content))


class _Archive(ZipFile):
    """The zip of a workbook that fits the bounds: all of it is unpacked once to know that."""

    def __init__(self, content: bytes) -> None:
        super().__init__(BytesIO(content))
        self.content = content
        self._left = MOST_READ
        unpacked = 0
        for info in self.infolist():
            if info.compress_type not in (ZIP_STORED, ZIP_DEFLATED):
                raise BadZipFile("a part is packed in a way that workbooks do not know")
            with self.open(info) as part:
                while chunk := part.read(_CHUNK):
                    unpacked += len(chunk)
                    if unpacked > MOST_UNPACKED:
                        raise TooLarge(UNPACKS_TO_TOO_MUCH)

    def read(self, name: Any, pwd: bytes | None = None) -> bytes:  # noqa: ARG002
        """Read a small part as a whole, for openpyxl too."""
        with self.open(name) as part:
            content = part.read(MOST_STRUCTURE + 1)
        if len(content) > MOST_STRUCTURE or content.count(b"<") > MOST_MARKS:
            raise Invalid(HOLDS_TOO_MUCH)
        # Read here first: openpyxl's own parser depends on what else is installed.
        fromstring(content, forbid_dtd=True)
        return content

    def pieces(self, name: str, tag: str) -> Iterator[Element]:
        """Read a large part piece by piece: its elements of one tag, each of which is gone after its turn."""
        with self.open(name) as stream:
            source = _Source(stream, self)
            path: list[Element] = []
            names: set[str] = set()
            elements = of_piece = inside = 0
            for event, found in iterparse(source, ("start-ns", "start", "end"), forbid_dtd=True):
                if event == "start-ns":
                    names.update(found)
                elif event == "start":
                    path.append(found)
                    names.add(found.tag)
                    names.update(found.attrib)
                    inside += found.tag == tag
                    elements += 1
                    of_piece += 1
                else:
                    path.pop()
                    inside -= found.tag == tag
                    if not inside:
                        if found.tag == tag:
                            yield found
                        for element in path:
                            element.clear()
                        of_piece = source.of_piece = 0
                if (
                    elements > MOST_ELEMENTS
                    or of_piece > MOST_ELEMENTS_OF_PIECE
                    or len(names) > MOST_NAMES
                    or len(path) > MOST_DEPTH
                ):
                    raise Invalid(HOLDS_TOO_MUCH)

    def spend(self, size: int) -> None:
        """Count what is read of the large parts; raises Invalid where it is too much."""
        self._left -= size
        if self._left < 0:
            raise Invalid(HOLDS_TOO_MUCH)


class _Source:
    """The XML of a large part on its way to the parser, which gets no more of a piece than the bounds."""

    def __init__(self, stream: IO[bytes], archive: _Archive) -> None:
        self._stream = stream
        self._archive = archive
        self.of_piece = 0

    def read(self, size: int = -1) -> bytes:
        """Hand on the next bytes; raises Invalid where they are too many."""
        chunk = self._stream.read(size)
        self._archive.spend(len(chunk))
        self.of_piece += len(chunk)
        if self.of_piece > MOST_OF_PIECE:
            raise Invalid(HOLDS_TOO_MUCH)
        return chunk


def _place(cell: dict[str, Any]) -> int:
    place: int = cell["column"]
    return place


def _name(local: str) -> str:
    return f"{{{SHEET_MAIN_NS}}}{local}"


_STYLES = f"{_name('cellXfs')}/{_name('xf')}"


@contextmanager
def _judged() -> Iterator[None]:
    """Take whatever the readers of zip, XML and workbooks stumble over for what it is: the file is broken."""
    try:
        yield
    except (DomainError, MemoryError):
        raise
    except Exception as error:
        _log.info("broken workbook", exc_info=error)
        raise Invalid(BROKEN) from None
