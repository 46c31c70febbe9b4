"""Creating and migrating many schools.

    python -m benchmarks.tenants [--schools 1000] [--workers 2] [--folder DIR] [--no-fsync] [--only SECTION …]

Starts a PostgreSQL of its own from the wheel, with its default settings (commits are on the disk, unless
--no-fsync). Then, one section after the other, on the same schools and by the real program where it is a verb's work:

creating     the schools; the last hundred all in all (with the slow hash of the administrator's password), one after
             the other, in turn with the first hundred of another installation; and backing one up on the way
nothing      `tenants migrate` with nothing to do
status       `tenants status`
serving      `serve`: its first answers, and its memory while it answers in up to 1,000 schools (Linux
             alone)
column       a column and an index for every school; the time of a single school, by median
broken       one school in which a migration fails; then mended, and run again
killed       SIGKILL when half of the schools are migrated, then run again
two runs     two programs at once

With --folder the schools stay, and another run with the same folder goes on with them. A school takes
2.5 MB. A migration also counts itself up in every school, so that one that ran twice would show. Prints a table of the
figures, each with its bound where there is one; exits with 1 if one is missed.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from math import ceil
from pathlib import Path
from random import Random
from typing import Any
from unittest.mock import patch
from uuid import uuid4

from sqlalchemy import text

from benchmarks.entering import private_memory
from benchmarks.installation import installation, path_of_program
from benchmarks.many_schools import backends
from benchmarks.throughput import Caller, fetch
from school_service.app import create_app
from school_service.auth.passwords import hash_password
from school_service.auth.tokens import issue_client_token
from school_service.config import Settings
from tenants.backups.backup import back_up
from tenants.migrations.migration_sql import TENANT, head
from tenants.placement import SCHOOLS_PER_LOGIN
from tenants.provisioning.create import create_school
from tenants.registry.clients import create_client
from tenants.registry.schools import School, list_schools
from tenants.tenancy import Administrator, Tenancy
from tests.tenants.migrations.histories import later_history

WINDOW = 100  # schools at the beginning, and at the end, that are created one after the other
PART = 500  # schools, after which their creation is printed
BACKUPS = 7
PORT = 18322
TENTHS = 10
VISITED = 1000  # schools at most that the server is asked for
ADMINISTRATOR = Administrator("admin", "correct horse battery staple")
# Counts itself up in every school.
COUNT = "UPDATE roles SET avatar_number = avatar_number + 1"

OTHERS = """
SELECT count(*) FROM pg_stat_activity
WHERE datname = current_database() AND application_name = 'school-service admin' AND pid <> pg_backend_pid()
"""


@dataclass
class Figures:
    """The measures, and whether each is within its bound."""

    rows: list[tuple[str, str, str, bool]] = field(default_factory=list)

    def add(self, what: str, value: float, unit: str = "", *, most: float | None = None) -> None:
        """Record a figure, and the most that it may be."""
        bound = "" if most is None else f"≤ {most:g}{unit}"
        self._add(what, f"{value:.4g}{unit}", bound, most is None or value <= most)

    def expect(self, what: str, value: Any, expected: Any) -> None:
        """Record a fact, and its expected value."""
        self._add(what, str(value), f"= {expected}", value == expected)

    def _add(self, what: str, value: str, bound: str, is_met: bool) -> None:
        self.rows.append((what, value, bound, is_met))
        print(f"{what:<58} {value:>12}  {bound:<12} {'' if is_met else 'MISSED'}".rstrip(), flush=True)

    @property
    def met(self) -> bool:
        """Tell whether every bound is met."""
        return all(is_met for *_, is_met in self.rows)


@dataclass
class Bench:
    """An installation to measure, of so many schools, and the settings of the program that migrates them."""

    tenancy: Tenancy
    folder: Path
    environment: dict[str, str]
    size: int
    workers: int
    figures: Figures = field(default_factory=Figures)
    schools: list[School] = field(default_factory=list)
    history: Path = TENANT
    on_disk: bool = True

    def find_schools(self) -> list[School]:
        """Find the schools that are there, by name."""
        with self.tenancy.admin.connect() as connection:
            return sorted(list_schools(connection), key=lambda school: school.name)

    def create_one(self) -> float:
        """Create the next school as `tenants create` does; return how long it took, in milliseconds."""
        begun = time.perf_counter()
        self.schools.append(self._create(len(self.schools)))
        return (time.perf_counter() - begun) * 1000

    def create_many(self, count: int) -> None:
        """Create so many schools, several at a time, whose administrators share the hash of one password."""
        hashed = hash_password(ADMINISTRATOR.password)
        begun, last = time.perf_counter(), len(self.schools)
        with (
            patch("school_service.seed.school.hash_password", lambda _password: hashed),
            ThreadPoolExecutor(self.workers) as threads,
        ):
            for school in threads.map(self._create, range(last, last + count)):
                self.schools.append(school)
                if len(self.schools) % PART == 0:
                    each = (time.perf_counter() - begun) / (len(self.schools) - last) * 1000
                    print(f"    {len(self.schools)} schools, the last {each:.0f} ms each", flush=True)
                    begun, last = time.perf_counter(), len(self.schools)

    def _create(self, number: int) -> School:
        return create_school(self.tenancy, name=f"School {number:05}", administrator=ADMINISTRATOR)

    def release(self, change: str) -> None:
        """Let the program have one more revision, which makes a change and counts itself."""
        number = len(list(self.folder.iterdir()))
        self.history = later_history(self.folder / str(number), [change, COUNT], origin=self.history)

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        """Start `tenants migrate`."""
        return subprocess.Popen(
            [sys.executable, "-m", "school_service", "tenants", "migrate", "--json", *arguments],
            env={**self.environment, "PYTHONPATH": path_of_program(self.history)},
            cwd=self.folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            encoding="utf-8",
        )

    def migrate(self) -> tuple[int, dict[str, Any]]:
        """Run `tenants migrate` to its end; its exit status and report."""
        return self.end(self.start("--workers", str(self.workers)))

    def run(self, *arguments: str) -> str:
        """Run a verb of the program; returns its output."""
        return subprocess.run(
            [sys.executable, "-m", "school_service", *arguments],
            env=self.environment,
            stdout=subprocess.PIPE,
            check=True,
            encoding="utf-8",
        ).stdout

    @staticmethod
    def end(process: subprocess.Popen[str]) -> tuple[int, dict[str, Any]]:
        """Wait for the program's end; its exit status and report."""
        printed, _ = process.communicate()
        return process.returncode, json.loads(printed)

    def execute(self, sql: str) -> Any:
        """Run a statement; its first value, if any."""
        with self.tenancy.admin.begin() as connection:
            result = connection.execute(text(sql))
            return result.scalar() if result.returns_rows else None

    def arrived(self) -> int:
        """Count the schools at the newest revision."""
        count: int = self.execute(
            f"SELECT count(*) FROM registry.schools WHERE revision = '{head(self.history)}'"
        )
        return count

    def migrated_times(self) -> set[int]:
        """Find out how often the schools were migrated: one number, unless something went wrong."""
        seeded = max(
            row["avatar_number"]
            for table, rows in self.tenancy.seed(ADMINISTRATOR)
            if table == "roles"
            for row in rows
        )
        return {
            self.execute(f"SELECT max(avatar_number) FROM {school.schema}.roles") - seeded
            for school in self.schools
        }


