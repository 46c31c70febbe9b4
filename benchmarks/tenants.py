"""Creating and migrating many schools.

    python -m benchmarks.tenants [--schools 1000] [--workers 2]

Starts a PostgreSQL of its own from the wheel, with its default settings (what is committed is on the disk). Then, one
section after the other, on the same schools and by the real program where it is a verb's work:

creating     the schools, all in all (with the slow hash of the administrator's password), one after the other
nothing      `tenants migrate` with nothing to do
column       a column and an index for every school; what a single school takes, by median
broken       one school in which a migration fails; then mended, and run again
killed       SIGKILL when half of the schools are migrated, then run again
two runs     two programs at once

A migration also counts itself up in every school, so that one that ran twice would show. Prints a table of the
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
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sqlalchemy import text

from benchmarks.installation import installation
from tenants.migrations.migration_sql import TENANT, head
from tenants.provisioning.create import create_school
from tenants.registry.schools import School
from tenants.tenancy import Administrator, Tenancy
from tests.tenants.migrations.histories import later_history, path_of_program

ADMINISTRATOR = Administrator("admin", "correct horse battery staple")
# Counts itself up in every school.
COUNT = "UPDATE roles SET avatar_number = avatar_number + 1"

OTHERS = """
SELECT count(*) FROM pg_stat_activity
WHERE datname = current_database() AND application_name = 'school-service admin' AND pid <> pg_backend_pid()
"""


@dataclass
class Figures:
    """What was measured, and whether it is within its bound."""

    rows: list[tuple[str, str, str, bool]] = field(default_factory=list)

    def add(self, what: str, value: float, unit: str = "", *, most: float | None = None) -> None:
        """Record a figure, and the most that it may be."""
        bound = "" if most is None else f"≤ {most:g}{unit}"
        self._add(what, f"{value:.4g}{unit}", bound, most is None or value <= most)

    def expect(self, what: str, found: Any, expected: Any) -> None:
        """Record a fact, and what it has to be."""
        self._add(what, str(found), f"= {expected}", found == expected)

    def _add(self, what: str, value: str, bound: str, is_met: bool) -> None:
        self.rows.append((what, value, bound, is_met))
        print(f"{what:<58} {value:>12}  {bound:<12} {'' if is_met else 'MISSED'}".rstrip(), flush=True)

    @property
    def met(self) -> bool:
        """Whether every bound is met."""
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
    """Create the schools."""
    times = []
    for number in range(bench.size):
        begun = time.perf_counter()
        school = create_school(bench.tenancy, name=f"School {number:05}", administrator=ADMINISTRATOR)
        times.append((time.perf_counter() - begun) * 1000)
        bench.schools.append(school)
    # The first of all pays for the connection.
    times = times[1:]
    part = min(100, len(times) // 2)
    ratio = statistics.median(times[-part:]) / statistics.median(times[:part])
    bench.figures.add("creating a school, median", statistics.median(times), " ms", most=150)
    bench.figures.add(f"last {part} ÷ first {part}, medians", ratio, most=1.5)


def nothing(bench: Bench) -> None:
    """Migrate with nothing to do."""
    begun = time.perf_counter()
    status, report = bench.migrate()
    whole = time.perf_counter() - begun
    bench.figures.add("nothing to migrate", report["seconds"], " s", most=1)
    bench.figures.add("    the whole program, its start included", whole, " s")
    bench.figures.expect("    exit status", status, 0)
    bench.figures.expect("    schools left as they were", report["skipped"], bench.size)


def column(bench: Bench) -> None:
    """Add a column and an index to every school."""
    bench.release(
        "ALTER TABLE students ADD COLUMN motto varchar(120); CREATE INDEX ix_students_motto ON students (motto)"
    )
    status, report = bench.migrate()
    bench.figures.add(f"a column and an index, {bench.workers} workers", report["seconds"], " s", most=60)
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
        # What it had begun to commit may still be committed.
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


SECTIONS: Sequence[Callable[[Bench], None]] = (creating, nothing, column, broken, killed, two_runs)


@contextmanager
def installed(size: int, workers: int) -> Iterator[Bench]:
    """Install a registry without schools; nothing of it is left at the end."""
    with installation() as here:
        releases = here.folder / "releases"
        releases.mkdir()
        yield Bench(here.tenancy, releases, {"PATH": os.environ["PATH"], **here.environment}, size, workers)


def main() -> None:
    """Measure, print, and fail where a bound is missed."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--schools", type=int, default=1000)
    parser.add_argument("--workers", type=int, default=2)
    arguments = parser.parse_args()
    if arguments.schools < 10:
        parser.error("--schools: at least 10")
    with installed(arguments.schools, arguments.workers) as bench:
        for section in SECTIONS:
            section(bench)
    if not bench.figures.met:
        raise SystemExit("A bound was missed.")


if __name__ == "__main__":
    main()
