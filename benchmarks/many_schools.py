"""The cost of requests from many schools, by the number of schools that a connection may have been in.

    python -m benchmarks.many_schools [--schools 1000] [--rounds 3] [--seconds 4] [--limits 100 200 1000]

Starts a PostgreSQL of its own from the wheel, creates the schools, all with the same records, and serves them as
`serve` does, once for each limit (SCHOOLS_PER_CONNECTION). `wrk` (Debian's package) asks for the classrooms and for a
score sheet of schools drawn at random from all of them and from ten, in turn, round after round. Prints for each limit
the requests per second of either, their ratio, the most private memory of all backends of the service together and of
one of them (Linux alone), the number of backends replaced a second, and the processor time of a request: of the
service, and of PostgreSQL. With `--folder` the schools stay there, and are found again.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import subprocess
import sys
from dataclasses import dataclass, replace
from pathlib import Path

import psutil
from sqlalchemy import text

from benchmarks import read_floor
from benchmarks.entering import private_memory
from benchmarks.installation import Installation, installation
from benchmarks.throughput import Caller, drive, fetch
from school_service.app import create_app
from school_service.auth.tokens import issue_user_token
from school_service.core.database import db
from school_service.web.transactions import in_transaction
from tenants.connections.binding import SchoolBinding
from tenants.provisioning.create import create_school
from tenants.registry.schools import School, list_schools
from tenants.tenancy import Administrator, Tenancy

FEW = 10
CLIENTS = 16
PORT = 18321


@dataclass(frozen=True)
class Callers:
    """The administrators of all schools, and their requests."""

    callers: list[Caller]
    paths: tuple[str, ...]


def make_schools(here: Installation, number: int) -> Callers:
    """Create schools with the records of one, and a token for the administrator of each; find the existing ones."""
    app, tenancy = create_app(here.settings), here.tenancy
    key = app.extensions["school-service"].verifier.key
    rows = list(tenancy.seed(Administrator("admin", "a password")))
    # One hash of the password, and one administrator, for all.
    alike = replace(tenancy, seed=lambda _administrator: rows)
    with tenancy.admin.connect() as connection:
        schools = list_schools(connection)
    if not schools:
        first = create_school(alike, name="School 0", administrator=Administrator("admin", ""))
        with app.app_context(), in_transaction(SchoolBinding(first.id)):
            (here.folder / "scoresheet").write_text(read_floor.fill())
        schools = [first, *(copy_school(alike, first, name=f"School {n}") for n in range(1, number))]
    with tenancy.admin.connect() as connection:
        admin_id = connection.exec_driver_sql(
            f"SELECT id FROM \"{schools[0].schema}\".users WHERE username = 'admin'"
        ).scalar_one()
    alike.admin.dispose()
    with app.app_context():
        callers = [
            Caller(issue_user_token(key, admin_id, school.id, 1)["access_token"], str(school.id))
            for school in schools[:number]
        ]
        for engine in db.engines.values():
            engine.dispose()
    return Callers(callers, ("/classrooms", (here.folder / "scoresheet").read_text()))


def copy_school(tenancy: Tenancy, first: School, *, name: str) -> School:
    """Create a school with the records of another, ids and all."""
    school = create_school(tenancy, name=name, administrator=Administrator("admin", ""))
    with tenancy.admin.begin() as connection:
        columns = connection.exec_driver_sql(
            "SELECT table_name, string_agg(quote_ident(column_name), ', ') FROM information_schema.columns "
            f"WHERE table_schema = '{first.schema}' AND is_generated = 'NEVER' GROUP BY 1"
        ).all()
        # Tables in any order: no foreign key is looked at.
        connection.exec_driver_sql("SET LOCAL session_replication_role TO replica")
        for table, names in columns:
            connection.exec_driver_sql(f'DELETE FROM "{school.schema}".{table}')
            connection.exec_driver_sql(
                f'INSERT INTO "{school.schema}".{table} ({names}) SELECT {names} FROM "{first.schema}".{table}'
            )
    return school


def script(folder: Path, asked: Callers) -> Path:
    """Write the script with which wrk asks for schools at random; its argument is among how many."""
    lua = folder / "schools.lua"
    known = ",\n".join(f'{{ "{caller.token}", "{caller.school}" }}' for caller in asked.callers)
    paths = ", ".join(f'"{path}"' for path in asked.paths)
    lua.write_text(
        f"""