def creating(bench: Bench) -> None:
    """Create the schools, the last of them in turn with the first of an installation that has none.

    The first school is backed up when there are 10, 1,000 and all of them.
    """
    bench.schools = bench.find_schools()
    window = min(WINDOW, bench.size // 2)
    for size in (10, 1000, bench.size - window):
        if len(bench.schools) < size < bench.size:
            bench.create_many(size - len(bench.schools))
            backup(bench)
    few, many = [], []
    with installation(on_disk=bench.on_disk) as here:
        beside = Bench(here.tenancy, here.folder, {}, window, 1)
        while len(bench.schools) < bench.size:
            few.append(beside.create_one())
            many.append(bench.create_one())
    if len(many) > 1:
        # The first of all pays for the connection.
        first, last = statistics.median(few[1:]), statistics.median(many[1:])
        bench.figures.add(f"creating a school, the first {len(few)}, median", first, " ms")
        bench.figures.add(f"    the last {len(many)} of {bench.size}, median", last, " ms", most=150)
        bench.figures.add("    the last ÷ the first, in turn", last / first, most=1.5)
    backup(bench)


def backup(bench: Bench) -> None:
    """Back up the first school, again and again."""
    times = []
    for number in range(BACKUPS):
        begun = time.perf_counter()
        back_up(bench.tenancy, bench.schools[0].id, bench.folder / f"{number}.zip", replace=True)
        times.append((time.perf_counter() - begun) * 1000)
    bench.figures.add(
        f"backing up one of {len(bench.schools)} schools, least of {BACKUPS}", min(times), " ms"
    )
    bench.figures.add("    median", statistics.median(times), " ms")


def nothing(bench: Bench) -> None:
    """Migrate with nothing to do."""
    begun = time.perf_counter()
    status, report = bench.migrate()
    whole = time.perf_counter() - begun
    bench.figures.add("nothing to migrate", report["seconds"], " s", most=1)
    bench.figures.add("    the whole program, its start included", whole, " s")
    bench.figures.expect("    exit status", status, 0)
    bench.figures.expect("    schools left as they were", report["skipped"], bench.size)


def status(bench: Bench) -> None:
    """Ask for the state of all schools."""
    begun = time.perf_counter()
    printed = bench.run("tenants", "status", "--json")
    bench.figures.add("`tenants status`, the program's start included", time.perf_counter() - begun, " s")
    bench.figures.expect("    schools", len(json.loads(printed)), bench.size)


def serving(bench: Bench) -> None:
    """Start the server, and send a request to each of many schools, in an order by chance."""
    app, client = create_app(Settings.load(bench.environment)), f"benchmark-{uuid4().hex}"
    with bench.tenancy.admin.begin() as connection:
        create_client(connection, client_id=client, all_schools=True, all_permissions=True)
    with app.app_context():
        key = app.extensions["school-service"].verifier.key
        token = issue_client_token(key, client, [])["access_token"]
    callers = [Caller(token, str(school.id)) for school in bench.schools]
    callers = Random(0).sample(callers, min(VISITED, bench.size))
    begun = time.perf_counter()
    server = subprocess.Popen(
        [sys.executable, "-m", "school_service", "serve", "--port", str(PORT)],
        env={**bench.environment, "LOG_LEVEL": "ERROR"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        fetch(PORT, "/classrooms", callers[0])
        bench.figures.add("the server's start, to its first answer", time.perf_counter() - begun, " s")
        times, memory, backend = [], [], 0.0
        for part in range(TENTHS):
            for caller in callers[part * len(callers) // TENTHS : (part + 1) * len(callers) // TENTHS]:
                begun = time.perf_counter()
                fetch(PORT, "/classrooms", caller)
                times.append((time.perf_counter() - begun) * 1000)
            memory.append(private_memory(server.pid))
            backend = max([backend, *backends(bench.tenancy).values()])
    finally:
        server.kill()
        server.wait()
    bench.figures.add("    the next ten answers, median", statistics.median(times[:10]), " ms")
    bench.figures.add("    the first answer in each school, median", statistics.median(times), " ms")
    bench.figures.add(f"    the server's memory after {len(callers) // TENTHS} schools", memory[0], " MB")
    bench.figures.add(f"    after {len(callers)}", memory[-1], " MB", most=1.2 * memory[0])
    bench.figures.add("    the largest of its backends", backend, " MB", most=150)


def column(bench: Bench) -> None:
    """Add a column and an index to every school."""
    bench.release(
        "ALTER TABLE students ADD COLUMN motto varchar(120); CREATE INDEX ix_students_motto ON students (motto)"
    )
    status, report = bench.migrate()
    bench.figures.add(
        f"a column and an index, {bench.workers} workers", report["seconds"], " s", most=0.06 * bench.size
    )
    bench.figures.add("    for a school", report["seconds"] / bench.size * 1000, " ms")
    bench.figures.expect("    exit status", status, 0)
    bench.figures.expect("    schools migrated", len(report["migrated"]), bench.size)
    bench.figures.expect("    schools at the newest revision", bench.arrived(), bench.size)


def broken(bench: Bench) -> None:
    """Let one school's migration fail, mend the school, and run again."""
    school = bench.schools[bench.size // 2]
    bench.execute(f"ALTER TABLE {school.schema}.students ADD COLUMN crest text")
    bench.release("ALTER TABLE students ADD COLUMN crest text")
    status, report = bench.migrate()
    bench.figures.expect("one broken school: exit status", status, 1)
    bench.figures.expect("    schools migrated", len(report["migrated"]), bench.size - 1)
    named = [failure["name"] for failure in report["failed"]]
    bench.figures.expect("    schools named as failed", named, [school.name])
    bench.execute(f"ALTER TABLE {school.schema}.students DROP COLUMN crest")
    status, report = bench.migrate()
    touched = [migrated["name"] for migrated in report["migrated"]]
    bench.figures.expect("    mended and run again: exit status", status, 0)
    bench.figures.expect("    schools migrated by the second run", touched, [school.name])
    bench.figures.add("    the second run", report["seconds"], " s")


def killed(bench: Bench) -> None:
    """Kill the program when half of the schools are migrated, and run it again."""
    bench.release("ALTER TABLE students ADD COLUMN hostel varchar(120)")
    process = bench.start("--workers", str(bench.workers))
    while bench.arrived() < bench.size // 2 and process.poll() is None:
        time.sleep(0.05)
    process.kill()
    process.communicate()
    while bench.execute(OTHERS):
        # A commit that it had begun may still be completed.
        time.sleep(0.05)
    arrived = bench.arrived()
    bench.figures.expect("killed: with schools left to migrate", 0 < arrived < bench.size, True)
    status, report = bench.migrate()
    bench.figures.expect("    run again: exit status", status, 0)
    bench.figures.expect("    migrated by both together", arrived + len(report["migrated"]), bench.size)
    bench.figures.expect("    schools at the newest revision", bench.arrived(), bench.size)
    bench.figures.expect("    times that each was migrated so far", bench.migrated_times(), {3})


def two_runs(bench: Bench) -> None:
    """Run two programs at once."""
    bench.release("ALTER TABLE students ADD COLUMN club varchar(120)")
    both = [bench.start("--workers", str(bench.workers)) for _ in range(2)]
    ended = [bench.end(process) for process in both]
    bench.figures.expect("two runs at once: exit status", [status for status, _ in ended], [0, 0])
    shares = [len(report["migrated"]) for _, report in ended]
    bench.figures.expect("    migrated by both together", sum(shares), bench.size)
    bench.figures.expect("    each took part", min(shares) > 0, True)
    bench.figures.add("    the longer of them", max(report["seconds"] for _, report in ended), " s")
    bench.figures.expect("    schools at the newest revision", bench.arrived(), bench.size)
    bench.figures.expect("    times that each was migrated so far", bench.migrated_times(), {4})


SECTIONS: Sequence[Callable[[Bench], None]] = (
    creating,
    nothing,
    status,
    serving,
    column,
    broken,
    killed,
    two_runs,
)


@contextmanager
def installed(
    size: int, workers: int, folder: Path | None = None, *, on_disk: bool = True
) -> Iterator[Bench]:
    """Install a registry without schools; nothing of it is left at the end, unless a folder is given."""
    logins = ceil(size / SCHOOLS_PER_LOGIN)
    with installation(folder, logins=logins, on_disk=on_disk) as here:
        releases = here.folder / "releases"
        releases.mkdir(exist_ok=True)
        environment = {"PATH": os.environ["PATH"], **here.environment}
        yield Bench(here.tenancy, releases, environment, size, workers, on_disk=on_disk)


def main() -> None:
    """Measure, print, and fail where a bound is missed."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--schools", type=int, default=1000)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--folder", type=Path, help="where PostgreSQL's data lie, stay, and are found again")
    parser.add_argument("--no-fsync", action="store_true", help="do not wait for the disk")
    parser.add_argument("--only", nargs="+", choices=[section.__name__ for section in SECTIONS])
    arguments = parser.parse_args()
    if arguments.schools < 10:
        parser.error("--schools: at least 10")
    with installed(
        arguments.schools, arguments.workers, arguments.folder, on_disk=not arguments.no_fsync
    ) as bench:
        for section in SECTIONS:
            if section is creating or section.__name__ in (arguments.only or section.__name__):
                section(bench)
    if not bench.figures.met:
        raise SystemExit("A bound was missed.")


if __name__ == "__main__":
    main()
