"""Reading the items of an XML part of a workbook: its rows, or its shared strings.

A part of any size is read in portions, item by item, within bounds of memory and time. No declaration of a part about
itself is trusted: bytes, elements and names are counted as they come. DTDs, and so entities, are refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import IO, Any
from xml.etree.ElementTree import Element, XMLPullParser

from openpyxl.xml.constants import SHEET_MAIN_NS

from school_service.core.errors import Invalid

MAX_ELEMENTS = 1_000_000  # of a part
MAX_MERGED = 20_000  # merged cells of a sheet that are looked at
# Elements of a part that hold nothing, such as rows and cells that are only formatted: each costs as much to read as
# one that holds something, and a million of them have a few kilobytes in a zip.
MAX_EMPTY = 100_000
ELEMENTS_OF_TEXT = 4  # elements, at most, that a cell or a string with a content is thought to take
MAX_NAMES = 5_000  # different names of its elements, attributes and prefixes: the parser remembers each
MAX_DEPTH = 50  # of the elements around an item
MAX_ITEM_BYTES = 2**20  # bytes of a row, or of a shared string …
MAX_ITEM_ELEMENTS = 50_000  # … and its elements: Excel's widest row has 16,384 cells

TOO_MUCH_CONTENT = "The workbook holds too much to be read: copy the sheet into a new workbook."

# Bytes; the bounds are checked after each. The elements of a small chunk are forgotten while the processor has them at
# hand: with 2**16 an upload of 200 rows takes a busy server a fifth more of its time.
_CHUNK = 2**13
_DTD = b"<!DOCTYPE"


def tag(local: str) -> str:
    """Name an element of a sheet the way ElementTree does, with its namespace in braces."""
    return f"{{{SHEET_MAIN_NS}}}{local}"


ROW, STRING = tag("row"), tag("si")
_MERGED, _TEXT, _PHONETIC = tag("mergeCell"), tag("t"), tag("rPh")


def refuse_dtd(content: bytes) -> None:
    """Refuse a part, or a portion of one, with the sign of a DTD, be it in a comment. Raises ValueError."""
    # In UTF-16 there are zeros between the letters of the sign; every other encoding that is read has it as it is.
    if _DTD in content.replace(b"\0", b""):
        raise ValueError("a DTD")


def texts_in(element: Element) -> list[str]:
    """Find the texts in a string or a cell: of one in several fonts, all parts."""
    return [text.text for text in element.iter(_TEXT) if text.text]


class Items:
    """The items of a part in their order: the elements of one name, outside of any other such, with all in them.

    Phonetic hints are left out. Their reader counts in `filled` the cells or texts with a content. `merged` are the
    merged cells of a sheet once read, such as B3:C4.
    """

    def __init__(self, name: str, stream: IO[bytes], count_bytes: Callable[[int], None]) -> None:
        self._name, self._stream, self._count_bytes = name, stream, count_bytes
        self._parser: Any = XMLPullParser(("start-ns", "start", "end"))
        self._names: set[str] = set()
        self._open: list[Element] = []  # the elements around the item, and the item
        self._item: Any = None
        self._elements = self._elements_before = self._item_bytes = 0
        self.filled = 0
        self.merged: list[str] = []

    def __iter__(self) -> Iterator[Element]:
        """Yield each item, and forget it when the next is asked for. Raises Invalid, ValueError, SyntaxError."""
        seen = b""
        while chunk := self._stream.read(_CHUNK):
            self._count_bytes(len(chunk))
            # The sign of a DTD may begin in one chunk and end in another.
            seen = seen[-2 * len(_DTD) :] + chunk
            refuse_dtd(seen)
            self._item_bytes += len(chunk)
            self._parser.feed(chunk)
            yield from self._ended()
            self._check_bounds()
        self._parser.close()
        yield from self._ended()

    def _ended(self) -> Iterator[Element]:
        """Go through the events of the parser, and yield the ended items."""
        names, item = self._names, self._item
        for event, element in self._parser.read_events():
            if event == "start":
                self._elements += 1
                names.add(element.tag)
                names.update(element.keys())
                if item is None:
                    self._open.append(element)
                    item = element if element.tag == self._name else None
            elif event == "start-ns":
                names.add(element[0])
            elif item is None or element is item:
                if element is item:
                    self._take_out_hints(item)
                    yield item
                    item = None
                elif element.tag == _MERGED and len(self.merged) < MAX_MERGED:
                    self.merged.append(element.get("ref", ""))
                self._forget()
        self._item = item

    def _take_out_hints(self, item: Element) -> None:
        if _PHONETIC in self._names:
            for hint in list(item.iter(_PHONETIC)):
                hint.clear()

    def _forget(self) -> None:
        """Take the ended element out of the tree: the tree does not grow."""
        self._open.pop()
        if self._open:
            self._open[-1].clear()
        self._elements_before, self._item_bytes = self._elements, 0

    def _check_bounds(self) -> None:
        if (
            self._item_bytes > MAX_ITEM_BYTES
            or self._elements - self._elements_before > MAX_ITEM_ELEMENTS
            or self._elements > MAX_ELEMENTS
            or self._elements - ELEMENTS_OF_TEXT * self.filled > MAX_EMPTY
            or len(self._open) > MAX_DEPTH
            or len(self._names) > MAX_NAMES
        ):
            raise Invalid(TOO_MUCH_CONTENT)
