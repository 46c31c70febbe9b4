"""The cost of many schools to a connection: memory of a backend, time of a request, the first switch of role.

    python -m benchmarks.entering [--schools 1000] [--roles 10000]

Starts a PostgreSQL of its own from the wheel and creates the schools. Then, each with the default settings:

memory     one connection serves every school, each with every list of the API and some writes. Prints the most
           private memory that its backend ever had (/proc/<pid>/smaps: Linux alone).
latency    requests in schools drawn from all of them and from ten, in turn and in one process; each of them has
           been served before. Prints the medians and their ratio, for one request at a time and for eight, and
           the time of a school's first request on a connection.
switching  the first switch of role on a connection, and the first after a membership was added, for a login that
           is a member of so many roles, and with these divided over 16 logins.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any
from uuid import UUID, uuid4

import psycopg2
from flask import Flask
from sqlalchemy import text

from benchmarks.installation import installation
from school_service.app import create_app
from school_service.auth.signing_key import SigningKey
from school_service.auth.tokens import issue_client_token
from school_service.config import Settings
from school_service.core.database import db
from tenants.placement import Placement
from tenants.provisioning.create import create_school
from tenants.registry.clients import create_client
from tenants.tenancy import Administrator, Tenancy

FEW = 10
THREADS = 8
LOGINS = 16
# Lists that are read from the registry, or from no table: a backend caches nothing of a school for them.
_NOT_OF_A_SCHOOL = {"/nationalities", "/states", "/lgas", "/students/import-template", "/health", "/docs"}
_TIMED = ("/classrooms", "/users", "/students", "/roles", "/cohorts", "/sessions")


class Serving:
    """The application on an installation, called in this process by a client that may do everything."""

    def __init__(self, app: Flask, token: str) -> None:
        self.app = app
        self._token = token

    def send(self, school: UUID, path: str, body: Any = None) -> tuple[int, float]:
        """Send a request; return its status and its time in milliseconds."""
        headers = {"Authorization": f"Bearer {self._token}", "X-SCHOOL-ID": str(school)}
        client, method = self.app.test_client(), "GET" if body is None else "POST"
        begun = time.perf_counter()
        response = client.open(path, method=method, headers=headers, json=body)
        return response.status_code, (time.perf_counter() - begun) * 1000

    def timed(self, school: UUID, path: str, body: Any = None) -> float:
        """Send a request that must succeed; return its time in milliseconds."""
        status, took = self.send(school, path, body)
        if status != 200:
            raise SystemExit(f"{path} answered {status}")
        return took

    def lists(self, school: UUID) -> list[str]:
        """Find every list of the API that needs nothing but a school."""
        paths = sorted(
            rule.rule
            for rule in self.app.url_map.iter_rules()
            if "GET" in (rule.methods or ()) and not rule.arguments and rule.rule not in _NOT_OF_A_SCHOOL
        )
        return [path for path in paths if "." not in path and self.send(school, path)[0] == 200]

    def write(self, school: UUID) -> None:
        """Create a classroom, a subject, a role and a student."""
        self.timed(school, "/classrooms", {"name": uuid4().hex, "level": "Junior Secondary"})
        self.timed(school, "/templates", {"name": uuid4().hex, "code": uuid4().hex[:12]})
        self.timed(school, "/roles", {"name": uuid4().hex, "avatar": 1})
        student = {"first_name": "Adaeze", "last_name": "Okonkwo", "admission_number": uuid4().hex}
        self.timed(school, "/students", student)


@contextmanager
def serving(tenancy: Tenancy, **environment: str) -> Iterator[Serving]:
    """Make the application for an installation, with the default settings but for those given."""
    settings = Settings.load(
        {
            "DATABASE_URL": tenancy.serving_url.render_as_string(hide_password=False),
            "SIGNING_KEY": SigningKey.generate().to_pem(),
            "SERVING_LOGINS": str(tenancy.placement.logins),
            "LOG_LEVEL": "ERROR",
            **environment,
        }
    )
    app, name = create_app(settings), f"benchmark {uuid4().hex}"
    with tenancy.admin.begin() as connection:
        create_client(connection, client_id=name, all_schools=True, all_permissions=True)
    with app.app_context():
        token = issue_client_token(app.extensions["school-service"].verifier.key, name, [])["access_token"]
    yield Serving(app, token)
    with app.app_context():
        for engine in db.engines.values():
            engine.dispose()


def memory(tenancy: Tenancy, schools: Sequence[UUID]) -> float:
    """Serve every school with every kind of request on one connection; return its backend's peak in MB."""
    peak, seen = 0.0, set()
    with serving(tenancy, POOL_SIZE="1") as here:
        paths = here.lists(schools[0])
        for number, school in enumerate(schools):
            for path in paths:
                here.timed(school, path)
            here.write(school)
            if number % 10 == 8:
                backends = _backends(tenancy)
                seen |= backends
                peak = max(peak, *map(private_memory, backends))
    print(
        f"memory: {peak:.0f} MB at most in one backend, {len(schools)} schools, {len(paths)} lists and 4 writes "
        f"in each ({len(seen)} backends one after the other, of schools and of the registry)"
    )
    return peak


