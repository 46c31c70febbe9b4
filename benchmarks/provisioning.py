"""The time of creating a school, in milliseconds.

    python -m benchmarks.provisioning [--schools 30]

Starts a PostgreSQL of its own from the wheel, with its default settings (commits are on the disk),
and creates schools one after the other. Prints median and 95th percentile of creating a school, all in all
(with the slow hash of the administrator's password), and of the one statement batch alone. The first
school of all is left out: it pays for the connection. Then, in turn, the median processor time of
`school-service tenants create` and `--help` as programs, without PostgreSQL's.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from uuid import uuid4

from benchmarks.installation import installation
from tenants.connections.engines import execute_script
from tenants.provisioning.create import create_school, creation_statements
from tenants.tenancy import Administrator, Tenancy

PROGRAMS = 7
ADMINISTRATOR = Administrator("admin", "correct horse battery staple")


def main() -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--schools", type=int, default=30)
    schools = parser.parse_args().schools
    with installation() as here:
        tenancy = here.tenancy
        create(tenancy)
        show("all in all", [measured(lambda: create(tenancy)) for _ in range(schools)])
        show("the statement batch", [batch(tenancy) for _ in range(schools)])
        verbs = (("tenants", "create", "King's College"), ("--help",))
        used = [[program(*verb, **here.environment) for verb in verbs] for _ in range(PROGRAMS)]
        for verb, seconds in zip(verbs, zip(*used, strict=True), strict=True):
            name = " ".join(verb[:2])
            print(f"school-service {name}: {statistics.median(seconds):.2f} s of processor time")


def program(*arguments: str, **settings: str) -> float:
    """Run a verb as a program; tell the seconds of processor time that it took."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(
        [sys.executable, "-m", "school_service", *arguments],
        env={**os.environ, **settings},
        stdout=subprocess.DEVNULL,
        check=True,
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def create(tenancy: Tenancy) -> None:
    """Create a school as the command line does."""
    create_school(tenancy, name="Queen's College, Yaba", administrator=ADMINISTRATOR)


def batch(tenancy: Tenancy) -> float:
    """Create a school; time the statement batch alone."""
    rows = list(tenancy.seed(ADMINISTRATOR))
    with tenancy.admin.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        statements = creation_statements(
            tenancy, connection, school_id=uuid4(), name="King's College", rows=rows
        )
        return measured(lambda: execute_script(connection, ";\n".join(statements)))


def measured(work: Callable[[], None]) -> float:
    """Time some work, in milliseconds."""
    begun = time.perf_counter()
    work()
    return (time.perf_counter() - begun) * 1000


def show(what: str, times: list[float]) -> None:
    """Print the median and the 95th percentile."""
    p95 = statistics.quantiles(times, n=20, method="inclusive")[18]
    median = statistics.median(times)
    print(f"{what}: median {median:.0f} ms, 95th percentile {p95:.0f} ms ({len(times)} schools)")


if __name__ == "__main__":
    main()
