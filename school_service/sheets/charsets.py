"""Texts read in another character set than they were written in: `Ã©` for é, `â€™` for an apostrophe.

Nobody finds such a name, and it is printed as it is. The text meant is found by going back: the text is written in the
wrong character set, and read as UTF-8.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from school_service.sheets.row_errors import INVALID, RowError
from school_service.sheets.sheet_reader import Row

_REPLACED = "\ufffd"
_SHOWN = 5  # words that a warning names


def _bytes_of(charset: str) -> dict[str, int]:
    """Map the characters of a set beyond ASCII to their bytes; a byte without one is read as a control character."""
    return {bytes([byte]).decode(charset, "ignore") or chr(byte): byte for byte in range(0x80, 0x100)}


_WINDOWS, _MAC = _bytes_of("cp1252"), _bytes_of("mac_roman")


def _looks(first: str, without: str = "") -> str:
    """Write an expression for a byte that begins a letter in UTF-8, and the next one, as Windows-1252 shows them."""
    following = "".join(letter for letter, byte in _WINDOWS.items() if byte <= 0xBF and letter not in without)
    return f"[{first}][{re.escape(following)}]"


# The beginnings of letters, as they look, that are seen nowhere else: of Latin with marks, letters with dots below and
# hooks, marks by themselves, and quotation marks. With some capitals the second half may be the quotation mark or the
# dash that follows a word, as of ÉTÉ: not behind a small letter.
_QUOTES = "\u2018\u2019\u201c\u201d\u2013\u2014\xab\xbb"
_OF_WINDOWS = re.compile(
    "|".join(
        (
            _looks("ÂÃÄÅ"),
            "á[\xb8-\xbb]",
            "â€",
            _looks("ÆÉÌÍ", without=_QUOTES),
            r"(?<![A-ZÀ-Þ])É[\u201c\u201d\u2014](?=[a-z])",
        )
    )
)
_OF_MAC = re.compile("√[^\x00-\x7f]|\xb7[\u222b\u03c0\xaa][^\x00-\x7f]|\u201a\xc4")
_QUESTION_MARK = re.compile(r"[^\W\d_]\?|\?[^\W\d_]")

_SAVE_AGAIN = "save the file as .xlsx or 'CSV UTF-8' from the program in which the letters are right"


def misread(text: str) -> tuple[str, str] | None:
    """Find a piece of a text read in a wrong character set: its looks, and the text meant; None if there is none.

    The text meant is empty if it is lost.
    """
    if text.isascii():
        return None
    if _REPLACED in text:
        return _REPLACED, ""
    for looks, bytes_of in ((_OF_WINDOWS, _WINDOWS), (_OF_MAC, _MAC)):
        if looks.search(text) and _read_again(text, bytes_of) is not None:
            for word in text.split(" "):
                meant = _read_again(word, bytes_of)
                if meant is not None and meant != word:
                    return "".join(letter if letter.isprintable() else "…" for letter in word), meant
            return text, _read_again(text, bytes_of) or ""
    return None


def misread_beside(text: str) -> str | None:
    """Find a word with letters that look misread in a text with others that are right; None if there is none.

    Such a text was put together from several files, and can not be read anew as a whole.
    """
    if text.isascii() or misread(text) is not None:
        return None
    return next((word for word in text.split() if _OF_WINDOWS.search(word) or _OF_MAC.search(word)), None)


def charset_warnings(rows: Sequence[Row], names: Iterable[str]) -> Iterator[str]:
    """Name the words of columns that look misread beside right ones, some of each column."""
    for column in names:
        texts = ((row.number, row.values.get(column)) for row in rows)
        misreadings = [
            (word, row) for row, text in texts if isinstance(text, str) and (word := misread_beside(text))
        ]
        if misreadings:
            shown = ", ".join(f'"{word}" in row {row}' for word, row in misreadings[:_SHOWN])
            more = ", …" if len(misreadings) > _SHOWN else ""
            yield f"{column}: letters look wrong beside right ones: {shown}{more}. Compare them with the list on paper."


def _read_again(text: str, bytes_of: Mapping[str, int]) -> str | None:
    """Read a text anew in UTF-8, after another character set; None unless it was in UTF-8."""
    try:
        return bytes(bytes_of.get(letter, ord(letter)) for letter in text).decode()
    except ValueError:
        return None


def charset_errors(rows: Iterable[Row], *, names: Iterable[str] = ()) -> Iterator[RowError]:
    """Find the texts of rows read in a wrong character set.

    In the columns `names` a question mark in a word counts too: some programs write one in place of each letter missing
    from their character set.
    """
    of_names = frozenset(names)
    for row in rows:
        for column, value in row.values.items():
            if not isinstance(value, str):
                continue
            # Most texts are ASCII: to call a function for each of them would take longer than all else here.
            misreading = None if value.isascii() else misread(value)
            if misreading is not None:
                looks, meant = misreading
                problem = f'has letters in a wrong character set, "{looks}"' + f" for {meant}" * bool(meant)
                yield RowError(row.number, column, INVALID, problem, None, _SAVE_AGAIN, of_person=False)
            elif "?" in value and column in of_names and _QUESTION_MARK.search(value):
                problem = "has a question mark in place of a letter"
                yield RowError(row.number, column, INVALID, problem, value, _SAVE_AGAIN, of_person=False)