local known, paths, among = {{ {known} }}, {{ {paths} }}, 1
init = function(args)
    among = tonumber(args[1])
    math.randomseed(among)
end
request = function()
    local one = known[math.random(among)]
    local fields = {{ ["Authorization"] = "Bearer " .. one[1], ["X-SCHOOL-ID"] = one[2] }}
    return wrk.format("GET", paths[math.random(#paths)], fields)
end
"""
    )
    return lua


def backends(tenancy: Tenancy) -> dict[int, float]:
    """Find the backends of the pool of the server, with their private memory in MB."""
    with tenancy.admin.connect() as connection:
        backends = connection.execute(
            text("SELECT pid FROM pg_stat_activity WHERE application_name = 'school-service'")
        ).scalars()
        return {backend: private_memory(backend) for backend in backends}


def processor_time(server: psutil.Process, tenancy: Tenancy) -> tuple[float, float]:
    """Tell how many seconds of a processor the service has used, and all of PostgreSQL's processes."""
    with tenancy.admin.connect() as connection:
        backend = psutil.Process(connection.exec_driver_sql("SELECT pg_backend_pid()").scalar_one())
    postmaster = backend.parent()
    assert postmaster is not None
    ended = postmaster.cpu_times()
    alive = (process.cpu_times() for process in postmaster.children())
    of_server = server.cpu_times()
    return of_server.user + of_server.system, (
        ended.children_user + ended.children_system + sum(times.user + times.system for times in alive)
    )


def measure(limit: int, here: Installation, asked: Callers, requests: Path, rounds: int, seconds: int) -> str:
    """Serve with a limit and drive the server; return a line of the figures."""
    server = psutil.Popen(
        [sys.executable, "-m", "school_service", "serve", "--port", str(PORT)],
        env={**os.environ, **here.environment, "SCHOOLS_PER_CONNECTION": str(limit)},
        stderr=subprocess.DEVNULL,
    )
    callers = asked.callers
    rates: dict[int, list[float]] = {len(callers): [], FEW: []}
    used: dict[int, list[tuple[float, float]]] = {among: [] for among in rates}
    most, together, seen, measured = 0.0, 0.0, set(), 0
    try:
        for caller in callers:
            for path in asked.paths:
                fetch(PORT, path, caller)  # each token is verified, each school entered
        for number in range(rounds + 1):
            for among, of_group in rates.items():
                known = backends(here.tenancy)
                before = processor_time(server, here.tenancy)
                rate = drive(
                    PORT, "/", callers[0], seconds=seconds, clients=CLIENTS, script=requests, first=among
                )
                after = processor_time(server, here.tenancy)
                if number:  # the first round warms up
                    of_group.append(rate)
                    spent = [
                        (now - then) / rate / seconds * 1e6 for now, then in zip(after, before, strict=True)
                    ]
                    used[among].append((spent[0], spent[1]))
                if among != FEW:
                    now_alive = backends(here.tenancy)
                    most = max(most, *now_alive.values())
                    together = max(together, sum(now_alive.values()))
                    seen |= now_alive.keys() - known.keys()
                    measured += seconds
    finally:
        server.kill()
        server.wait()
    many, few = (statistics.median(of_group) for of_group in rates.values())
    ours, postgresqls = (
        " and ".join(f"{statistics.median(spent[part] for spent in of_one):.0f}" for of_one in used.values())
        for part in (0, 1)
    )
    return (
        f"{limit:5} schools a connection: of {len(callers)} {many:5.0f}/s, of {FEW} {few:5.0f}/s, "
        f"ratio {many / few:.2f}; {together:4.0f} MB at most in all backends, {most:4.0f} in one; at least "
        f"{len(seen) / measured:.1f} backends replaced a second; us of a processor for a request: {ours}, "
        f"PostgreSQL's {postgresqls}"
    )


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--schools", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=int, default=4)
    parser.add_argument("--limits", type=int, nargs="+", default=[100, 200, 1000])
    parser.add_argument("--folder", type=Path)
    arguments = parser.parse_args()
    if shutil.which("wrk") is None:
        raise SystemExit("wrk is not installed: apt-get install wrk")
    with installation(arguments.folder, on_disk=False) as here:
        asked = make_schools(here, arguments.schools)
        requests = script(here.folder, asked)
        for limit in arguments.limits:
            print(measure(limit, here, asked, requests, arguments.rounds, arguments.seconds), flush=True)


if __name__ == "__main__":
    main()