def _backends(tenancy: Tenancy) -> set[int]:
    with tenancy.admin.connect() as connection:
        backends = connection.execute(
            text("SELECT pid FROM pg_stat_activity WHERE usename = ANY (:logins)"),
            {"logins": list(tenancy.placement.all_logins)},
        )
        return set(backends.scalars())


def private_memory(process: int) -> float:
    """Read the memory of a process's own, in MB; 0 where it has ended.

    Pages of the shared buffers that no other process has touched yet would count as private, and are left out.
    """
    try:
        lines = Path(f"/proc/{process}/smaps").read_text().splitlines()
    except (FileNotFoundError, ProcessLookupError):
        return 0.0
    total, own = 0, False
    for line in lines:
        parts = line.split()
        if not parts[0].endswith(":"):
            own = parts[1].endswith("p")  # address, permissions: a mapping begins
        elif own and parts[0].startswith("Private_"):
            total += int(parts[1])
    return total / 1024


def latency(tenancy: Tenancy, schools: Sequence[UUID], *, rounds: int = 40, requests: int = 100) -> float:
    """Time requests in schools at random, of all and of ten, in turn; return the ratio of the medians."""
    random, few = Random(0), schools[:FEW]

    def draw(among: Sequence[UUID]) -> list[tuple[UUID, str]]:
        return [(random.choice(among), random.choice(_TIMED)) for _ in range(requests)]

    with serving(tenancy) as here:
        first = [here.timed(school, path) for school in schools for path in _TIMED]
        again = [here.timed(school, path) for school in schools for path in _TIMED]
        print(
            f"latency: first request of a kind in a school {statistics.median(first):.2f} ms, "
            f"second {statistics.median(again):.2f} ms"
        )
        ratio = _compare(
            "one at a time",
            rounds,
            lambda among: [here.timed(*request) for request in draw(among)],
            schools,
            few,
        )
        _compare_concurrent(here, "default POOL_SIZE", rounds, draw, schools, few)
    with serving(tenancy, POOL_SIZE=str(4 * THREADS)) as here:
        _compare_concurrent(here, f"POOL_SIZE={4 * THREADS}", rounds, draw, schools, few)
    return ratio


def _compare_concurrent(
    here: Serving,
    pool: str,
    rounds: int,
    draw: Callable[[Sequence[UUID]], list[tuple[UUID, str]]],
    schools: Sequence[UUID],
    few: Sequence[UUID],
) -> None:
    with ThreadPoolExecutor(THREADS) as threads:

        def work(among: Sequence[UUID]) -> list[float]:
            return list(threads.map(lambda request: here.timed(*request), draw(among)))

        # Every school, as often as it takes for most connections to be in use.
        for school in schools:
            list(threads.map(lambda path, school=school: here.timed(school, path), _TIMED))
        _compare(f"{THREADS} at a time, {pool}", rounds, work, schools, few)


