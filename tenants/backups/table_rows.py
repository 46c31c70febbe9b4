"""The rows of a backup, read from its script of COPY, or from pg_restore's script of a dump's data.

A backup is a file from somewhere. Of its contents rows alone are taken, of tables in the school's schema, each with all
of its columns. No text of the file becomes a statement: the COPY for the rows is written from the catalogue's names,
and PostgreSQL is sent rows as rows, distinguished from statements by its protocol. The few lines that pg_restore always
writes are passed over, and everything else in the script is refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import IO

from tenants.connections.engines import quote_identifier
from tenants.exceptions import BackupRefused

_MAX_LINE = 1 << 16  # bytes: of a line that is no row's, and of a part of a row
_END_OF_ROWS = b"\\."
_NAME = r'(?:[a-z_][a-z0-9_$]*+|"(?>(?:[^"\r\n]|"")+)")'
_NAMES = re.compile(_NAME)
_COPY = re.compile(rf"COPY ({_NAME})\.({_NAME}) \(({_NAME}(?>(?:, {_NAME})*))\) FROM stdin;\r?\n")
_PASSED_OVER = re.compile(
    r"(?:"
    r"[ ]*+"
    r"|--[^\r\n]*+"
    r"|\\(?:un)?restrict [0-9A-Za-z]++"
    # Rows of another encoding would be read wrongly.
    r"|SET (?:client_encoding = 'UTF8'|(?!client_encoding )[a-z_]++ = (?:[a-z0-9]++|'[a-z0-9]*+'));"
    r"|SELECT pg_catalog\.set_config\('search_path', '', false\);"
    r")\r?\n"
)


@dataclass(frozen=True, slots=True)
class TableRows:
    """A table, its columns in the order of the rows, and the rows."""

    table: str
    columns: tuple[str, ...]
    rows: CopyRows

    def copy_statement(self, schema: str) -> str:
        """Write the statement to take the rows into the table of a schema."""
        columns = ", ".join(map(quote_identifier, self.columns))
        table = f"{quote_identifier(schema)}.{quote_identifier(self.table)}"
        return f"COPY {table} ({columns}) FROM STDIN WITH (FORMAT text)"


class CopyRows:
    """The rows of a COPY as the script holds them, for the driver to read; `count` of them have been read so far."""

    def __init__(self, script: IO[bytes]) -> None:
        self._script = script
        self._begins_row, self._ended = True, False
        self.count = 0
        self.error: BaseException | None = None

    def read(self, size: int) -> bytes:
        """Read about so many bytes, more if a row has more; none at the end.

        Raises BackupRefused if the end is missing. Every exception, be it by a signal, is in `error` too, as the driver
        hides it.
        """
        try:
            return self._read(size)
        except BaseException as error:
            self.error = error
            raise

    def __iter__(self) -> Iterator[bytes]:
        """Read row after row, each whole and without the line feed at its end; raises as `read` does."""
        parts: list[bytes] = []
        while part := self.read(1):
            parts.append(part)
            if part.endswith(b"\n"):
                yield b"".join(parts)[:-1]
                parts.clear()

    def _read(self, size: int) -> bytes:
        parts: list[bytes] = []
        while not self._ended and size > 0:
            part = self._script.readline(_MAX_LINE)
            if not part:
                raise BackupRefused("The backup is damaged: its dump ends within a table.")
            ends_row = part.endswith(b"\n")
            self._ended = self._begins_row and ends_row and part.rstrip(b"\r\n") == _END_OF_ROWS
            self._begins_row = ends_row
            if not self._ended:
                self.count += ends_row
                parts.append(part)
                size -= len(part)
        return b"".join(parts)


def read_tables(script: IO[bytes], schema: str, tables: Mapping[str, Sequence[str]]) -> Iterator[TableRows]:
    """Read the script of a backup of `schema`: the rows of each of its tables, in the script's order.

    `tables` has the columns of each existing table. The rows of a table have to be read before the next one. Raises
    BackupRefused for everything but the rows of one of these tables, once, with exactly its columns.
    """
    seen: set[str] = set()
    for line in iter(lambda: script.readline(_MAX_LINE), b""):
        text = _decode(line)
        copy = _COPY.fullmatch(text)
        if copy is None:
            if not _PASSED_OVER.fullmatch(text):
                raise _refused(text)
            continue
        table = _unquote(copy[2])
        if _unquote(copy[1]) != schema:
            raise BackupRefused(f"The backup holds rows of another schema: {_in_one_line(copy[1])}.")
        if table not in tables:
            raise BackupRefused(
                f"The backup holds rows of {_in_one_line(table)}, a table that its revision does not have."
            )
        columns = tuple(map(_unquote, _NAMES.findall(copy[3])))
        if sorted(columns) != sorted(tables[table]):
            raise BackupRefused(
                f"The backup's rows of {table} have other columns than its revision: {_in_one_line(copy[3])}."
            )
        if table in seen:
            raise BackupRefused(f"The backup holds the rows of {table} twice.")
        seen.add(table)
        yield TableRows(table, columns, CopyRows(script))


def _decode(line: bytes) -> str:
    try:
        return line.decode()
    except UnicodeDecodeError:
        raise _refused(repr(line)) from None


def _unquote(name: str) -> str:
    return name[1:-1].replace('""', '"') if name.startswith('"') else name


def _refused(text: str) -> BackupRefused:
    return BackupRefused(f"The backup holds something else than rows: {_in_one_line(text)}")


def _in_one_line(text: str) -> str:
    """Shorten a text of the file to one line fit for a terminal."""
    plain = "".join(letter if letter.isprintable() else " " for letter in text)
    return " ".join(plain.split())[:120]
