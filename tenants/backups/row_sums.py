"""The checksum of rows as COPY writes them, computed here: equal to PostgreSQL's checksum of the same rows.

So the contents of a file are known without restoring it. A row's text is made anew as PostgreSQL's `ROW(…)::text`
writes it (`checksums`): values are divided by commas, null is nothing, and a value liable to be mistaken for more than
one stands in quotes.
"""

from __future__ import annotations

import re
from hashlib import sha256
from struct import Struct

from tenants.backups.checksums import TableChecksum

_NULL = rb"\N"
_ESCAPED = re.compile(rb"\\(.)", re.DOTALL)
_LETTERS = {b"b": b"\b", b"f": b"\f", b"n": b"\n", b"r": b"\r", b"t": b"\t", b"v": b"\v"}
_HALVES = Struct(">qq16x")


class RowSum:
    """The checksum of the rows added to it.

    `blanks` are the bytes beyond ASCII taken by the server for blanks.
    """

    def __init__(self, blanks: bytes) -> None:
        self._needs_quotes = re.compile(rb'["\\(),\s' + re.escape(blanks) + rb"]").search
        self._rows = self._first = self._second = 0

    def add(self, line: bytes) -> None:
        """Take a row: a line of COPY's text format, without its line feed."""
        values = b",".join([self._value(field) for field in line.split(b"\t")])
        first, second = _HALVES.unpack(sha256(b"(" + values + b")").digest())
        self._rows += 1
        self._first += first
        self._second += second

    @property
    def checksum(self) -> TableChecksum:
        """The checksum so far."""
        return TableChecksum(self._rows, f"{self._first}:{self._second}")

    def _value(self, field: bytes) -> bytes:
        if field == _NULL:
            return b""
        if b"\\" in field:
            field = _ESCAPED.sub(_unescaped, field)
        if field and not self._needs_quotes(field):
            return field
        return b'"' + field.replace(b"\\", rb"\\").replace(b'"', b'""') + b'"'


def _unescaped(escape: re.Match[bytes]) -> bytes:
    return _LETTERS.get(escape[1], escape[1])
