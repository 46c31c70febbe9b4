"""Backing a school up: one school, of one moment, in one file."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any
from uuid import UUID

from sqlalchemy import Connection, text

from tenants.backups.archive import (
    DETAILS,
    DUMP,
    LATER_DETAILS,
    SCRIPT,
    Archive,
    Manifest,
    new_file,
    open_archive,
    readable_errors,
    refuse_existing,
    write_archive,
)
from tenants.backups.checksums import TableChecksum, table_checksums
from tenants.backups.encryption import new_identity, parse_recipient
from tenants.backups.revision_tables import odd_parts, refuse_unknown, table_columns
from tenants.backups.row_script import piped, read_script, write_rows
from tenants.backups.table_rows import TableRows, read_tables
from tenants.clock import now
from tenants.connections.engines import execute_script, registry_url
from tenants.distribution.nodes import engine_of_school, lock_out_moves
from tenants.exceptions import BackupRefused, SchoolDeleting
from tenants.operator_log import record_operation
from tenants.pg_programs import connection_argument, find_program, run_program
from tenants.progress import Progress, no_progress
from tenants.registry.schools import School, lock_school, schema_name
from tenants.tenancy import Tenancy

_DUMPED = "dumping contents of table"
# One of pg_dump's questions about the catalogue (which materialized views depend on which) is answered by a merge
# join that, among a thousand schools, reads 70 million rows: 20 seconds in place of 5 milliseconds.
_SETTINGS = "-c enable_mergejoin=off"
_READ_SIZE = 1 << 18  # bytes


def back_up(
    tenancy: Tenancy,
    school_id: UUID,
    path: Path,
    *,
    replace: bool = False,
    encrypt_to: Sequence[str] = (),
    progress: Progress = no_progress,
) -> Manifest:
    """Write a school into a file, all of it as of one moment, while its users go on working.

    The file has its name once it is complete, on the disk, and has been read again as restoring reads it. It is
    encrypted to the public keys in `encrypt_to`, by default those of the installation, if it has any. Raises
    BackupRefused where the name is taken and may not be replaced, or can't be written, and where the school's schema
    is not what its revision's is; UnknownSchool; SchoolDeleting; ProgramMissing, ProgramFailed; ValueError for
    a key that is none.
    """
    refuse_existing(path, replace=replace)
    recipients = [parse_recipient(key) for key in encrypt_to or tenancy.backup_recipients]
    # A key of this moment, which nobody has afterwards: with it, what was encrypted can be read again.
    reading_keys = [new_identity()] if recipients else []
    recipients += [key.to_public() for key in reading_keys]
    with (
        _locked_school(tenancy, school_id) as school,
        # On Citus the school's node: what is of one moment there is of one moment of the school.
        engine_of_school(tenancy, school_id) as engine,
        engine.connect().execution_options(isolation_level="REPEATABLE READ") as connection,
        connection.begin(),
        readable_errors("written"),
        new_file(path, replace=replace) as file,
    ):
        _check_schema(tenancy, connection, school)
        dump = (_ScriptedDump if tenancy.distributed else _Dump)(tenancy, connection, school)
        with dump.output(progress) as output:
            manifest = write_archive(file, output, dump.describe, recipients, member=dump.member)
        with open_archive(file, reading_keys) as written:
            check_restorable(written, dump.columns)
        with tenancy.admin.begin() as log:
            record_operation(
                log, tenancy, school_id, "backup", new={"file": path.name, "sha256": manifest.sha256}
            )
    return manifest


@contextmanager
def _locked_school(tenancy: Tenancy, school_id: UUID) -> Iterator[School]:
    """Keep a school's tables from being changed or dropped for the length of the block; its rows are free."""
    with tenancy.admin.connect() as connection, connection.begin():
        if tenancy.distributed:
            # First: a move that is under way waits for whoever has locked a row.
            lock_out_moves(connection, school_id)
        school = lock_school(connection, school_id, shared=True)
        if school.deletion == "begun":
            backup = f" Its backup is {school.backup}." if school.backup else ""
            raise SchoolDeleting(f"The school {school_id} is being deleted: parts of it are gone.{backup}")
        yield school


def _check_schema(tenancy: Tenancy, connection: Connection, school: School) -> None:
    """See that a school's schema is that of its revision, as restoring makes it; raises BackupRefused."""
    refuse_unknown(school.revision, tenancy.history)
    odd = odd_parts(tenancy, connection, school.schema, school.revision)
    if odd:
        raise BackupRefused(
            f"The school's schema is not that of its revision {school.revision}, and would not be restored as it is: "
            f"{', '.join(odd[:10])}."
        )


