"""The cost of Citus: the service on a cluster beside the service on PostgreSQL alone.

    python -m benchmarks.distributed --plain postgresql://… --citus postgresql://… [--rounds 10] [--seconds 1]

Both addresses are of superusers, and of empty databases on this machine: the second of the coordinator of a cluster
whose nodes have joined it (docs/scaling.md). Each gets a school with 40 classrooms, 90 users and a class of 40 with
four scores each, one with a class of 200 students, and a server of its own. `wrk` drives both in turn, in many short
rounds, each first in every other round, with 1 and with 8 connections.

Prints for each request its cost in processor time, of the server and the backends of its connections on all nodes, and
of the backends alone; and the requests per second. Each with the ratio of Citus to PostgreSQL alone: the
median of the rounds' ratios, and in brackets their quartiles. Other work on the machine changes the requests per second
more than the processor time. Then how long creating a school took. The databases stay as they are made: drop them
afterwards.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

import psycopg2
from sqlalchemy import make_url
from sqlalchemy.engine import URL

from benchmarks import gradebook_floor, read_floor
from benchmarks.throughput import Caller, drive, fetch, prepare_sheets
from school_service.app import create_app, tenancy_of
from school_service.auth.signing_key import SigningKey
from school_service.auth.tokens import issue_user_token
from school_service.config import Settings
from school_service.web.transactions import in_transaction
from tenants.connections.binding import SchoolBinding
from tenants.provisioning.create import create_school
from tenants.registry.installation import install
from tenants.tenancy import Administrator

CONNECTIONS = (1, 8)
PORTS = {"plain": 18311, "citus": 18312}
# The backends of requests, and of connections between nodes; not the backend of this query.
_BACKENDS = """
    SELECT pid FROM pg_stat_activity
    WHERE datname = current_database() AND backend_type = 'client backend' AND pid <> pg_backend_pid()
