"""Writing a table of comma-separated values for spreadsheet programs, and for being sent back."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Sequence
from io import StringIO

LOOKS_LIKE_FORMULA = re.compile(r"'*+[=+\-@]")
"""The beginning of a text that a spreadsheet program computes, unless a mark stands before it, or of a marked one."""


def write_csv(rows: Iterable[Sequence[str | None]]) -> bytes:
    """Write rows of texts, in UTF-8 with the mark by which spreadsheet programs see that it is.

    A text with the looks of a formula gets an apostrophe before it, which `csv_reader` takes away.
    """
    text = StringIO()
    csv.writer(text, lineterminator="\r\n").writerows(map(_marked, row) for row in rows)
    return text.getvalue().encode("utf-8-sig")


def _marked(text: str | None) -> str | None:
    return f"'{text}" if text is not None and LOOKS_LIKE_FORMULA.match(text) else text
