"""The cost of a request with one worker and with several, in processor time.

    python -m benchmarks.workers [--workers 2] [--rounds 5] [--seconds 3] [--clients 16]

Starts a PostgreSQL of its own from the wheel, one school with 40 classrooms, and two services on it: `serve`, and
`serve --workers N`. `wrk` (Debian's package) drives GET /classrooms on both in turn, round after round. Of each run it
prints the requests per second, and the processor time of a request: of the processes that serve (the supervisor among
them), and of PostgreSQL.

Requests per second of several workers say something only where each has a processor, and PostgreSQL and wrk have
theirs. Processor time does so on any machine: where a request costs the same with N workers as with one, N
processors do N times the work. So the ratio is N times the processor time of a request with one worker, divided by the
time with N: the work of N workers in the time of one if nothing else were short. The work of one process is bounded by
its interpreter, which computes on one processor: its part of a processor is printed, too.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil

from benchmarks.installation import Installation, installation
from benchmarks.processor_time import postgres_processes, processor_time
from benchmarks.throughput import Caller, drive, fetch
from school_service.app import create_app
from school_service.auth.tokens import issue_user_token
from school_service.core.database import db
from school_service.features.school.models import Classroom
from school_service.web.transactions import in_transaction
from tenants.connections.binding import SchoolBinding
from tenants.provisioning.create import create_school
from tenants.tenancy import Administrator

PATH = "/classrooms"
CLASSROOMS = 40


@dataclass
class Service:
    """A service that was started, on a port."""

    process: subprocess.Popen[bytes]
    port: int

    def processes(self) -> list[psutil.Process]:
        """Find its processes: itself, and its workers."""
        parent = psutil.Process(self.process.pid)
        return [parent, *parent.children()]


@contextmanager
def serving(environment: dict[str, str], port: int, workers: int) -> Iterator[Service]:
    """Serve while the block runs."""
    arguments = ["--port", str(port), "--workers", str(workers), "--threads", str(8 * workers)]
    process = subprocess.Popen(
        [sys.executable, "-m", "school_service", "serve", *arguments],
        env={**environment, "POOL_SIZE": str(10 * workers)},
        stderr=subprocess.DEVNULL,
    )
    try:
        yield Service(process, port)
    finally:
        process.terminate()
        process.wait()


def prepare(installed: Installation) -> Caller:
    """Make the school; answers its administrator."""
    school = create_school(
        installed.tenancy, name="Benchmark School", administrator=Administrator("admin", "a password")
    )
    app = create_app(installed.settings)
    with app.app_context(), in_transaction(SchoolBinding(school.id)):
        for number in range(CLASSROOMS):
            db.session.add(Classroom(name=f"Room {number}", level="junior"))
    with installed.tenancy.admin.connect() as connection:
        admin_id = connection.exec_driver_sql(
            f"SELECT id FROM \"{school.schema}\".users WHERE username = 'admin'"
        ).scalar_one()
    with app.app_context():
        token = issue_user_token(app.extensions["school-service"].verifier.key, admin_id, school.id, 1)
    return Caller(token["access_token"], str(school.id))


@dataclass
class Run:
    """The measures of a run: requests per second, processor time of a request, and the busiest process' part."""

    rate: float
    ours: float
    postgres: float
    busiest: float


def measure(service: Service, caller: Caller, folder: Path, *, seconds: int, clients: int) -> Run:
    """Drive a service for some seconds."""
    ours, theirs = service.processes(), postgres_processes(folder)
    before, of_each = (
        (processor_time(ours), processor_time(theirs)),
        [processor_time([process]) for process in ours],
    )
    begun = time.monotonic()
    rate = drive(service.port, PATH, caller, seconds=seconds, clients=clients)
    took = time.monotonic() - begun
    requests = rate * seconds
    return Run(
        rate,
        (processor_time(ours) - before[0]) / requests,
        (processor_time(theirs) - before[1]) / requests,
        max(processor_time([process]) - was for process, was in zip(ours, of_each, strict=True)) / took,
    )


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=int, default=3)
    parser.add_argument("--clients", type=int, default=16)
    arguments = parser.parse_args()
    if shutil.which("wrk") is None:
        raise SystemExit("wrk is not installed: apt-get install wrk")
    many = arguments.workers
    with installation() as installed:
        caller = prepare(installed)
        environment = {**installed.environment, "PATH": "/usr/bin:/bin", "LOG_LEVEL": "INFO"}
        with serving(environment, 18311, 1) as single, serving(environment, 18312, many) as several:
            services = {1: single, many: several}
            for service in services.values():
                fetch(service.port, PATH, caller)
            wait_for_workers(several, many)
            runs: dict[int, list[Run]] = {1: [], many: []}
            for number in range(arguments.rounds + 1):
                for workers, service in services.items():
                    run = measure(
                        service,
                        caller,
                        installed.folder,
                        seconds=arguments.seconds,
                        clients=arguments.clients,
                    )
                    if number:  # the first round warms up
                        runs[workers].append(run)
    for workers, measured in runs.items():
        print(
            f"{workers} worker{'s' * (workers > 1)}  {statistics.median(run.rate for run in measured):6.0f}/s  "
            f"{statistics.median(run.ours for run in measured) * 1e6:5.0f} µs of a processor a request, "
            f"{statistics.median(run.postgres for run in measured) * 1e6:5.0f} µs of PostgreSQL's; "
            f"the busiest process has {statistics.median(run.busiest for run in measured):.2f} of a processor"
        )
    cost = {workers: statistics.median(run.ours for run in measured) for workers, measured in runs.items()}
    print(f"{many} workers would do {many * cost[1] / cost[many]:.2f} times the work of one")


def wait_for_workers(service: Service, workers: int) -> None:
    """Wait until all workers are there and have begun to answer."""
    while len(service.processes()) < workers + 1:
        time.sleep(0.1)
    for _ in range(100):
        urllib.request.urlopen(f"http://127.0.0.1:{service.port}/health").read()
    time.sleep(2)


if __name__ == "__main__":
    main()
