"""Reading a large XML part of a workbook item by item, within bounds of memory and time.

openpyxl reads the same, but builds trees of what it reads: an upload would spend most of its time there.
Nothing that a part declares of itself is trusted: bytes, elements and names are counted as they come. DTDs, and
so entities, are refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import IO, Any, Generic, TypeVar
from xml.parsers import expat

from defusedxml.common import DTDForbidden
from openpyxl.xml.constants import SHEET_MAIN_NS

from school_service.core.errors import Invalid

MAX_ELEMENTS = 1_000_000  # of a part
MAX_NAMES = 5_000  # different names of its elements and attributes: the parser interns each
MAX_DEPTH = 50
MAX_ITEM_BYTES = 2**20  # bytes of a row, or of a shared string …
MAX_ITEM_ELEMENTS = 50_000  # … and its elements: Excel's widest row has 16,384 cells

TOO_MUCH_CONTENT = "The workbook holds too much to be read: copy the sheet into a new workbook."

_CHUNK = 2**16  # bytes; the bounds are checked after each

Parsed = TypeVar("Parsed")


class _ElementStream(Generic[Parsed]):
    """The items of a part in their order: each is an element named `item`, with all that is in it.

    A subclass handles the elements and texts of an item, and returns what it parsed. The parser calls its
    handlers itself, as there are so many elements: so they count what is bounded.
    """

    item: str

    def __init__(self) -> None:
        self._depth = self._item_depth = self._elements = 0
        self._inside = False
        self._parsed: list[Parsed] = []
        self._names: dict[str, str] = {}
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
                or self._depth > MAX_DEPTH
                or len(self._names) > MAX_NAMES
            ):
                raise Invalid(TOO_MUCH_CONTENT)
            yield from self._parsed
            self._parsed.clear()

    def start_item(self, attributes: dict[str, str]) -> None:
        """Handle the start of an item."""

    def start_element(self, name: str, attributes: dict[str, str]) -> None:
        """Handle the start of an element within the item; counts it in `_elements` and in `_depth`."""
        raise NotImplementedError

    def character_data(self, text: str) -> None:
        """Handle a text, or a part of one, inside an item or outside."""
        raise NotImplementedError

    def end_element(self, name: str) -> None:
        """Handle the end of an element within the item, or of the item: calls `_leave_item`; counts in `_depth`."""
        raise NotImplementedError

    def end_item(self) -> Parsed:
        """Handle the end of the item: return what was parsed of it."""
        raise NotImplementedError

    def _make_parser(self) -> Any:
        parser: Any = expat.ParserCreate(namespace_separator="}", intern=self._names)
        parser.buffer_text = True
        parser.StartElementHandler = self._start_outside
        parser.EndElementHandler = self._end_outside
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
            self._parser.StartElementHandler = self.start_element
            self._parser.EndElementHandler = self.end_element
            self.start_item(attributes)

    def _end_outside(self, _name: str) -> None:
        self._depth -= 1

    def _leave_item(self) -> None:
        self._inside = False
        self._parser.StartElementHandler = self._start_outside
        self._parser.EndElementHandler = self._end_outside
        self._parsed.append(self.end_item())


def _refuse_dtd(name: str, system_id: str | None, public_id: str | None, _internal: int) -> None:
    raise DTDForbidden(name, system_id, public_id)


def _name(local: str) -> str:
    return f"{SHEET_MAIN_NS}}}{local}"


_TEXT, _PHONETIC, _VALUE, _FORMULA = _name("t"), _name("rPh"), _name("v"), _name("f")


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
        self._depth += 1
        self._elements += 1
        if name == _PHONETIC:
            self._phonetic_depth = self._phonetic_depth or self._depth
        else:
            self._in_text = name == _TEXT and not self._phonetic_depth

    def character_data(self, text: str) -> None:
        """Add a text to the string."""
        if self._in_text:
            self._parts.append(text)

    def end_element(self, name: str) -> None:
        """Note the end of a text, of a phonetic hint, or of the item."""
        self._in_text = False
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


@dataclass(slots=True)
class RawCell:
    """A cell as it is written: its reference such as B7, data type, style and content, and whether of a formula."""

    reference: str | None
    data_type: str
    style: str
    content: str = ""
    formula: bool = False


class SheetRows(_ElementStream[tuple[str | None, list[RawCell]]]):
    """The rows of a sheet: the number of each as it is written, if it is, and its cells."""

    item = _name("row")

    def __init__(self) -> None:
        super().__init__()
        self._number: str | None = None
        self._cells: list[RawCell] = []
        self._cell = RawCell(None, "n", "0")
        self._in_text = False
        self._phonetic_depth = 0

    def start_item(self, attributes: dict[str, str]) -> None:
        """Note the number of the row."""
        self._number = attributes.get("r")

    def start_element(self, name: str, attributes: dict[str, str]) -> None:
        """Begin a cell, or note what follows in it."""
        self._elements += 1
        self._depth += 1
        if self._depth == self._item_depth + 1:
            get = attributes.get
            self._cell = RawCell(get("r"), get("t", "n"), get("s", "0"))
            self._cells.append(self._cell)
        elif name == _VALUE:
            self._in_text = self._cell.data_type != "inlineStr"
        elif name == _TEXT:
            self._in_text = self._cell.data_type == "inlineStr" and not self._phonetic_depth
        elif name == _FORMULA:
            self._cell.formula = True
        elif name == _PHONETIC:
            self._phonetic_depth = self._phonetic_depth or self._depth

    def character_data(self, text: str) -> None:
        """Add a text to the content of the cell."""
        if self._in_text:
            self._cell.content += text

    def end_element(self, name: str) -> None:
        """Note the end of a text, of a phonetic hint, or of the item."""
        self._in_text = False
        if self._depth == self._phonetic_depth:
            self._phonetic_depth = 0
        elif self._depth == self._item_depth:
            self._leave_item()
        self._depth -= 1

    def end_item(self) -> tuple[str | None, list[RawCell]]:
        """Return the row."""
        cells, self._cells = self._cells, []
        return self._number, cells
