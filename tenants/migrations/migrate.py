"""Bringing every school to the newest revision: each in one transaction, many at once, a failure stopping no other.

The progress stands in the registry and nowhere else: a school's revision is changed in one transaction with its tables.
So a run may end anywhere, be killed, and be begun again; and runs at the same time share the work, because each locks
the registry's row of its school of the moment.

A school created by an earlier release is moved to another owner first (`tenants.provisioning.ownership`), in
transactions of their own: it serves between them too.

A migration waits for the requests under way in its school, and new ones queue behind it. It gives up after
`LockRetry.lock_timeout`, lets them pass, and tries again after a pause.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Collection, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum, auto
from threading import Event, Lock
from typing import Any
from uuid import UUID

from psycopg2.errorcodes import DEADLOCK_DETECTED, LOCK_NOT_AVAILABLE
from sqlalchemy import ColumnElement, Connection, Table, delete, literal, select, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.exc import DBAPIError

from tenants.clock import now
from tenants.connections.engines import execute_script, mark_school, quote_identifier
from tenants.driver_errors import first_line, sqlstate
from tenants.exceptions import UnknownSchool
from tenants.migrations.migration_sql import head, revisions, upgrade_statements
from tenants.progress import Progress, no_progress
from tenants.provisioning.ownership import (
    SCHEMA_OWNER,
    is_old_owner,
    move_statements,
    schema_owner,
    table_grants,
)
from tenants.registry.installation import check_expansion
from tenants.registry.schools import failed_migrations, schema_name, schools, schools_to_lock
from tenants.signals import TO_STOP, handled
from tenants.tenancy import Tenancy

MAX_WORKERS = 20

_TRANSIENT = {LOCK_NOT_AVAILABLE, DEADLOCK_DETECTED}


@dataclass(frozen=True, slots=True)
class MigrationState:
    """A school's revision, its meaning to this program, and the last failure on its way.

    `state` is current; behind (or `old_owner`: requests can become the owner of its tables); failed (behind, and its
    last migration failed); newer (at a revision unknown to this program); or deleting (parts of it are gone already).
    """

    id: UUID
    name: str
    status: str
    deletion: str | None
    revision: str
    state: str
    old_owner: bool
    error: str | None
    failed_revision: str | None
    failed_at: datetime | None

    @property
    def is_behind(self) -> bool:
        """Whether there is something to migrate."""
        return self.state in {"behind", "failed"}

    def as_record(self) -> dict[str, Any]:
        """The state as an operator sees it, ready for JSON."""
        return {
            "id": str(self.id),
            "name": self.name,
            "status": "deleting" if self.deletion else self.status,
            "revision": self.revision,
            "state": self.state,
            "old_owner": self.old_owner,
            "error": self.error,
            "failed_revision": self.failed_revision,
            "failed_at": self.failed_at and self.failed_at.isoformat(),
        }


@dataclass(frozen=True, slots=True)
class LockRetry:
    """How long a migration waits for locks, in seconds, and how long it pauses before each further try."""

    lock_timeout: float = 2.0
    pauses: tuple[float, ...] = (0.5, 1.0, 2.0, 4.0, 8.0)


class Outcome(Enum):
    """The result for a school of a run, or of one transaction of it.

    BUSY: another transaction had locked its row. MOVED: some of it has another owner, and there is more to do.
    """

    MIGRATED = auto()
    MOVED = auto()
    FAILED = auto()
    NOTHING_TO_DO = auto()
    BUSY = auto()
    NOT_BEGUN = auto()


@dataclass(slots=True)
class MigrationReport:
    """The results of a run.

    `skipped` counts the schools left as they are by this run: current, newer, not selected, migrated by another run, or
    deleted. `remaining` counts the schools not begun when it was stopped. `seconds` is its length.
    """

    revision: str
    migrated: list[MigrationState] = field(default_factory=list)
    failed: list[tuple[MigrationState, str]] = field(default_factory=list)
    newer: list[MigrationState] = field(default_factory=list)
    skipped: int = 0
    remaining: int = 0
    stopped: bool = False
    seconds: float = 0.0

    @property
    def complete(self) -> bool:
        """Whether nothing failed and nobody stopped it."""
        return not self.failed and not self.stopped

    def note(self, school: MigrationState, outcome: Outcome, error: str) -> None:
        """Add the result for a school."""
        if outcome is Outcome.MIGRATED:
            self.migrated.append(school)
        elif outcome is Outcome.FAILED:
            self.failed.append((school, error))
        elif outcome is Outcome.NOT_BEGUN:
            self.remaining += 1
        else:
            self.skipped += 1

    def as_record(self) -> dict[str, Any]:
        """The report, ready for JSON."""
        return {
            "revision": self.revision,
            "migrated": [_id_and_name(school) for school in self.migrated],
            "failed": [{**_id_and_name(school), "error": error} for school, error in self.failed],
            "newer": [{**_id_and_name(school), "revision": school.revision} for school in self.newer],
            "skipped": self.skipped,
            "remaining": self.remaining,
            "seconds": round(self.seconds, 3),
        }


def _id_and_name(school: MigrationState) -> dict[str, str]:
    return {"id": str(school.id), "name": school.name}


def list_migration_states(connection: Connection, tenancy: Tenancy) -> list[MigrationState]:
    """List the migration state of every school, by name; one query, of the registry and the owners of schemas."""
    newest, known = head(tenancy.history), set(revisions(tenancy.history))
    rows = connection.execute(
        select(
            schools.c.id,
            schools.c.name,
            schools.c.status,
            schools.c.deletion,
            schools.c.revision,
            failed_migrations.c.error,
            failed_migrations.c.revision.label("failed_revision"),
            failed_migrations.c.failed_at,
            SCHEMA_OWNER.label("owner"),
        )
        .outerjoin(failed_migrations, failed_migrations.c.school_id == schools.c.id)
        .order_by(schools.c.name, schools.c.id)
    )

    def state(row: Any, old_owner: bool) -> str:
        if row.deletion == "begun":
            return "deleting"
        if row.revision not in known:
            return "newer"
        if row.revision == newest and not old_owner:
            return "current"
        return "failed" if row.error else "behind"

    def migration_state(row: Any) -> MigrationState:
        columns = dict(row._mapping)
        old_owner = is_old_owner(tenancy, schema_name(row.id), columns.pop("owner"))
        return MigrationState(**columns, state=state(row, old_owner), old_owner=old_owner)

    return [migration_state(row) for row in rows]


def migrate_schools(
    tenancy: Tenancy,
    *,
    workers: int = 2,
    school_id: UUID | None = None,
    retry_failed: bool = False,
    retry: LockRetry = LockRetry(),
    stop: Event | None = None,
    progress: Progress = no_progress,
) -> MigrationReport:
    """Bring schools lagging behind to the newest revision: all of them, one, or those of an earlier failure.

    A failing school stays as it is; the reason is stored in the registry, and the others go on. Once `stop` is set, the
    work under way is finished and nothing new begun. The steps of `progress` are the schools to migrate. Raises
    UnknownSchool; NotInstalled if `tenants init` of this program has not run, before any school is touched.
    """
    begun = time.monotonic()
    with tenancy.admin.connect() as connection:
        check_expansion(connection)
        schools = list_migration_states(connection, tenancy)
    if school_id is not None:
        schools = [school for school in schools if school.id == school_id]
        if not schools:
            raise UnknownSchool(f"No school has the id {school_id}.")
    report = MigrationReport(
        head(tenancy.history), newer=[school for school in schools if school.state == "newer"]
    )
    behind = [school for school in schools if school.is_behind and (school.error or not retry_failed)]
    report.skipped = len(schools) - len(behind)
    stop = stop or Event()
    if behind:
        with progress(len(behind)) as advance:
            for school, outcome, error in _MigrationRun(tenancy, retry, stop).through(behind, workers):
                report.note(school, outcome, error)
                advance(1)
    report.migrated.sort(key=lambda school: school.name)
    report.failed.sort(key=lambda failure: failure[0].name)
    report.stopped = stop.is_set()
    report.seconds = time.monotonic() - begun
    return report


_Result = tuple[MigrationState, Outcome, str]


class _MigrationRun:
    """A run over the schools of a tenancy; sets `stop` itself if the database has gone."""

    def __init__(self, tenancy: Tenancy, retry: LockRetry, stop: Event) -> None:
        self.stop = stop
        self._tenancy, self._retry = tenancy, retry
        self._newest = head(tenancy.history)
        self._known = set(revisions(tenancy.history))
        # The migrations' SQL, by the revision that a school comes from.
        self._scripts: dict[str, list[str]] = {}
        self._writing = Lock()

    def through(self, behind: Collection[MigrationState], workers: int) -> Iterator[_Result]:
        """Migrate schools. Those with rows locked by others come last, and are waited for."""
        for revision in {school.revision for school in behind} - {self._newest}:
            # A migration that can't be written as SQL ends the run before it has begun.
            self._script(revision)
        with ThreadPoolExecutor(workers, "migrate") as pool:
            try:
                busy = []
                for result in self._all(pool, behind, wait=False):
                    if result[1] is Outcome.BUSY:
                        busy.append(result[0])
                    else:
                        yield result
                yield from self._all(pool, busy, wait=True)
            except BaseException:
                self.stop.set()
                raise

    def _all(
        self, pool: ThreadPoolExecutor, chosen: Iterable[MigrationState], *, wait: bool
    ) -> Iterator[_Result]:
        for done in as_completed([pool.submit(self._migrate, school, wait) for school in chosen]):
            yield done.result()

    def _migrate(self, school: MigrationState, wait: bool) -> _Result:
        pauses = iter(self._retry.pauses)
        moved = False
        while not self.stop.is_set():
            try:
                outcome = self._attempt(school, wait)
                if outcome is Outcome.MOVED:
                    moved = True
                    continue
                if moved and outcome is Outcome.NOTHING_TO_DO:
                    outcome = Outcome.MIGRATED
                return school, outcome, ""
            except DBAPIError as error:
                pause = next(pauses, None) if sqlstate(error) in _TRANSIENT else None
                if pause is None:
                    return school, *self._fail(school, error)
                self.stop.wait(pause)
        return school, Outcome.NOT_BEGUN, ""

    def _attempt(self, school: MigrationState, wait: bool) -> Outcome:
        with self._tenancy.admin.begin() as connection:
            self._limit_waiting(connection)
            rows = schools_to_lock(connection)
            revision = connection.execute(
                select(rows.c.revision)
                # A school whose tables are being dropped is left alone.
                .where(rows.c.id == school.id, _is_whole(rows))
                # Grants that refer to the school go on: they need its key alone.
                .with_for_update(key_share=True, skip_locked=not wait)
            ).scalar_one_or_none()
            if revision is None:
                # Locked, or being deleted: waiting will tell.
                return Outcome.NOTHING_TO_DO if wait else Outcome.BUSY
            if revision not in self._known:
                # Another, newer program was here.
                return Outcome.NOTHING_TO_DO
            mark_school(connection, school.id)
            schema = schema_name(school.id)
            owner = schema_owner(connection, schema)
            if owner is not None and is_old_owner(self._tenancy, schema, owner):
                execute_script(
                    connection, ";\n".join(move_statements(self._tenancy, connection, schema, owner))
                )
                return Outcome.MOVED
            if revision == self._newest:
                # Another run was here.
                return Outcome.NOTHING_TO_DO
            self._apply(connection, school, revision, owner)
        return Outcome.MIGRATED

    def _limit_waiting(self, connection: Connection) -> None:
        execute_script(connection, self._tenancy.placement.limit_waiting(self._retry.lock_timeout))

    def _apply(
        self, connection: Connection, school: MigrationState, revision: str, owner: str | None
    ) -> None:
        schema = schema_name(school.id)
        batch = [f'SET LOCAL search_path TO "{schema}", pg_temp', *self._script(revision)]
        if self._tenancy.becomes_roles and owner is not None:
            batch.insert(0, f"SET LOCAL ROLE {quote_identifier(owner)}")
        # Tables that are new are open to nobody but their owner.
        batch += [*table_grants(schema), "SET LOCAL ROLE NONE"]
        for part in self._tenancy.placement.migration_batches(schema, batch):
            execute_script(connection, part)
        # Last: on several servers one transaction at a time writes to a table of the registry.
        connection.execute(update(schools).where(schools.c.id == school.id).values(revision=self._newest))
        connection.execute(delete(failed_migrations).where(failed_migrations.c.school_id == school.id))

    def _script(self, revision: str) -> list[str]:
        with self._writing:
            if revision not in self._scripts:
                self._scripts[revision] = upgrade_statements(revision, self._newest, self._tenancy.history)
            return self._scripts[revision]

    def _fail(self, school: MigrationState, error: DBAPIError) -> tuple[Outcome, str]:
        reason = _reason(error)
        pauses = iter(self._retry.pauses)
        while True:
            try:
                stored = self._store_failure(school, sqlstate(error), reason)
                # Deleted meanwhile, or migrated by another run: that is no failure.
                return (Outcome.FAILED, reason) if stored else (Outcome.NOTHING_TO_DO, "")
            except DBAPIError as why:
                # On several servers, a transaction that writes to two tables of the registry may be the victim of a
                # deadlock.
                pause = next(pauses, None) if sqlstate(why) == DEADLOCK_DETECTED else None
                if pause is None:
                    if sqlstate(why) is None:
                        # The database has gone, and would be for the next school.
                        self.stop.set()
                    return Outcome.FAILED, f"{reason} (not stored in the registry: {_reason(why)})"
                self.stop.wait(pause)

    def _store_failure(self, school: MigrationState, state: str | None, reason: str) -> bool:
        # Of a school that another run has migrated meanwhile, nothing is left to fail.
        unmigrated = self._known if school.old_owner else self._known - {self._newest}
        failure = {"revision": self._newest, "sqlstate": state, "error": reason, "failed_at": now()}
        columns = failed_migrations.c
        statement = (
            insert(failed_migrations)
            .from_select(
                ["school_id", *failure],
                select(
                    schools.c.id, *(literal(value, columns[name].type) for name, value in failure.items())
                ).where(schools.c.id == school.id, schools.c.revision.in_(unmigrated), _is_whole(schools)),
            )
            .on_conflict_do_update(index_elements=[columns.school_id], set_=failure)
        )
        with self._tenancy.admin.begin() as connection:
            self._limit_waiting(connection)
            return connection.execute(statement).rowcount == 1


def _is_whole(rows: Table) -> ColumnElement[bool]:
    return rows.c.deletion.is_distinct_from("begun")


def _reason(error: DBAPIError) -> str:
    line = first_line(error.orig)
    state = sqlstate(error)
    return f"{state}: {line}" if state else line


@contextmanager
def stopped_by_signals() -> Iterator[Event]:
    """Turn the signals to stop a process (SIGINT, SIGTERM, SIGHUP) into an event, for the length of the block."""
    stop = Event()

    def on_signal(*_: Any) -> None:
        stop.set()
        # Not by way of sys.stderr, which may be in the middle of a line.
        os.write(2, b"Finishing what is under way.\n")

    with handled([each for each in TO_STOP if signal.getsignal(each) != signal.SIG_IGN], on_signal):
        yield stop
