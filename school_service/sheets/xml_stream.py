"""Reading the items of an XML part of a workbook: its rows, or its shared strings.

A part of any size is read as a stream, item by item, within bounds of memory and time. Nothing that it declares of
itself is trusted: bytes, elements and names are counted as they come. DTDs, and so entities, are refused. A handler is
called for each element, and an upload would spend most of its time there: so a small part is read as a tree, which is
made in C, and gives the same items (`items_of`). A tree of a form that programs do not write is left to the stream.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import IO, Any, Generic, TypeVar
from xml.etree.ElementTree import Element
from xml.parsers import expat

from defusedxml.common import DTDForbidden
from openpyxl.xml.constants import SHEET_MAIN_NS

from school_service.core.errors import Invalid
from school_service.sheets.plain_cells import PLACE, RawCell

MAX_ELEMENTS = 1_000_000  # of a part
MAX_MERGED = 20_000  # merged cells of a sheet that are looked at
# Elements of a part that hold nothing, such as rows and cells that are only formatted: each costs as much to read as
# one that holds something, and a million of them have a few kilobytes in a zip.
MAX_EMPTY = 100_000
ELEMENTS_OF_TEXT = 4  # elements, at most, that a cell or a string with a content is thought to take
MAX_NAMES = 5_000  # different names of its elements and attributes: the parser interns each
MAX_DEPTH = 50
MAX_ITEM_BYTES = 2**20  # bytes of a row, or of a shared string …
MAX_ITEM_ELEMENTS = 50_000  # … and its elements: Excel's widest row has 16,384 cells

TOO_MUCH_CONTENT = "The workbook holds too much to be read: copy the sheet into a new workbook."

_CHUNK = 2**16  # bytes; the bounds are checked after each

Parsed = TypeVar("Parsed")


def refuse_empty(stream: IO[bytes], most_bytes: int) -> None:
    """Refuse a part with too many elements, or too many that hold nothing, by the signs in so many bytes of it.

    That takes a small part of the time in which the parser would come to the element where it is refused. Contents are
    counted twice, and so is whatever ends as their elements do: what is let through is counted while it is read.
    Raises Invalid.
    """
    elements = contents = size = 0
    before = b""
    while size < most_bytes and (chunk := stream.read(_CHUNK)):
        if b"\0" in chunk:
            return  # in UTF-16 the signs are others
        joined = before + chunk  # a sign may begin in one chunk and end in the next
        elements += chunk.count(b"<") - joined.count(b"</")
        contents += joined.count(b"v>") + joined.count(b"t>")
        if elements > MAX_ELEMENTS or elements - ELEMENTS_OF_TEXT * contents > MAX_EMPTY:
            raise Invalid(TOO_MUCH_CONTENT)
        size += len(chunk)
        before = chunk[-1:]


class _ElementStream(Generic[Parsed]):
    """The items of a part in their order: each is an element named `item`, with all that is in it.

    A subclass handles the elements and texts of an item, and returns what it parsed. The parser calls its
    handlers itself, as there are so many elements: so they count what is bounded, and in `_filled` what is parsed.
    """

    item: str

    def __init__(self) -> None:
        self._depth = self._item_depth = self._elements = self._filled = 0
        self._inside = False
        self._parsed: list[Parsed] = []
        self._names: dict[str, str] = {}
        self.merged: list[str] = []
        """The merged cells of a sheet that was read, such as B3:C4."""
        self._parser: Any = self._make_parser()

    def read(self, stream: IO[bytes], count_bytes: Callable[[int], None]) -> Iterator[Parsed]:
        """Yield what is parsed of each item; `count_bytes` gets the size of each chunk. Raises Invalid."""
        item_bytes = elements_before = 0
        ended = False
        while not ended:
            chunk = stream.read(_CHUNK)
            ended = not chunk
            count_bytes(len(chunk))
            before = self._elements, self._depth
            self._parser.Parse(chunk, ended)
            if self._parsed or (not self._inside and before != (self._elements, self._depth)):
                item_bytes, elements_before = 0, self._elements
            item_bytes += len(chunk)
            if (
                item_bytes > MAX_ITEM_BYTES
                or self._elements - elements_before > MAX_ITEM_ELEMENTS
                or self._elements > MAX_ELEMENTS
                or self._elements - ELEMENTS_OF_TEXT * self._filled > MAX_EMPTY
                or self._depth > MAX_DEPTH
                or len(self._names) > MAX_NAMES
            ):
                raise Invalid(TOO_MUCH_CONTENT)
            yield from self._parsed
            self._parsed.clear()

    def start_item(self, attributes: dict[str, str]) -> None:
        """Handle the start of an item."""

    def start_element(self, name: str, attributes: dict[str, str]) -> None:
        """Handle the start of an element, outside of an item by `_start_outside`; count in `_elements` and `_depth`."""
        raise NotImplementedError

    def character_data(self, text: str) -> None:
        """Handle a text, or a part of one, inside an item or outside."""
        raise NotImplementedError

    def end_element(self, name: str) -> None:
        """Handle the end of an element, that of an item by `_leave_item`; count in `_depth`."""
        raise NotImplementedError

    def end_item(self) -> Parsed:
        """Handle the end of the item: return what was parsed of it."""
        raise NotImplementedError

    def _make_parser(self) -> Any:
        parser: Any = expat.ParserCreate(namespace_separator="}", intern=self._names)
        parser.buffer_text = True
        parser.StartElementHandler = self.start_element
        parser.EndElementHandler = self.end_element
        parser.CharacterDataHandler = self.character_data
        # With a handler, prefixes count among the names.
        parser.StartNamespaceDeclHandler = lambda _prefix, _uri: None
        parser.StartDoctypeDeclHandler = _refuse_dtd
        return parser

    def _start_outside(self, name: str, attributes: dict[str, str]) -> None:
        self._depth += 1
        self._elements += 1
        if name == self.item:
            self._inside, self._item_depth = True, self._depth
            self.start_item(attributes)
        elif name == _MERGED and len(self.merged) < MAX_MERGED:
            self.merged.append(attributes.get("ref", ""))

    def _leave_item(self) -> None:
        self._inside = False
        self._parsed.append(self.end_item())


def _refuse_dtd(name: str, system_id: str | None, public_id: str | None, _internal: int) -> None:
    raise DTDForbidden(name, system_id, public_id)


def _name(local: str) -> str:
    return f"{SHEET_MAIN_NS}}}{local}"


_TEXT, _PHONETIC, _VALUE, _FORMULA = _name("t"), _name("rPh"), _name("v"), _name("f")


_MERGED = _name("mergeCell")


def _tag(local: str) -> str:
    """Name an element the way ElementTree does, with its namespace in braces."""
    return f"{{{SHEET_MAIN_NS}}}{local}"


_TEXT_TAG, _PHONETIC_TAG, _PLACE_TAG = _tag("t"), _tag("rPh"), _tag(PLACE)
_MERGED_PATH = f"{_tag('mergeCells')}/{_tag('mergeCell')}"
_VALUE_TAG, _FORMULA_TAG = _tag("v"), _tag("f")


def merged_in(root: Element) -> list[str]:
    """Find the merged cells of a sheet that was read as a tree."""
    found = root.findall(_MERGED_PATH)
    return [cells.get("ref", "") for cells in found[:MAX_MERGED]]


def _all_at(root: Element, path: str, tag: str) -> list[Element] | None:
    """Find the elements at a path; None where there are such elements elsewhere, too, or phonetic hints."""
    found = root.findall(path)
    if sum(1 for _ in root.iter(tag)) != len(found) or next(root.iter(_PHONETIC_TAG), None) is not None:
        return None
    return found


def _texts_in(element: Element) -> str:
    return "".join([text.text or "" for text in element.iter(_TEXT_TAG)])


class SharedStrings(_ElementStream[str]):
    """The shared strings of cells: of one in several fonts, all parts; phonetic hints are left out."""

    item = _name("si")

    def __init__(self) -> None:
        super().__init__()
        self._parts: list[str] = []
        self._in_text = False
        self._phonetic_depth = 0

    def start_element(self, name: str, attributes: dict[str, str]) -> None:
        """Note whether a text follows that belongs to the string."""
        if not self._inside:
            self._start_outside(name, attributes)
            return
        self._depth += 1
        self._elements += 1
        if name == _PHONETIC:
            self._phonetic_depth = self._phonetic_depth or self._depth
        else:
            self._in_text = name == _TEXT and not self._phonetic_depth

    def character_data(self, text: str) -> None:
        """Add a text to the string."""
        if self._in_text:
            self._filled += 1
            self._parts.append(text)

    def end_element(self, name: str) -> None:
        """Note the end of a text, of a phonetic hint, or of the item."""
        self._in_text = False
        if not self._inside:
            self._depth -= 1
            return
        if self._depth == self._phonetic_depth:
            self._phonetic_depth = 0
        elif self._depth == self._item_depth:
            self._leave_item()
        self._depth -= 1

    def end_item(self) -> str:
        """Join the parts of the string."""
        text = "".join(self._parts)
        self._parts.clear()
        return text

    @staticmethod
    def items_of(root: Element) -> Iterator[str] | None:
        """Give the strings of a part that was read as a tree; None where the stream is to read it."""
        items = _all_at(root, _tag("si"), _tag("si"))
        return None if items is None else map(_texts_in, items)


class SheetRows(_ElementStream[tuple[str | None, list[RawCell]]]):
    """The rows of a sheet: the number of each as it is written, if it is, and its cells."""

    item = _name("row")

    def __init__(self) -> None:
        super().__init__()
        self._number: str | None = None
        self._cells: list[RawCell] = []
        self._reference: str | None = None
        self._data_type, self._style, self._content, self._formula = "n", "0", "", False
        self._in_text = False
        self._phonetic_depth = 0

    def start_item(self, attributes: dict[str, str]) -> None:
        """Note the number of the row."""
        self._number = attributes.get("r")

    def start_element(self, name: str, attributes: dict[str, str]) -> None:
        """Begin a cell, or note what follows in it."""
        if not self._inside:
            self._start_outside(name, attributes)
            return
        self._elements += 1
        self._depth += 1
        self._in_text = False
        if self._depth == self._item_depth + 1:
            get = attributes.get
            self._reference, self._data_type, self._style = get("r"), get("t", "n"), get("s", "0")
            self._content, self._formula = "", False
        elif name == _VALUE:
            self._in_text = self._depth == self._item_depth + 2 and self._data_type != "inlineStr"
        elif name == _TEXT:
            self._in_text = self._data_type == "inlineStr" and not self._phonetic_depth
        elif name == _FORMULA:
            self._formula |= self._depth == self._item_depth + 2
        elif name == _PHONETIC:
            self._phonetic_depth = self._phonetic_depth or self._depth

    def character_data(self, text: str) -> None:
        """Add a text to the content of the cell."""
        if self._in_text:
            self._content += text

    def end_element(self, name: str) -> None:
        """Note the end of a text, of a phonetic hint, of a cell, or of the item."""
        self._in_text = False
        if not self._inside:
            self._depth -= 1
            return
        if self._depth == self._item_depth + 1:
            self._filled += bool(self._content)
            self._cells.append((self._reference, self._data_type, self._style, self._content, self._formula))
        elif self._depth == self._phonetic_depth:
            self._phonetic_depth = 0
        elif self._depth == self._item_depth:
            self._leave_item()
        self._depth -= 1

    def end_item(self) -> tuple[str | None, list[RawCell]]:
        """Return the row."""
        cells, self._cells = self._cells, []
        return self._number, cells

    @staticmethod
    def items_of(
        root: Element, taken_out: Sequence[RawCell]
    ) -> Iterator[tuple[str | None, list[RawCell]]] | None:
        """Give the rows of a sheet that was read as a tree; None where the stream is to read it.

        `taken_out` are the cells for which another element stands in the tree, in their order.
        """
        rows = _all_at(root, f"{_tag('sheetData')}/{_tag('row')}", _tag("row"))
        if rows is None or sum([len(row.findall(_PLACE_TAG)) for row in rows]) != len(taken_out):
            return None
        cells = iter(taken_out)
        return (
            (row.get("r"), [next(cells) if cell.tag == _PLACE_TAG else _raw_cell(cell) for cell in row])
            for row in rows
        )


def _raw_cell(cell: Element) -> RawCell:
    get = cell.get
    data_type = get("t", "n")
    if data_type == "inlineStr":
        content = _texts_in(cell)
    else:
        content = "".join([child.text or "" for child in cell if child.tag == _VALUE_TAG])
    formula = any(child.tag == _FORMULA_TAG for child in cell)
    return get("r"), data_type, get("s", "0"), content, formula
