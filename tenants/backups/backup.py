"""Backing a school up: one school, of one moment, in one file."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO
from uuid import UUID

from sqlalchemy import Connection, text

from tenants.backups.archive import (
    DETAILS,
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
from tenants.backups.checksums import (
    TableChecksum,
    blank_bytes,
    column_checksums,
    differences,
    table_checksums,
)
from tenants.backups.encryption import new_identity, parse_recipient
from tenants.backups.revision_tables import computed_tables, odd_parts, refuse_unknown, table_columns
from tenants.backups.row_script import piped, read_script, write_rows
from tenants.backups.row_sums import RowSum
from tenants.backups.table_rows import TableRows, read_tables
from tenants.clock import now
from tenants.connections.engines import execute_script
from tenants.exceptions import BackupRefused, SchoolDeleting
from tenants.operator_log import record_operation
from tenants.pg_programs import find_program, run_program
from tenants.progress import Progress, no_progress
from tenants.registry.schools import School, lock_school, record_backup, schema_name
from tenants.tenancy import Tenancy

# The rows are all of the tables', or an error; and the file is in UTF-8.
_SETTINGS = "SET LOCAL client_encoding TO 'UTF8'; SET LOCAL row_security TO off"
_TIME_LIMITS = ("statement_timeout", "lock_timeout", "idle_in_transaction_session_timeout")


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

    The file has its name once it is complete, on the disk, and has been read again as restoring reads it: every table's
    rows and checksum were those of the moment. It is encrypted to the public keys in `encrypt_to`, by default those of
    the installation, if it has any. Raises BackupRefused if the name is taken and may not be replaced, or can't be
    written, if the school's schema differs from its revision's, and if the file's contents differ from the school's;
    UnknownSchool; SchoolDeleting; ValueError for a text that is no key.
    """
    refuse_existing(path, replace=replace)
    recipients = [parse_recipient(key) for key in encrypt_to or tenancy.backup_recipients]
    # A key of this moment, which nobody has afterwards: with it, the encrypted file can be read again.
    reading_keys = [new_identity()] if recipients else []
    recipients += [key.to_public() for key in reading_keys]
    with (
        _locked_school(tenancy, school_id) as school,
        # On the school's server: a snapshot there is a snapshot of the school.
        tenancy.placement.admin_of(tenancy.admin, school_id) as engine,
        engine.connect().execution_options(
            isolation_level="REPEATABLE READ", postgresql_readonly=True
        ) as connection,
        connection.begin(),
        readable_errors("written"),
        new_file(path, replace=replace) as file,
    ):
        _end_time_limits(connection)
        _check_schema(tenancy, connection, school)
        moment = _Moment(tenancy, connection, school)
        with moment.script(progress) as script:
            manifest = write_archive(file, script, moment.describe, recipients)
        with open_archive(file, reading_keys) as written:
            moment.compare(written)
        with tenancy.admin.begin() as log:
            record_backup(log, school_id, manifest.created_at, manifest.sha256)
            record_operation(
                log, tenancy, school_id, "backup", new={"file": path.name, "sha256": manifest.sha256}
            )
    return manifest


@contextmanager
def _locked_school(tenancy: Tenancy, school_id: UUID) -> Iterator[School]:
    """Keep a school's tables from being changed or dropped for the length of the block; its rows are free."""
    with tenancy.admin.connect() as connection, connection.begin():
        _end_time_limits(connection)
        tenancy.placement.keep_in_place(connection, school_id)
        school = lock_school(connection, school_id, shared=True)
        if school.deletion == "begun":
            backup = f" Its backup is {school.backup}." if school.backup else ""
            raise SchoolDeleting(f"The school {school_id} is being deleted: parts of it are gone.{backup}")
        yield school


def _end_time_limits(connection: Connection) -> None:
    """Let the transaction take its time, regardless of the limits of its login or the database."""
    limits = [
        *_TIME_LIMITS,
        *["transaction_timeout"] * ((connection.dialect.server_version_info or ()) >= (17,)),
    ]
    execute_script(connection, "; ".join(f"SET LOCAL {limit} TO 0" for limit in limits))


def _check_schema(tenancy: Tenancy, connection: Connection, school: School) -> None:
    """See that a school's schema is its revision's, as restoring makes it; raises BackupRefused."""
    refuse_unknown(school.revision, tenancy.history)
    odd = odd_parts(tenancy, connection, school.schema, school.revision)
    if odd:
        raise BackupRefused(
            f"The school's schema is not that of its revision {school.revision}, and would not be restored as it is: "
            f"{', '.join(odd[:10])}."
        )


class _Moment:
    """A school as the connection's transaction sees it: its rows, and the rows and checksums of its tables."""

    def __init__(self, tenancy: Tenancy, connection: Connection, school: School) -> None:
        self._tenancy, self._school, self._connection = tenancy, school, connection
        self._server = str(connection.execute(text("SHOW server_version")).scalar_one())
        self._taken_at = now()
        self._columns = table_columns(connection, school.schema)
        computed = computed_tables(connection, school.schema)
        execute_script(connection, _SETTINGS)
        execute_script(connection, f'SET LOCAL ROLE "{school.schema}"')
        self._tables = table_checksums(connection, school.schema)
        # Columns that PostgreSQL computes are not in the file.
        self._written = self._tables | column_checksums(
            connection, school.schema, {table: self._columns[table] for table in computed}
        )

    @contextmanager
    def script(self, progress: Progress) -> Iterator[IO[bytes]]:
        """Yield the school's rows as a compressed script of COPY."""
        with progress(len(self._columns)) as advance:

            def write(to: IO[bytes]) -> None:
                write_rows(self._connection, self._school.schema, self._columns, to, advance)

            with piped(write) as script:
                yield script

    def describe(self, size: int, sha256: str) -> Manifest:
        """Describe a script of so many bytes, with this SHA-256, as its manifest does."""
        record = self._school.as_record()
        return Manifest(
            program=self._tenancy.program(),
            created_at=self._taken_at,
            school={
                "id": record["id"],
                **{name: record[name] for name in (*DETAILS, *LATER_DETAILS)},
                "status": self._school.status,
            },
            revision=self._school.revision,
            postgresql=self._server,
            pg_dump="",
            size=size,
            sha256=sha256,
            tables=self._tables,
        )

    def compare(self, archive: Archive) -> None:
        """See that a backup, read as restoring would, holds the rows of this moment; raises BackupRefused."""
        blanks = blank_bytes(self._connection)
        checksums: dict[str, TableChecksum] = {}
        with rows_of(archive, self._columns) as tables:
            for table in tables:
                rows = RowSum(blanks)
                for line in table.rows:
                    rows.add(line)
                checksums[table.table] = rows.checksum
        other = differences(self._written, checksums)
        if other:
            raise BackupRefused(f"What was written is not what the school holds: {', '.join(other[:10])}.")


@contextmanager
def rows_of(
    archive: Archive,
    tables: Mapping[str, Sequence[str]],
    *,
    advance: Callable[[int], None] = lambda _bytes: None,
) -> Iterator[Iterator[TableRows]]:
    """Yield the rows of a backup, table by table; `tables` has the columns of each existing table."""
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
