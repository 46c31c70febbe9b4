"""Reading a large XML part of a workbook piece by piece, within bounds of memory and time.

openpyxl reads the same, but builds trees of what it reads: an upload would spend most of its time there.
Nothing is believed that a part says of itself: bytes, elements and names are counted as they come. DTDs, and
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
MAX_NAMES = 5_000  # different names of its elements and attributes: the parser remembers each
MAX_DEPTH = 50
MAX_ITEM_BYTES = 2**20  # bytes of a row, or of a text …
MAX_ITEM_ELEMENTS = 50_000  # … and its elements: Excel's widest row has 16,384 cells

TOO_MUCH_CONTENT = "The workbook holds too much to be read: copy the sheet into a new workbook."

_CHUNK = 2**16  # bytes; the bounds are looked at after each

Parsed = TypeVar("Parsed")


class _ElementStream(Generic[Parsed]):
    """The pieces of a part in their order, each an element of one name (`piece`) with all that is in it.

    A subclass takes the elements and texts of a piece, whose own level is 0, and makes something of it.
    """

    piece: str

    def __init__(self) -> None:
        self._depth = self._begun = self._elements = 0
        self._inside = False
        self._made: list[Parsed] = []
        self._names: dict[str, str] = {}

    def read(self, stream: IO[bytes], spend: Callable[[int], None]) -> Iterator[Parsed]:
        """Go through what is made of the pieces; `spend` is told how many bytes are read. Raises Invalid."""
        parser = self._parser()
        of_piece = elements_before = 0
        ended = False
        while not ended:
            chunk = stream.read(_CHUNK)
            ended = not chunk
            spend(len(chunk))
            before = self._elements, self._depth
            parser.Parse(chunk, ended)
            if self._made or (not self._inside and before != (self._elements, self._depth)):
                of_piece, elements_before = 0, self._elements
            of_piece += len(chunk)
            if (
                of_piece > MAX_ITEM_BYTES
                or self._elements - elements_before > MAX_ITEM_ELEMENTS
                or self._elements > MAX_ELEMENTS
                or self._depth > MAX_DEPTH
                or len(self._names) > MAX_NAMES
            ):
                raise Invalid(TOO_MUCH_CONTENT)
            yield from self._made
            self._made.clear()

    def begin(self, attributes: dict[str, str]) -> None:
        """Take the beginning of a piece."""

    def take(self, level: int, name: str, attributes: dict[str, str]) -> None:
        """Take the beginning of an element within the piece, on level 1 or deeper."""
        raise NotImplementedError

    def text(self, text: str) -> None:
        """Take a text, or a part of one, wherever it stands."""
        raise NotImplementedError

    def leave(self, level: int) -> None:
        """Take the end of an element within the piece."""
        raise NotImplementedError

    def make(self) -> Parsed:
        """Take the end of the piece, and make something of it."""
        raise NotImplementedError

    def _parser(self) -> Any:
        parser: Any = expat.ParserCreate(namespace_separator="}", intern=self._names)
        parser.buffer_text = True
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = self.text
        # Only so that prefixes are counted among the names.
        parser.StartNamespaceDeclHandler = lambda _prefix, _uri: None
        parser.StartDoctypeDeclHandler = _refuse_dtd
        return parser

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        self._depth += 1
        self._elements += 1
        if self._inside:
            self.take(self._depth - self._begun, name, attributes)
        elif name == self.piece:
            self._inside, self._begun = True, self._depth
            self.begin(attributes)

    def _end(self, _name: str) -> None:
        if self._inside:
            level = self._depth - self._begun
            if level:
                self.leave(level)
            else:
                self._inside = False
                self._made.append(self.make())
        self._depth -= 1


def _refuse_dtd(name: str, system_id: str | None, public_id: str | None, _internal: int) -> None:
    raise DTDForbidden(name, system_id, public_id)


def _name(local: str) -> str:
    return f"{SHEET_MAIN_NS}}}{local}"


_TEXT, _PHONETIC, _VALUE, _FORMULA = _name("t"), _name("rPh"), _name("v"), _name("f")


class SharedStrings(_ElementStream[str]):
    """The texts that cells share: of one in parts, each of its own font, all; of how to say it, nothing."""

    piece = _name("si")

    def __init__(self) -> None:
        super().__init__()
        self._parts: list[str] = []
        self._taking = False
        self._silent = 0

    def take(self, level: int, name: str, attributes: dict[str, str]) -> None:
        """Take the beginning of an element."""
        if name == _PHONETIC:
            self._silent = self._silent or level
        else:
            self._taking = name == _TEXT and not self._silent

    def text(self, text: str) -> None:
        """Take a text."""
        if self._taking:
            self._parts.append(text)

    def leave(self, level: int) -> None:
        """Take the end of an element."""
        self._taking = False
        if level == self._silent:
            self._silent = 0

    def make(self) -> str:
        """Put the text together."""
        made = "".join(self._parts)
        self._parts.clear()
        return made


@dataclass(slots=True)
class RawCell:
    """A cell as it is written: its place such as B7, kind, style, content, and whether by a formula."""

    place: str | None
    kind: str
    style: str
    content: str = ""
    formula: bool = False


class SheetRows(_ElementStream[tuple[str | None, list[RawCell]]]):
    """The rows of a sheet: the number of each as it is written, if it is, and its cells."""

    piece = _name("row")

    def __init__(self) -> None:
        super().__init__()
        self._number: str | None = None
        self._cells: list[RawCell] = []
        self._taking = False
        self._silent = 0

    def begin(self, attributes: dict[str, str]) -> None:
        """Take the beginning of a row."""
        self._number = attributes.get("r")

    def take(self, level: int, name: str, attributes: dict[str, str]) -> None:
        """Take the beginning of a cell, or of what is in it."""
        if level == 1:
            get = attributes.get
            self._cells.append(RawCell(get("r"), get("t", "n"), get("s", "0")))
        elif name == _VALUE:
            self._taking = self._cells[-1].kind != "inlineStr"
        elif name == _TEXT:
            self._taking = self._cells[-1].kind == "inlineStr" and not self._silent
        elif name == _FORMULA:
            self._cells[-1].formula = True
        elif name == _PHONETIC:
            self._silent = self._silent or level

    def text(self, text: str) -> None:
        """Take a text."""
        if self._taking:
            self._cells[-1].content += text

    def leave(self, level: int) -> None:
        """Take the end of a cell, or of what is in it."""
        self._taking = False
        if level == self._silent:
            self._silent = 0

    def make(self) -> tuple[str | None, list[RawCell]]:
        """Hand over the row."""
        cells, self._cells = self._cells, []
        return self._number, cells
