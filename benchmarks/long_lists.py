"""The memory of a bare list of very many rows in the process that serves it.

    python -m benchmarks.long_lists [--rows 100000]

Starts a PostgreSQL of its own from the wheel and makes a school with so many classrooms, then serves them with
`school-service serve` in a process of its own: once with names in plain letters, once with a wide character in one of
them, which makes Python's texts up to four times as long. Each list is read by a client that takes its time, so that
the part still to be sent counts too. Prints the size of the answer, and the rise of the process's highest resident
memory (VmHWM) since a short list.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from urllib.parse import urlsplit
from uuid import UUID

from benchmarks.installation import Installation, installation
from school_service.app import create_app
from school_service.auth.tokens import issue_client_token
from tenants.provisioning.create import create_school
from tenants.registry.clients import create_client
from tenants.tenancy import Administrator

MIB = 2**20
CLIENT = "benchmark"
PAUSE = 0.5  # seconds before the client reads: the server has then handed over all that it can
PATIENCE = 60  # seconds


def fill(here: Installation, rows: int, name: str) -> UUID:
    """Make a school with so many classrooms; return its id."""
    school = create_school(here.tenancy, name=name, administrator=Administrator("admin", "a long password"))
    with here.tenancy.admin.begin() as connection:
        connection.exec_driver_sql(
            f'INSERT INTO "{school.schema}".classrooms (id, name, level) '
            "SELECT gen_random_uuid(), %s || ' ' || number, 'Junior Secondary School' "
            "FROM generate_series(1, %s) AS number",
            (name, rows),
        )
        connection.exec_driver_sql(f'ANALYZE "{school.schema}".classrooms')
    return school.id


def highest_memory(process: int) -> int:
    """Read the highest resident memory of a process so far, in bytes."""
    for line in Path(f"/proc/{process}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    raise SystemExit("the kernel tells no VmHWM")


def read(address: tuple[str, int], path: str, token: str, school: UUID) -> tuple[int, str]:
    """Read an answer slowly; return the length of its body and its SHA-256."""
    digest, length = hashlib.sha256(), 0
    with socket.create_connection(address, timeout=PATIENCE) as connection:
        connection.sendall(
            f"GET {path} HTTP/1.1\r\nHost: school\r\nConnection: close\r\n"
            f"Authorization: Bearer {token}\r\nX-SCHOOL-ID: {school}\r\n\r\n".encode()
        )
        stream = connection.makefile("rb")
        status = stream.readline()
        if b" 200 " not in status:
            raise SystemExit(f"{path} answered {status!r}")
        while stream.readline().strip():
            pass
        time.sleep(PAUSE)
        while part := stream.read(2**16):
            digest.update(part)
            length += len(part)
    return length, digest.hexdigest()


def measure(here: Installation, token: str, schools: dict[str, UUID], few: UUID) -> None:
    """Serve each list in a process of its own, and print."""
    environment = {**os.environ, **here.environment, "LOG_LEVEL": "INFO"}
    for kind, school in schools.items():
        log = here.folder / f"{school}.log"
        with log.open("wb") as errors:
            process = subprocess.Popen(
                [sys.executable, "-m", "school_service", "serve", "--port", "0"],
                env=environment,
                stderr=errors,
            )
        try:
            address = listening(process, log)
            for _ in range(20):
                read(address, "/classrooms", token, few)
            before = highest_memory(process.pid)
            began = time.perf_counter()
            length, digest = read(address, "/classrooms", token, school)
            took = time.perf_counter() - began
            risen = highest_memory(process.pid) - before
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(PATIENCE)
        print(
            f"{kind:16} {length / MIB:6.1f} MiB   before {before / MIB:6.1f} MiB   risen {risen / MIB:6.1f} MiB   "
            f"{risen / length:4.1f} times the answer   {took:4.1f} s   {digest[:12]}"
        )


def listening(process: subprocess.Popen[bytes], log: Path) -> tuple[str, int]:
    """Wait until a server says where it listens."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline and process.poll() is None:
        address = log.read_text().partition('"address":"')[2].partition('"')[0]
        if address:
            parts = urlsplit(address)
            return str(parts.hostname), int(parts.port or 0)
        time.sleep(0.05)
    raise SystemExit(f"the server did not start: {log.read_text()[-2000:]}")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=100_000)
    options = parser.parse_args()
    with installation() as here:
        schools = {
            "plain letters": fill(here, options.rows, "Form room"),
            "a wide character": fill(here, options.rows, "Form room 😀"),
        }
        few = fill(here, 40, "Few")
        with here.tenancy.admin.begin() as connection:
            create_client(connection, client_id=CLIENT, all_schools=True, all_permissions=True)
        app = create_app(here.settings)
        with app.app_context():
            key = app.extensions["school-service"].verifier.key
            token = issue_client_token(key, CLIENT, [])["access_token"]
        measure(here, token, schools, few)


if __name__ == "__main__":
    main()
