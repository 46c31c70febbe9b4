"""What Citus costs: the service on a cluster beside the service on PostgreSQL alone, in requests per second.

    python -m benchmarks.distributed --plain postgresql://… --citus postgresql://… [--rounds 5] [--seconds 4]

Both addresses are of superusers, and of empty databases: the second of the coordinator of a cluster whose nodes have
joined it (docs/scaling.md). Each gets a school with 40 classrooms, 90 users and a class of 40 with four scores each,
one with a class of 200 students, and a server of its own. `wrk` drives both in turn, round after round, with 1 and with
8 connections. Prints for each request the median per second of either and their ratio; and how long creating a school
took. The databases stay as they are made: drop them afterwards.
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
from contextlib import closing
from dataclasses import dataclass
from itertools import count
from pathlib import Path

import orjson
import psycopg2
from sqlalchemy import make_url

from benchmarks import gradebook_floor, read_floor
from benchmarks.throughput import Caller, drive, fetch, prepare_sheets
from school_service.app import create_app, tenancy_of
from school_service.auth.signing_key import SigningKey
from school_service.auth.tokens import issue_user_token
from school_service.config import Settings
from school_service.web.request_scope import in_transaction
from tenants.connections.binding import SchoolBinding
from tenants.provisioning.create import create_school
from tenants.registry.installation import install
from tenants.tenancy import Administrator

CONNECTIONS = (1, 8)


@dataclass(frozen=True)
class Installation:
    """An installation that is measured: its settings, its callers, what they request, and how long creating took."""

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
        assessments = [one for (one,) in cursor.fetchall()]
    folder.mkdir()
    return gradebook_floor.script(folder, assessments, students)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--plain", required=True)
    parser.add_argument("--citus", required=True)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=int, default=4)
    arguments = parser.parse_args()
    if shutil.which("wrk") is None:
        raise SystemExit("wrk is not installed: apt-get install wrk")
    installations = {
        "plain": prepare(arguments.plain, "benchmark_plain", distributed=False),
        "citus": prepare(arguments.citus, "benchmark_citus", distributed=True),
    }
    ports = {"plain": 18311, "citus": 18312}
    children = [
        subprocess.Popen(
            [sys.executable, "-m", "benchmarks.throughput", "--threads", "8", "--serve", "ours", str(port)],
            env={**os.environ, **installations[name].environment}, stderr=subprocess.DEVNULL,
        )
        for name, port in ports.items()
    ]  # fmt: skip
    folder = Path(tempfile.mkdtemp(prefix="school-benchmark-"))
    scores_of_a_run = (arguments.seconds + 1) * gradebook_floor.SCORES_PER_SECOND
    runs = (arguments.rounds + 1) * len(CONNECTIONS)
    try:
        scripts = {
            name: make_scores(installation, folder / name, runs * scores_of_a_run)
            for name, installation in installations.items()
        }
        firsts = {name: count(step=scores_of_a_run) for name in installations}
        for label, path in (
            ("GET /classrooms", "/classrooms"),
            ("GET /users", f"/users?{read_floor.PAGE}"),
            ("GET scoresheet", ""),
            ("POST /gradebooks", gradebook_floor.PATH),
        ):
            writes = label.startswith("POST")
            for name, installation in installations.items():
                if not writes:
                    orjson.loads(fetch(ports[name], path or installation.scoresheet, installation.lists))
            for clients in CONNECTIONS:
                rates: dict[str, list[float]] = {name: [] for name in ports}
                for number in range(arguments.rounds + 1):
                    for name, port in ports.items():
                        installation = installations[name]
                        rate = drive(
                            port,
                            path or installation.scoresheet,
                            installation.sheets if writes else installation.lists,
                            seconds=arguments.seconds,
                            clients=clients,
                            script=scripts[name] if writes else None,
                            first=next(firsts[name]) if writes else 0,
                        )
                        if number:  # the first round warms up
                            rates[name].append(rate)
                plain, citus = (statistics.median(rates[name]) for name in ("plain", "citus"))
                print(
                    f"{label:<18} {clients} connections  plain {plain:7.0f}/s  citus {citus:7.0f}/s  "
                    f"ratio {plain / citus:.2f}",
                    flush=True,
                )
        seconds = {name: installation.creating for name, installation in installations.items()}
        print(
            f"creating a school  plain {seconds['plain'] * 1000:.0f} ms  citus {seconds['citus'] * 1000:.0f} ms"
        )
    finally:
        for child in children:
            child.kill()
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
