"""The rows of a school as a script of COPY, compressed: written by one session of the server, and read again.

The session with the snapshot writes the rows itself. It asks for nothing but the school's tables: pg_dump would write
them by another session, and first reads the catalogue of all schools.
"""

from __future__ import annotations

import gzip
import os
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from io import BufferedWriter
from typing import IO, Any, cast

from sqlalchemy import Connection

from tenants.connections.engines import quote_identifier
from tenants.connections.statements import copy_rows
from tenants.exceptions import BackupRefused
from tenants.pg_programs import WorkThread

_LEVEL = 6  # of gzip, its own default
_CHUNK = 1 << 18  # bytes


@contextmanager
def piped(write: Callable[[IO[bytes]], None]) -> Iterator[IO[bytes]]:
    """Yield the output of a function writing to a file, while it writes in a thread of its own.

    An exception of the function is raised at the end of the block; if the block ends before it has read all, the
    function is stopped.
    """
    reading_end, writing_end = os.pipe()

    def work() -> None:
        # Who reads no further says why.
        with suppress(BrokenPipeError), open(writing_end, "wb") as file:
            write(file)

    thread = WorkThread(work)
    with open(reading_end, "rb") as reader:
        thread.start()
        try:
            yield reader
        except BaseException:
            reader.close()
            thread.join()
            raise
        while reader.read(_CHUNK):
            pass
    thread.finish()


def write_rows(
    connection: Connection,
    schema: str,
    tables: Mapping[str, Sequence[str]],
    to: IO[bytes],
    advance: Callable[[int], None],
) -> None:
    """Write the rows of tables, by the named columns, as the connection's transaction sees them.

    They stream: no more than a row of a table is in memory. The transaction's texts have to be in UTF-8. `advance` is
    called with 1 for each table.
    """
    with (
        gzip.GzipFile(fileobj=to, mode="wb", compresslevel=_LEVEL, mtime=0) as packed,
        # Rows come one by one, and are short.
        BufferedWriter(cast(Any, packed), _CHUNK) as script,
    ):
        script.write(b"SET client_encoding = 'UTF8';\n")
        for table, columns in sorted(tables.items()):
            name = f"{quote_identifier(schema)}.{quote_identifier(table)}"
            chosen = ", ".join(map(quote_identifier, columns))
            script.write(f"COPY {name} ({chosen}) FROM stdin;\n".encode())
            # Names of the catalogue. Of a query, and not of the table: it is always run by this session.
            copy_rows(connection, f"SELECT {chosen} FROM {name}", None, script, layout="text")  # noqa: S608
            script.write(b"\\.\n")
            advance(1)


@contextmanager
def read_script(write: Callable[[IO[bytes]], None]) -> Iterator[IO[bytes]]:
    """Yield the script from a function's compressed output; raises BackupRefused if it can't be unpacked."""
    with piped(write) as compressed, gzip.GzipFile(fileobj=compressed, mode="rb") as script:
        try:
            yield cast(IO[bytes], script)
        except (EOFError, zlib.error, gzip.BadGzipFile):
            raise BackupRefused("The backup is damaged: its rows can't be unpacked.") from None
