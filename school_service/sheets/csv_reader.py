"""Reading a table of comma-separated values, of any origin, within bounds of memory and time.

It is a workbook of one sheet whose cells are all texts, in UTF-8 or UTF-16, separated by commas, semicolons or tabs:
spreadsheet programs write each of these, by the language they are set to.
"""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import suppress
from io import StringIO
from itertools import islice

from school_service.core.errors import Invalid
from school_service.sheets.csv_writer import LOOKS_LIKE_FORMULA
from school_service.sheets.xlsx_reader import MAX_COLUMNS, Cell
from school_service.sheets.xml_stream import MAX_ELEMENTS, TOO_MUCH_CONTENT

NOT_UNICODE = "The .csv file is not in UTF-8: choose 'CSV UTF-8' or the character set UTF-8 when you save it."
BROKEN_CSV = "The .csv file is broken and can't be read."

MAX_LINE = 2**20  # characters
_DELIMITERS = ",;\t"
_LINES_TO_JUDGE = 20  # the delimiter is found from so many of the first lines
_SEPARATOR_LINE = re.compile(r"sep=(.)\r?\n", re.IGNORECASE)  # how a file tells Excel its delimiter
_NO_TEXT = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")


class CsvTable:
    """A table of comma-separated values, read like a workbook of one sheet."""

    titles = ("CSV",)

    def __init__(self, text: str, delimiter: str) -> None:
        self._text = text
        self._delimiter = delimiter

    def rows(self, _title: str) -> Iterator[tuple[int, dict[int, Cell]]]:
        """Go through the rows: the number of each as a spreadsheet program counts, and its filled cells by column.

        Columns count from 1. The last cell is there when it is empty, too: it says how wide the row is. Raises Invalid.
        """
        elements = 0
        try:
            for number, fields in enumerate(
                _parsed(_bounded(StringIO(self._text, newline="")), self._delimiter), 1
            ):
                elements += 1 + len(fields)
                if elements > MAX_ELEMENTS or len(fields) > MAX_COLUMNS:
                    raise Invalid(TOO_MUCH_CONTENT)
                width = len(fields)
                yield (
                    number,
                    {
                        column: _unmarked(field)
                        for column, field in enumerate(fields, 1)
                        if field or column == width
                    },
                )
        except csv.Error:
            raise Invalid(BROKEN_CSV) from None

    def merged(self, _title: str) -> list[str]:
        """Name the merged cells: in such a file there are none."""
        return []


def open_csv(content: bytes) -> CsvTable | None:
    """Open a table of comma-separated values; None if the bytes are none. Raises Invalid for another encoding."""
    text = _decoded(content)
    if text is None or _NO_TEXT.search(text):
        return None
    named = _SEPARATOR_LINE.match(text)
    if named is not None:
        # The line stays as an empty one, so that rows have the numbers that the program shows.
        return CsvTable(text[named.end() - 1 :], named[1])
    delimiter = _delimiter_of(text)
    return None if delimiter is None else CsvTable(text, delimiter)


def _decoded(content: bytes) -> str | None:
    """Decode a file by its byte order mark, or by the places of its zeros; answers None if it is no text at all."""
    if content.startswith((b"\xff\xfe", b"\xfe\xff")):
        encoding = "utf-16"
    elif content[1:2] == b"\0" and content[:1] != b"\0":
        encoding = "utf-16-le"
    elif content[:1] == b"\0" and content[1:2] != b"\0":
        encoding = "utf-16-be"
    else:
        encoding = "utf-8-sig"
    try:
        return content.decode(encoding)
    except UnicodeDecodeError:
        if (
            encoding != "utf-8-sig"
            or b"\0" in content
            or not any(mark in content for mark in (b",", b";", b"\t"))
        ):
            return None
        raise Invalid(NOT_UNICODE) from None


def _delimiter_of(text: str) -> str | None:
    """Find the delimiter with the most of the first rows equally wide; answers None if there is none."""
    lines = list(islice(_bounded(StringIO(text, newline="")), _LINES_TO_JUDGE))
    even = {delimiter: _even_rows(lines, delimiter) for delimiter in _DELIMITERS}
    best = max(_DELIMITERS, key=even.__getitem__)
    return best if even[best] > (0, 0) else None


def _even_rows(lines: Iterable[str], delimiter: str) -> tuple[int, int]:
    """Count the rows of equal width, and answer their number and width; rows of one cell do not count."""
    widths: Counter[int] = Counter()
    # A quoted cell may go on after the last of these lines, or have no end: the delimiter may be right all the same.
    with suppress(csv.Error):
        for fields in _parsed(lines, delimiter):
            widths[len(fields)] += len(fields) > 1
    return max(((rows, width) for width, rows in widths.items() if rows), default=(0, 0))


def _parsed(lines: Iterable[str], delimiter: str) -> Iterator[list[str]]:
    return csv.reader(lines, delimiter=delimiter, strict=False)


def _unmarked(text: str) -> str:
    """Take away the apostrophe by which `write_csv` marks a text with the looks of a formula."""
    return text[1:] if text.startswith("'") and LOOKS_LIKE_FORMULA.match(text) else text


def _bounded(lines: Iterable[str]) -> Iterator[str]:
    for line in lines:
        if len(line) > MAX_LINE:
            raise Invalid(TOO_MUCH_CONTENT)
        yield line
