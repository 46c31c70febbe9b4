"""The cost of a first load of a whole school: time, and memory of the process that serves it.

    python -m benchmarks.exporting [--students 1000] [--rounds 5]

Starts a PostgreSQL of its own from the wheel and makes a school with so many students, who take 15 subjects with 4
assessments each in three terms, then serves it with `school-service serve`. GET /export is read by gzip and plain, in
turns, by a client of this process. Prints the number of records, the size, the median seconds until the first byte and
until the last, and the rise of the process's highest resident memory (VmHWM) since the short lists.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import signal
import statistics
import subprocess
import sys
import time
from http.client import HTTPConnection
from uuid import UUID

from benchmarks.installation import installation
from benchmarks.long_lists import MIB, PATIENCE, highest_memory, listening
from benchmarks.schools import School
from school_service.app import create_app
from school_service.auth.tokens import issue_client_token
from tenants.registry.clients import create_client

CLIENT = "benchmark"
TERMS, SUBJECTS, ASSESSMENTS = 3, 15, 4


def read(address: tuple[str, int], path: str, headers: dict[str, str]) -> tuple[float, float, bytes]:
    """Read an answer; returns the seconds until its first byte, and its last, and its body."""
    connection = HTTPConnection(*address, timeout=PATIENCE)
    began = time.perf_counter()
    connection.request("GET", path, headers=headers)
    response = connection.getresponse()
    first = response.read(1)
    answered = time.perf_counter() - began
    content = first + response.read()
    took = time.perf_counter() - began
    connection.close()
    if response.status != 200:
        raise SystemExit(f"{path} answered {content!r}")
    return answered, took, content


def measure(process: int, address: tuple[str, int], school: UUID, token: str, rounds: int) -> None:
    """Read the export in turns, and print."""
    headers = {"Authorization": f"Bearer {token}", "X-SCHOOL-ID": str(school)}
    kinds = {"by gzip": {"Accept-Encoding": "gzip"}, "plain": {"Accept-Encoding": "identity"}}
    for _ in range(50):
        read(address, "/classrooms", headers)
    before = highest_memory(process)
    taken: dict[str, list[tuple[float, float]]] = {name: [] for name in kinds}
    sizes: dict[str, int] = {}
    for _ in range(rounds):
        for name, accepted in kinds.items():
            answered, took, content = read(address, "/export", headers | accepted)
            taken[name].append((answered, took))
            sizes[name] = len(content)
            lines = gzip.decompress(content) if content[:2] == b"\x1f\x8b" else content
        head = json.loads(lines.partition(b"\n")[0])
    print(f"{sum(head['resources'].values())} records, of which {head['resources']['scores']} scores")
    for name, times in taken.items():
        answered, took = (statistics.median(each) for each in zip(*times, strict=True))
        print(f"{name:8} {sizes[name] / MIB:6.1f} MiB   first byte {answered:5.2f} s   whole {took:5.2f} s")
    risen = highest_memory(process) - before
    print(f"memory: {before / MIB:.1f} MiB before, risen by {risen / MIB:.1f} MiB")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--students", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    with installation() as here:
        app = create_app(here.settings)
        with app.app_context():
            school = School(app, here.tenancy, options.students)
            school.score(school.teach(year=2025, terms=TERMS, subjects=SUBJECTS, assessments=ASSESSMENTS))
            school.analyze()
            with here.tenancy.admin.begin() as connection:
                create_client(connection, client_id=CLIENT, all_schools=True, all_permissions=True)
            key = app.extensions["school-service"].verifier.key
            token = issue_client_token(key, CLIENT, [])["access_token"]
        log = here.folder / "server.log"
        with log.open("wb") as errors:
            process = subprocess.Popen(
                [sys.executable, "-m", "school_service", "serve", "--port", "0"],
                env={**os.environ, **here.environment, "LOG_LEVEL": "INFO"},
                stderr=errors,
            )
        try:
            measure(process.pid, listening(process, log), school.id, token, options.rounds)
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(PATIENCE)


if __name__ == "__main__":
    main()