"""
_NODES = "SELECT nodename, nodeport FROM pg_dist_node WHERE groupid <> 0"


@dataclass(frozen=True)
class Installation:
    """An installation that is measured: its settings, its callers, their requests, and the time of creating schools."""

    environment: dict[str, str]
    lists: Caller
    sheets: Caller
    scoresheet: str
    creating: float


def prepare(address: str, login: str, *, distributed: bool) -> Installation:
    """Install, and make the schools."""
    admin = make_url(address)
    environment = {
        "DATABASE_URL": admin.set(username=login, password="secret").render_as_string(hide_password=False),
        "ADMIN_DATABASE_URL": admin.render_as_string(hide_password=False),
        "SIGNING_KEY": SigningKey.generate().to_pem(),
        "TENANT_DISTRIBUTED": "on" if distributed else "off",
        "LOG_LEVEL": "ERROR",
    }
    settings = Settings.load(environment)
    tenancy = tenancy_of(settings)
    install(tenancy)
    begun = time.monotonic()
    school = create_school(tenancy, name="Lists", administrator=Administrator("admin", "a password"))
    creating = time.monotonic() - begun
    app = create_app(settings)
    with app.app_context():
        with in_transaction(SchoolBinding(school.id)):
            scoresheet = read_floor.fill()
        with tenancy.admin.connect() as connection:
            users = f'"{school.schema}".users'
            admin_id = connection.exec_driver_sql(
                f"SELECT id FROM {users} WHERE username = 'admin'"
            ).scalar_one()
        # As autovacuum does before long.
        with tenancy.admin.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            for table in ("classrooms", "users", "students", "subject_enrollments", "gradebook_entries"):
                connection.exec_driver_sql(f'VACUUM ANALYZE "{school.schema}".{table}')
        token = issue_user_token(app.extensions["school-service"].verifier.key, admin_id, school.id, 1)
        sheets, _ = prepare_sheets(app, tenancy)
    return Installation(
        environment, Caller(token["access_token"], str(school.id)), sheets, scoresheet, creating
    )


def make_scores(installation: Installation, folder: Path, most: int) -> Path:
    """Make the assessments for so many scores, and the script with which wrk enters them."""
    dsn = installation.environment["ADMIN_DATABASE_URL"].replace("+psycopg2", "")
    with closing(psycopg2.connect(dsn)) as connection, connection, connection.cursor() as cursor:
        cursor.execute(f'SET search_path TO "{installation.sheets.schema}"')
        cursor.execute(gradebook_floor.STUDENTS)
        students = cursor.fetchall()
        cursor.execute(gradebook_floor.MAKE_ASSESSMENTS, {"number": most // len(students) + 1})
        assessments = [assessment for (assessment,) in cursor.fetchall()]
    folder.mkdir()
    return gradebook_floor.script(folder, assessments, students)


class Processors:
    """The processor time of a process that serves, and of the backends of its connections on every node."""

    def __init__(self, installation: Installation, service: int) -> None:
        admin = make_url(installation.environment["ADMIN_DATABASE_URL"])
        distributed = installation.environment["TENANT_DISTRIBUTED"] == "on"
        self._service = service
        self._seen: dict[int, float] = {}
        with ExitStack() as opened:
            self._nodes = [opened.enter_context(closing(self._connect(admin)))]
            if distributed:
                with self._nodes[0].cursor() as cursor:
                    cursor.execute(_NODES)
                    others = [admin.set(host=host, port=port) for host, port in cursor]
                self._nodes += [opened.enter_context(closing(self._connect(node))) for node in others]
            self._opened = opened.pop_all()

    def close(self) -> None:
        """Close the connections with which the backends are found."""
        self._opened.close()

    def milliseconds(self) -> tuple[float, float]:
        """Tell it until now, of all and of the backends alone, while no request is under way."""
        for node in self._nodes:
            with node.cursor() as cursor:
                cursor.execute(_BACKENDS)
                # The time of a backend that has ended since stays in the sum.
                self._seen.update((pid, of_process(pid)) for (pid,) in cursor)
        backends = sum(self._seen.values())
        return of_process(self._service) + backends, backends

    @staticmethod
    def _connect(url: URL) -> Any:
        dsn = url.set(drivername="postgresql").render_as_string(hide_password=False)
        connection = psycopg2.connect(dsn)
        connection.autocommit = True
        return connection


def of_process(pid: int) -> float:
    """Tell the milliseconds of processor time that all threads of a process have used."""
    threads = Path(f"/proc/{pid}/task").glob("*/schedstat")
    return sum(int(thread.read_text().split()[0]) for thread in threads) / 1_000_000


@dataclass(frozen=True)
class Round:
    """The cost of a request in one round: milliseconds of all processes and of the backends, and the time of one."""

    processors: float
    backends: float
    seconds: float


class Bench:
    """Both installations, each with a server of its own."""

    def __init__(self, installations: dict[str, Installation], *, rounds: int, seconds: int) -> None:
        self._installations = installations
        self._rounds, self._seconds = rounds, seconds
        self._scores_of_a_run = (seconds + 1) * gradebook_floor.SCORES_PER_SECOND
        self._firsts = {name: count(step=self._scores_of_a_run) for name in installations}
        self._processors: dict[str, Processors] = {}

    @contextmanager
    def serving(self) -> Iterator[None]:
        """Run the servers, and wait until they answer."""
        with ExitStack() as stack:
            for name, installation in self._installations.items():
                arguments = ["--threads", "8", "--serve", "ours", str(PORTS[name])]
                child = subprocess.Popen(
                    [sys.executable, "-m", "benchmarks.throughput", *arguments],
                    env={**os.environ, **installation.environment},
                    stderr=subprocess.DEVNULL,
                )
                stack.callback(child.wait)
                stack.callback(child.kill)
                fetch(PORTS[name], "/classrooms", installation.lists)
                self._processors[name] = Processors(installation, child.pid)
                stack.callback(self._processors[name].close)
            yield

    def scripts(self, folder: Path) -> dict[str, Path]:
        """Write the scripts with which wrk enters scores."""
        most = (self._rounds + 1) * len(CONNECTIONS) * self._scores_of_a_run
        return {
            name: make_scores(installation, folder / name, most)
            for name, installation in self._installations.items()
        }

    def measure(self, label: str, path: str, scripts: dict[str, Path] | None = None) -> None:
        """Let both answer requests in turn, and print their costs; an empty path is the score sheet's."""
        for clients in CONNECTIONS:
            rounds: dict[str, list[Round]] = {name: [] for name in self._installations}
            for number in range(self._rounds + 1):
                names = [*self._installations]
                for name in reversed(names) if number % 2 else names:
                    of_round = self._drive(name, path, clients, scripts)
                    if number:  # the first round warms up
                        rounds[name].append(of_round)
            print(
                f"{label:<16} {clients} connections",
                _compared("ms of processors", rounds, lambda cost: cost.processors),
                _compared("of backends", rounds, lambda cost: cost.backends),
                _compared(
                    "requests/s", rounds, lambda cost: cost.seconds, lambda seconds: 1 / seconds, ".0f"
                ),
                sep="  ",
                flush=True,
            )

    def _drive(self, name: str, path: str, clients: int, scripts: dict[str, Path] | None) -> Round:
        installation, processors = self._installations[name], self._processors[name]
        before = processors.milliseconds()
        rate = drive(
            PORTS[name],
            path or installation.scoresheet,
            installation.sheets if scripts else installation.lists,
            seconds=self._seconds,
            clients=clients,
            script=scripts[name] if scripts else None,
            first=next(self._firsts[name]) if scripts else 0,
        )
        after = processors.milliseconds()
        requests = rate * self._seconds
        return Round((after[0] - before[0]) / requests, (after[1] - before[1]) / requests, 1 / rate)


