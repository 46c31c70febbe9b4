"""Backing a school up: one school, of one moment, in one file."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any
from uuid import UUID

from sqlalchemy import Connection, text

from tenants.backups.archive import (
    DETAILS,
    Archive,
    Manifest,
    new_file,
    open_archive,
    readable_errors,
    refuse_existing,
    write_archive,
)
from tenants.backups.checksums import TableChecksum, table_checksums
from tenants.backups.restore_script import Step, steps
from tenants.clock import now
from tenants.connections.engines import execute_script, registry_url
from tenants.exceptions import SchoolDeleting
from tenants.operator_log import record_operation
from tenants.pg_programs import connection_argument, find_program, run_program
from tenants.progress import Progress, no_progress
from tenants.registry.schools import School, lock_school, schema_name
from tenants.tenancy import Tenancy

_DUMPED = "dumping contents of table"
# One of pg_dump's questions about the catalogue (which materialized views depend on which) is answered by a merge
# join that, among a thousand schools, reads 70 million rows: 20 seconds in place of 5 milliseconds.
_SETTINGS = "-c enable_mergejoin=off"


def back_up(
    tenancy: Tenancy, school_id: UUID, path: Path, *, replace: bool = False, progress: Progress = no_progress
) -> Manifest:
    """Write a school into a file, all of it as of one moment, while its users go on working.

    The file has its name once it is complete, on the disk, and has been read again. Raises BackupRefused where
    the name is taken and may not be replaced, or can't be written; UnknownSchool; SchoolDeleting;
    ProgramMissing, ProgramFailed.
    """
    refuse_existing(path, replace=replace)
    with (
        _locked_school(tenancy, school_id) as school,
        tenancy.admin.connect().execution_options(isolation_level="REPEATABLE READ") as connection,
        connection.begin(),
    ):
        dump = _Dump(tenancy, connection, school)
        with readable_errors("written"), new_file(path, replace=replace) as file:
            with dump.output(progress) as output:
                manifest = write_archive(file, output, dump.describe)
            with open_archive(file) as written:
                check_restorable(written)
        with tenancy.admin.begin() as log:
            record_operation(
                log, tenancy, school_id, "backup", new={"file": path.name, "sha256": manifest.sha256}
            )
    return manifest


@contextmanager
def _locked_school(tenancy: Tenancy, school_id: UUID) -> Iterator[School]:
    """Keep a school's tables from being changed or dropped for the length of the block; its rows are free."""
    with tenancy.admin.connect() as connection, connection.begin():
        school = lock_school(connection, school_id, shared=True)
        if school.deletion == "begun":
            backup = f" Its backup is {school.backup}." if school.backup else ""
            raise SchoolDeleting(f"The school {school_id} is being deleted: parts of it are gone.{backup}")
        yield school


class _Dump:
    """A dump of the snapshot in which the connection's transaction sees the school, and the checksums of its tables."""

    def __init__(self, tenancy: Tenancy, connection: Connection, school: School) -> None:
        self._tenancy, self._school = tenancy, school
        self._server = str(connection.execute(text("SHOW server_version")).scalar_one())
        driver: Any = connection.connection.dbapi_connection
        self._program = find_program("pg_dump", driver.server_version // 10000)
        self._taken_at = now()
        self._snapshot = connection.execute(text("SELECT pg_export_snapshot()")).scalar_one()
        if tenancy.roles:
            execute_script(connection, f'SET LOCAL ROLE "{school.schema}"')
        self._tables: dict[str, TableChecksum] = table_checksums(connection, school.schema)

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
                **{name: record[name] for name in DETAILS},
                "status": self._school.status,
            },
            revision=self._school.revision,
            postgresql=self._server,
            pg_dump=self._program.version,
            size=size,
            sha256=sha256,
            tables=self._tables,
        )


def check_restorable(archive: Archive) -> None:
    """Read the statements of a dump, without its rows, as restoring would; raises BackupRefused."""
    with script_of(archive, "--schema-only") as found:
        for _ in found:
            pass


@contextmanager
def script_of(
    archive: Archive,
    *options: str,
    schema: str | None = None,
    advance: Callable[[int], None] = lambda _bytes: None,
) -> Iterator[Iterator[Step]]:
    """Yield the steps that put a backup's dump into a schema, by default one of the same name."""
    old = schema_name(archive.manifest.school_id)
    with run_program(
        find_program("pg_restore", archive.manifest.pg_dump_major),
        ["--file=-", "--no-owner", "--no-privileges", *options],
        stdin=lambda to: archive.write_dump(to, advance),
    ) as script:
        yield steps(script, old, schema or old)