def _compare(
    label: str,
    rounds: int,
    work: Callable[[Sequence[UUID]], list[float]],
    many: Sequence[UUID],
    few: Sequence[UUID],
) -> float:
    among_many: list[float] = []
    among_few: list[float] = []
    for _ in range(rounds):
        among_many += work(many)
        among_few += work(few)
    medians = statistics.median(among_many), statistics.median(among_few)
    ratio = medians[0] / medians[1]
    p95 = [statistics.quantiles(times, n=20)[18] for times in (among_many, among_few)]
    print(
        f"latency, {label}: {len(many)} schools {medians[0]:.2f} ms (95th percentile {p95[0]:.2f}), "
        f"{len(few)} schools {medians[1]:.2f} ms ({p95[1]:.2f}); ratio of medians {ratio:.2f}"
    )
    return ratio


def switching(tenancy: Tenancy, roles: int = 10_000) -> dict[int, float]:
    """Time the first switch of role of a connection; return it by number of logins, in milliseconds."""
    name = f"benchmark_{uuid4().hex[:8]}"
    ids = [uuid4() for _ in range(roles)]
    placements = [Placement(f"{name}_{logins}", logins) for logins in (1, LOGINS)]
    address = tenancy.admin_url.set(drivername="postgresql").render_as_string(hide_password=False)
    admin = psycopg2.connect(address)
    admin.autocommit = True
    every_login = [login for placement in placements for login in placement.school_logins]

    def execute(statements: list[str]) -> None:
        with admin.cursor() as cursor:
            for first in range(0, len(statements), 500):
                cursor.execute(";\n".join(statements[first : first + 500]))

    def role(school: UUID) -> str:
        return f'"{name}_{school.hex}"'

    try:
        execute([f'CREATE ROLE "{login}" LOGIN NOINHERIT' for login in every_login])
        execute([f'CREATE ROLE "{name}_more"', *(f"CREATE ROLE {role(school)}" for school in ids)])
        grants = [
            f'GRANT {role(school)} TO "{placement.login_of(school)}" WITH INHERIT FALSE, SET TRUE'
            for placement in placements
            for school in ids
        ]
        execute(grants)
        return {
            placement.logins: _switching(address, placement, ids[0], role, f"{name}_more", execute)
            for placement in placements
        }
    finally:
        execute([f"DROP ROLE IF EXISTS {role(school)}" for school in ids])
        execute([f'DROP ROLE IF EXISTS "{login}"' for login in (f"{name}_more", *every_login)])
        admin.close()


def _switching(
    address: str,
    placement: Placement,
    school: UUID,
    role: Callable[[UUID], str],
    another: str,
    execute: Callable[[list[str]], None],
) -> float:
    login = placement.login_of(school)
    firsts, seconds, afters = [], [], []
    for _ in range(15):
        connection = psycopg2.connect(address)
        connection.autocommit = True
        with connection.cursor() as cursor:
            # The same as signing in as this login, without its password.
            cursor.execute(f'SET SESSION AUTHORIZATION "{login}"')

            def switch(cursor: Any = cursor) -> float:
                begun = time.perf_counter()
                cursor.execute(f"BEGIN; SET LOCAL ROLE {role(school)}; COMMIT")
                return (time.perf_counter() - begun) * 1000

            firsts.append(switch())
            seconds.append(switch())
            execute([f'GRANT "{another}" TO "{login}"', f'REVOKE "{another}" FROM "{login}"'])
            afters.append(switch())
        connection.close()
    first, second, after = map(statistics.median, (firsts, seconds, afters))
    print(
        f"switching, {placement.logins} logins: first {first:.1f} ms, second {second:.2f} ms, "
        f"after another membership {after:.1f} ms"
    )
    return first


def main() -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--schools", type=int, default=1000)
    parser.add_argument("--roles", type=int, default=10_000)
    chosen = parser.parse_args()
    with installation() as here:
        tenancy = here.tenancy
        switching(tenancy, chosen.roles)
        administrator = Administrator("admin", "a password")
        schools = [
            create_school(tenancy, name=f"School {number}", administrator=administrator).id
            for number in range(chosen.schools)
        ]
        latency(tenancy, schools)
        memory(tenancy, schools)


if __name__ == "__main__":
    main()
