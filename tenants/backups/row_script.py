"""The rows of a school as a script of COPY, compressed: written by one session of the server, and read again.

pg_dump has a session of its own. On a node of Citus another session sees another moment, and reads a table by a
connection of the node to itself, as whoever asks: so there the session that has the snapshot writes the rows.
"""

from __future__ import annotations

import gzip
import os
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import IO, Any, cast

from sqlalchemy import Connection

from tenants.connections.engines import quote_identifier
from tenants.exceptions import BackupRefused
from tenants.pg_programs import WorkThread

_LEVEL = 6  # of gzip, which is what pg_dump compresses with by default


@contextmanager
def piped(write: Callable[[IO[bytes]], None]) -> Iterator[IO[bytes]]:
    """Yield what a function writes to a file, while it writes in a thread of its own.

    What it raises is raised at the end of the block; where the block ends before it has read all, it is stopped.
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
        while reader.read(1 << 18):
            pass
    thread.finish()


def write_rows(
    connection: Connection,
    schema: str,
    tables: Mapping[str, Sequence[str]],
    to: IO[bytes],
    advance: Callable[[int], None],
) -> None:
    """Write the rows of tables, by the columns that are named, as the connection's transaction sees them.

    `advance` is called with 1 for each table.
    """
    driver: Any = connection.connection.dbapi_connection
    with (
        gzip.GzipFile(fileobj=to, mode="wb", compresslevel=_LEVEL, mtime=0) as script,
        driver.cursor() as cursor,
    ):
        script.write(b"SET client_encoding = 'UTF8';\n")
        for table, columns in sorted(tables.items()):
            name = f"{quote_identifier(schema)}.{quote_identifier(table)}"
            chosen = ", ".join(map(quote_identifier, columns))
            script.write(f"COPY {name} ({chosen}) FROM stdin;\n".encode())
            # Names of the catalogue; of a query, and not of the table, so that Citus reads it in this session.
            cursor.copy_expert(f"COPY (SELECT {chosen} FROM {name}) TO STDOUT", script)  # noqa: S608
            script.write(b"\\.\n")
            advance(1)


@contextmanager
def read_script(write: Callable[[IO[bytes]], None]) -> Iterator[IO[bytes]]:
    """Yield the script that a function writes compressed; raises BackupRefused where it can't be unpacked."""
    with piped(write) as compressed, gzip.GzipFile(fileobj=compressed, mode="rb") as script:
        try:
            yield cast(IO[bytes], script)
        except (EOFError, zlib.error, gzip.BadGzipFile):
            raise BackupRefused("The backup is damaged: its rows can't be unpacked.") from None