class _Dump:
    """A dump of the snapshot in which the connection's transaction sees the school, and the checksums of its tables."""

    member = DUMP
    pg_dump = ""

    def __init__(self, tenancy: Tenancy, connection: Connection, school: School) -> None:
        self._tenancy, self._school, self._connection = tenancy, school, connection
        self._server = str(connection.execute(text("SHOW server_version")).scalar_one())
        self._prepare()
        self._taken_at = now()
        self._snapshot = connection.execute(text("SELECT pg_export_snapshot()")).scalar_one()
        self.columns = table_columns(connection, school.schema)
        if tenancy.roles:
            execute_script(connection, f'SET LOCAL ROLE "{school.schema}"')
        self._tables: dict[str, TableChecksum] = table_checksums(connection, school.schema)

    def _prepare(self) -> None:
        driver: Any = self._connection.connection.dbapi_connection
        self._program = find_program("pg_dump", driver.server_version // 10000)
        self.pg_dump = self._program.version

    @contextmanager
    def output(self, progress: Progress) -> Iterator[IO[bytes]]:
        """Yield what pg_dump writes."""
        database, secrets = connection_argument(registry_url(self._tenancy.admin_url), settings=_SETTINGS)
        arguments = [
            *("--format=custom", f"--schema={self._school.schema}", "--strict-names", "--encoding=UTF8"),
            *("--no-owner", "--no-privileges", "--no-comments", "--no-security-labels", "--no-publications"),
            *(f"--snapshot={self._snapshot}", "--no-password", "--verbose", database),
        ]
        if self._tenancy.roles:
            arguments.append(f"--role={self._school.schema}")
        with progress(len(self._tables)) as advance:

            def on_line(line: str) -> None:
                if _DUMPED in line:
                    advance(1)

            with run_program(self._program, arguments, on_line=on_line, environment=secrets) as output:
                yield output

    def describe(self, size: int, sha256: str) -> Manifest:
        """Describe a dump of so many bytes, with this SHA-256, as its manifest does."""
        record = self._school.as_record()
        return Manifest(
            program=self._tenancy.version,
            created_at=self._taken_at,
            school={
                "id": record["id"],
                **{name: record[name] for name in (*DETAILS, *LATER_DETAILS)},
                "status": self._school.status,
            },
            revision=self._school.revision,
            postgresql=self._server,
            pg_dump=self.pg_dump,
            size=size,
            sha256=sha256,
            tables=self._tables,
        )


class _ScriptedDump(_Dump):
    """A dump that the session of the snapshot writes itself, on the node of Citus that has the school."""

    member = SCRIPT

    def _prepare(self) -> None:
        """Need no program."""

    @contextmanager
    def output(self, progress: Progress) -> Iterator[IO[bytes]]:
        """Yield a compressed script of COPY."""
        with progress(len(self._tables)) as advance:

            def write(to: IO[bytes]) -> None:
                write_rows(self._connection, self._school.schema, self.columns, to, advance)

            with piped(write) as output:
                yield output


def check_restorable(archive: Archive, tables: Mapping[str, Sequence[str]]) -> None:
    """Read a backup as restoring would, and count the rows; raises BackupRefused.

    `tables` has the columns of each table that there is.
    """
    counts = dict.fromkeys(archive.manifest.tables, 0)
    with rows_of(archive, tables) as found:
        for table in found:
            while table.rows.read(_READ_SIZE):
                pass
            counts[table.table] = table.rows.count
    other = [name for name, table in archive.manifest.tables.items() if counts[name] != table.rows]
    if other:
        raise BackupRefused(f"The backup does not hold the rows that the school has: {', '.join(other)}.")


@contextmanager
def rows_of(
    archive: Archive,
    tables: Mapping[str, Sequence[str]],
    *,
    advance: Callable[[int], None] = lambda _bytes: None,
) -> Iterator[Iterator[TableRows]]:
    """Yield the rows of a backup, table by table; `tables` has the columns of each table that there is."""
    schema = schema_name(archive.manifest.school_id)
    if archive.manifest.member == SCRIPT:
        with read_script(lambda to: archive.write_dump(to, advance)) as script:
            yield read_tables(script, schema, tables)
        return
    with run_program(
        find_program("pg_restore", archive.manifest.pg_dump_major),
        ["--format=custom", "--file=-", "--data-only", "--section=data", "--no-owner", "--no-privileges"],
        stdin=lambda to: archive.write_dump(to, advance),
    ) as script:
        yield read_tables(script, schema, tables)
