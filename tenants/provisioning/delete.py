"""Deleting a school: closed, backed up, then dropped in batches of tables.

A school of many tables and indexes needs more locks at once than PostgreSQL has room for by default. So its tables are
dropped a few at a time, and its row of the registry notes the progress: if a deletion is killed on the way, the next
one goes on from there.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import UUID

from psycopg2.errorcodes import LOCK_NOT_AVAILABLE
from sqlalchemy import Connection, delete, text, update
from sqlalchemy.exc import OperationalError

from tenants.backups.backup import back_up
from tenants.clock import now
from tenants.connections.engines import execute_script, quote_identifier
from tenants.driver_errors import sqlstate
from tenants.exceptions import SchoolBusy, SchoolDeleting, UnknownSchool
from tenants.operator_log import record_operation
from tenants.progress import Progress, no_progress
from tenants.provisioning.ownership import become_owner
from tenants.registry.schools import School, find_school, lock_school, schools
from tenants.relations import RELATIONS_OF_SCHEMA
from tenants.tenancy import Tenancy

# Locks of one transaction: as many as PostgreSQL has room for in each connection by default.
LOCKS = 64
# Of these, the transaction itself and the registry's row take some.
_TAKEN = 8
WAIT_TIMEOUT = 60  # seconds for transactions under way; the serving login's statements may take as long
_PAUSE = 0.02  # seconds

# Each table, and how many locks dropping it takes at most: on itself and its row's types, its indexes, its TOAST table
# with an index, its constraints; for a foreign key, on either side, also on four triggers and the other table. Tables
# that others refer to come last. Only conditions with an index in the catalogue: it is large where schools are many.
_TABLES = text(
    f"""
    WITH tables AS MATERIALIZED (
        SELECT c.oid, c.relname, c.reltoastrelid FROM {RELATIONS_OF_SCHEMA} WHERE c.relkind IN ('r', 'p')
    ), constraints AS MATERIALIZED (
        SELECT k.conrelid, k.confrelid, CASE k.contype WHEN 'f' THEN 6 ELSE 1 END AS locks
        FROM tables t JOIN pg_constraint k ON k.conrelid = t.oid
    )
    SELECT t.relname,
        3 + (SELECT count(*) FROM pg_index i WHERE i.indrelid = t.oid)
        + CASE WHEN t.reltoastrelid = 0 THEN 0 ELSE 2 END
        + (SELECT coalesce(sum(k.locks), 0) FROM constraints k WHERE t.oid IN (k.conrelid, k.confrelid)) AS locks
    FROM tables t
    ORDER BY (SELECT count(*) FROM constraints k WHERE k.confrelid = t.oid), t.relname
    """  # noqa: S608 -- a text of our own
)
# Transactions of these logins: each holds a lock on its own virtual id, which everybody may see.
_UNDER_WAY = text(
    """
    SELECT l.virtualtransaction FROM pg_locks l JOIN pg_stat_activity a ON a.pid = l.pid
    WHERE l.locktype = 'virtualxid' AND l.granted AND a.datname = current_database()
        AND a.usename = ANY (:logins) AND a.pid <> pg_backend_pid()
    """
)


@dataclass(frozen=True, slots=True)
class DeletedSchool:
    """A deleted school, and the file of its backup, if any.

    `resumed`: an earlier deletion had begun to drop it, and made the file or not.
    """

    id: UUID
    name: str
    backup: str | None
    resumed: bool

    def as_record(self) -> dict[str, Any]:
        """The school as an operator sees it, ready for JSON."""
        return {"id": str(self.id), "name": self.name, "deleted": True, "backup": self.backup}


def delete_school(
    tenancy: Tenancy,
    school_id: UUID,
    *,
    backup_folder: Path | None,
    timeout: float = WAIT_TIMEOUT,
    progress: Progress = no_progress,
) -> DeletedSchool:
    """Delete a school for good: its tables, its schema, its role, its row and its name in grants.

    First it is closed to its users, with the answer that there is no such school, and their work under way is waited
    for, for `timeout` seconds at most; then it is backed up into the folder, unless there is None. If this fails, it is
    opened again and stays as it was. A deletion broken off earlier is gone on with; its backup was made then.

    Raises UnknownSchool; SchoolBusy if the work under way does not end; SchoolDeleting if the school was opened again
    meanwhile; and the errors of `back_up`.
    """
    school = before = _close(tenancy, school_id)
    try:
        if before.deletion != "begun":
            with _opened_again_on_failure(tenancy, school_id):
                _wait_for_requests(tenancy, school_id, timeout)
                backup = _back_up(tenancy, school_id, backup_folder, progress) if backup_folder else None
                school = _begin_dropping(tenancy, school_id, backup)
        _drop_tables(tenancy, school, timeout, progress)
        _drop_school(tenancy, school, timeout)
    except UnknownSchool:
        # Another run has ended the deletion.
        pass
    return DeletedSchool(school.id, school.name, school.backup, before.deletion == "begun")


def _close(tenancy: Tenancy, school_id: UUID) -> School:
    with tenancy.admin.begin() as connection:
        school = lock_school(connection, school_id)
        if school.deletion is None:
            _set(connection, school_id, deletion="closed")
            record_operation(
                connection, tenancy, school_id, "school", old={"deletion": None}, new={"deletion": "closed"}
            )
        return school


@contextmanager
def _opened_again_on_failure(tenancy: Tenancy, school_id: UUID) -> Iterator[None]:
    try:
        yield
    except BaseException:
        with tenancy.admin.begin() as connection:
            opened = connection.execute(
                update(schools)
                .where(schools.c.id == school_id, schools.c.deletion == "closed")
                .values(deletion=None)
            )
            if opened.rowcount:
                record_operation(
                    connection,
                    tenancy,
                    school_id,
                    "school",
                    old={"deletion": "closed"},
                    new={"deletion": None},
                )
        raise


def _wait_for_requests(tenancy: Tenancy, school_id: UUID, timeout: float) -> None:
    """Wait for the transactions possibly bound to the school before it was closed, on its server."""
    logins = list(tenancy.placement.all_logins)
    deadline = time.monotonic() + timeout
    with (
        tenancy.placement.admin_of(tenancy.admin, school_id) as engine,
        engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection,
    ):

        def under_way() -> set[str]:
            return set(connection.execute(_UNDER_WAY, {"logins": logins}).scalars())

        waited_for = under_way()
        while waited_for := waited_for & under_way():
            if time.monotonic() > deadline:
                raise SchoolBusy("Requests that may be at work in the school did not end: try again.")
            time.sleep(_PAUSE)


def _back_up(tenancy: Tenancy, school_id: UUID, folder: Path, progress: Progress) -> str | None:
    path = folder.resolve() / f"{school_id}-{now():%Y%m%dT%H%M%S%f}Z.zip"
    try:
        back_up(tenancy, school_id, path, progress=progress)
    except SchoolDeleting:
        # Another run has begun to drop it: the backup is that one's.
        return None
    return str(path)


def _begin_dropping(tenancy: Tenancy, school_id: UUID, backup: str | None) -> School:
    with tenancy.admin.begin() as connection:
        school = lock_school(connection, school_id)
        if school.deletion is None:
            raise SchoolDeleting(f"The school {school_id} was opened again meanwhile: it stays.")
        if school.deletion == "closed":
            _set(connection, school_id, deletion="begun", backup=backup)
        return find_school(connection, school_id)


def _set(connection: Connection, school_id: UUID, **values: str | None) -> None:
    connection.execute(update(schools).where(schools.c.id == school_id).values(**values))


def _drop_tables(tenancy: Tenancy, school: School, timeout: float, progress: Progress) -> None:
    with tenancy.admin.connect() as connection:
        tables = connection.execute(_TABLES, {"schema": school.schema}).all()
    with progress(len(tables)) as advance:
        for batch in _batches(tables):
            names = ", ".join(
                f"{quote_identifier(school.schema)}.{quote_identifier(table)}" for table in batch
            )
            with _dropping(tenancy, school, timeout) as connection:
                # Another run may have been faster.
                execute_script(connection, f"DROP TABLE IF EXISTS {names} CASCADE")
            advance(len(batch))


def _batches(tables: Iterable[Any]) -> Iterator[list[str]]:
    """Divide tables into batches with room for their locks in one transaction; a batch has one table at least."""
    batch: list[str] = []
    room = LOCKS - _TAKEN
    for table in tables:
        if batch and table.locks > room:
            yield batch
            batch, room = [], LOCKS - _TAKEN
        batch.append(table.relname)
        room -= table.locks
    if batch:
        yield batch


def _drop_school(tenancy: Tenancy, school: School, timeout: float) -> None:
    with _dropping(tenancy, school, timeout) as connection:
        execute_script(connection, f"DROP SCHEMA IF EXISTS {quote_identifier(school.schema)} CASCADE")
        execute_script(connection, "SET LOCAL ROLE NONE")
        execute_script(connection, f"DROP ROLE IF EXISTS {quote_identifier(school.schema)}")
        # The grants that name it, and other rows of it in the registry, go with it.
        connection.execute(delete(schools).where(schools.c.id == school.id))


@contextmanager
def _dropping(tenancy: Tenancy, school: School, timeout: float) -> Iterator[Connection]:
    """Begin a transaction as the owner of a school's schema, its row locked; raises SchoolBusy, UnknownSchool."""
    try:
        with tenancy.admin.begin() as connection:
            execute_script(connection, tenancy.placement.limit_waiting(timeout))
            lock_school(connection, school.id)
            if tenancy.becomes_roles:
                become_owner(connection, school.schema)
            yield connection
    except OperationalError as error:
        if sqlstate(error) != LOCK_NOT_AVAILABLE:
            raise
        raise SchoolBusy(
            f"Something else holds the school {school.id}; its deletion goes on when delete is run again."
        ) from None
