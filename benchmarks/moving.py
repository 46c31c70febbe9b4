"""The time of backing a school up, and of deleting it, among a thousand others.

    python -m benchmarks.moving [--schools 1000]

Starts a PostgreSQL of its own from the wheel, with its default settings (64 locks a connection, commits are on the
disk), creates the schools, then backs each of them up and deletes it, one after the other. Prints median and
95th percentile of both, for the first hundred (while nearly all are there) and for the last, and the most locks of
one connection, read every few milliseconds in each twentieth school; on the way, both medians of each
hundred. The first failure ends it.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event, Thread
from uuid import UUID

from benchmarks.installation import installation
from tenants.backups.backup import back_up
from tenants.provisioning.create import create_school
from tenants.provisioning.delete import delete_school
from tenants.tenancy import Administrator, Tenancy

WINDOW = 100  # schools at the beginning, and at the end
WATCHED = 20  # one school in so many
INTERVAL = 0.002  # seconds

_LOCKS = """
SELECT coalesce(max(n), 0)
FROM (SELECT count(*) AS n FROM pg_locks l JOIN pg_stat_activity a ON a.pid = l.pid
      WHERE a.application_name = 'school-service admin' AND a.pid <> pg_backend_pid() GROUP BY a.pid) AS counted
"""


@dataclass
class Moved:
    """Milliseconds of each school's backup and deletion, in turn; most locks of one connection; bytes."""

    backups: list[float] = field(default_factory=list)
    deletions: list[float] = field(default_factory=list)
    backup_locks: int = 0
    deletion_locks: int = 0
    sizes: list[int] = field(default_factory=list)


def move(tenancy: Tenancy, schools: Sequence[UUID], folder: Path) -> Moved:
    """Back up and delete schools, one after the other; the files stay in the folder."""
    moved = Moved()
    for number, school_id in enumerate(schools):
        file = folder / f"{school_id}.zip"
        with _locks(tenancy, watching=number % WATCHED == 0) as seen:
            begun = time.perf_counter()
            back_up(tenancy, school_id, file)
            moved.backups.append((time.perf_counter() - begun) * 1000)
        moved.backup_locks = max(moved.backup_locks, *seen)
        moved.sizes.append(file.stat().st_size)
        with _locks(tenancy, watching=number % WATCHED == 0) as seen:
            begun = time.perf_counter()
            delete_school(tenancy, school_id, backup_folder=None)
            moved.deletions.append((time.perf_counter() - begun) * 1000)
        moved.deletion_locks = max(moved.deletion_locks, *seen)
        if (number + 1) % WINDOW == 0:
            latest = (statistics.median(times[-WINDOW:]) for times in (moved.backups, moved.deletions))
            print(number + 1, *(f"{milliseconds:.0f} ms" for milliseconds in latest), flush=True)
    return moved


@contextmanager
def _locks(tenancy: Tenancy, *, watching: bool) -> Iterator[list[int]]:
    """Yield a list that gets the most locks of one connection, again and again until the block ends."""
    seen, done = [0, 0], Event()
    if not watching:
        yield seen
        return

    def watch() -> None:
        with tenancy.admin.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            while not done.wait(INTERVAL):
                seen.append(connection.exec_driver_sql(_LOCKS).scalar_one())

    thread = Thread(target=watch)
    thread.start()
    try:
        yield seen
    finally:
        done.set()
        thread.join()


def show(moved: Moved) -> None:
    """Print the figures."""
    for what, times in (("backup", moved.backups), ("deletion", moved.deletions)):
        for where, part in (
            ("all", times),
            (f"first {WINDOW}", times[:WINDOW]),
            (f"last {WINDOW}", times[-WINDOW:]),
        ):
            tail = statistics.quantiles(part, n=20)[-1] if len(part) > 1 else part[0]
            print(f"{what:10} {where:10} median {statistics.median(part):8.1f} ms   95 % {tail:8.1f} ms")
    print(f"most locks of one connection: backup {moved.backup_locks}, deletion {moved.deletion_locks}")
    print(f"a backup's size: median {statistics.median(moved.sizes) / 1024:.0f} KiB")


def main() -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--schools", type=int, default=1000)
    count = parser.parse_args().schools
    with installation() as here:
        tenancy = here.tenancy
        administrator = Administrator("admin", "correct horse battery staple")
        schools = [
            create_school(tenancy, name=f"School {number}", administrator=administrator).id
            for number in range(count)
        ]
        print(f"{count} schools created", flush=True)
        show(move(tenancy, schools, here.folder))


if __name__ == "__main__":
    main()