def _compared(
    unit: str,
    rounds: dict[str, list[Round]],
    cost: Callable[[Round], float],
    shown: Callable[[float], float] = float,
    digits: str = ".2f",
) -> str:
    """Write the median cost of either, as it is shown, and the ratio of the costs of Citus to the other's."""
    plain, citus = ([cost(turn) for turn in rounds[name]] for name in ("plain", "citus"))
    ratios = [of_citus / of_plain for of_plain, of_citus in zip(plain, citus, strict=True)]
    lower, middle, upper = statistics.quantiles(ratios)
    medians = [f"{shown(statistics.median(costs)):{digits}}" for costs in (plain, citus)]
    return f"{unit} {medians[0]} {medians[1]} ratio {middle:.2f} ({lower:.2f} to {upper:.2f})"


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--plain", required=True)
    parser.add_argument("--citus", required=True)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--seconds", type=int, default=1)
    arguments = parser.parse_args()
    if arguments.rounds < 2:
        parser.error("--rounds must be 2 or more.")
    if shutil.which("wrk") is None:
        raise SystemExit("wrk is not installed: apt-get install wrk")
    installations = {
        "plain": prepare(arguments.plain, "benchmark_plain", distributed=False),
        "citus": prepare(arguments.citus, "benchmark_citus", distributed=True),
    }
    bench = Bench(installations, rounds=arguments.rounds, seconds=arguments.seconds)
    with tempfile.TemporaryDirectory(prefix="school-benchmark-") as folder, bench.serving():
        print("each: PostgreSQL alone, Citus, Citus ÷ PostgreSQL alone")
        bench.measure("GET /classrooms", "/classrooms")
        bench.measure("GET /users", f"/users?{read_floor.PAGE}")
        bench.measure("GET scoresheet", "")
        bench.measure("POST /gradebooks", gradebook_floor.PATH, bench.scripts(Path(folder)))
    took = [f"{installation.creating * 1000:.0f} ms" for installation in installations.values()]
    print(f"creating a school  {took[0]} {took[1]}")


if __name__ == "__main__":
    main()
