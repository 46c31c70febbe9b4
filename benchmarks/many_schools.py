"""What it costs that requests come from many schools, by how many of them a connection may have been in.

    python -m benchmarks.many_schools [--schools 1000] [--rounds 3] [--seconds 4] [--limits 150 400 1000]

Starts a PostgreSQL of its own from the wheel, creates the schools, and serves them as `serve` does, once for each limit
(SCHOOLS_PER_CONNECTION). `wrk` (Debian's package) asks for the classrooms of schools drawn at random from all of them
and from ten, in turn, round after round. Prints for each limit the requests per second of either,
their ratio, the most private memory that a backend of its pool had (Linux alone), and how many backends a second were
replaced meanwhile.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import subprocess
import sys
from pathlib import Path

from sqlalchemy import text

from benchmarks.entering import private_memory
from benchmarks.installation import Installation, installation
from benchmarks.throughput import Caller, drive, fetch
from school_service.app import create_app
from school_service.auth.tokens import issue_user_token
from tenants.provisioning.create import create_school
from tenants.tenancy import Administrator, Tenancy

FEW = 10
CLIENTS = 16
PORT = 18321
PATH = "/classrooms"
ROOMS = 40


def make_schools(here: Installation, number: int) -> list[Caller]:
    """Create schools with classrooms, and a token for the administrator of each."""
    app, tenancy, callers = create_app(here.settings), here.tenancy, []
    key = app.extensions["school-service"].verifier.key
    for count in range(number):
        school = create_school(
            tenancy, name=f"School {count}", administrator=Administrator("admin", "a password")
        )
        with tenancy.admin.begin() as connection:
            connection.exec_driver_sql(
                f'INSERT INTO "{school.schema}".classrooms (id, name, level) '
                f"SELECT gen_random_uuid(), 'Classroom ' || n, 'Junior' FROM generate_series(1, {ROOMS}) n"
            )
            admin_id = connection.exec_driver_sql(
                f"SELECT id FROM \"{school.schema}\".users WHERE username = 'admin'"
            ).scalar_one()
        with app.app_context():
            token = issue_user_token(key, admin_id, school.id, 1)["access_token"]
        callers.append(Caller(token, str(school.id)))
    return callers


def script(folder: Path, callers: list[Caller]) -> Path:
    """Write the script with which wrk asks for schools at random; its argument is among how many."""
    found = folder / "schools.lua"
    known = ",\n".join(f'{{ "{caller.token}", "{caller.school}" }}' for caller in callers)
    found.write_text(
        f"""
local known, among = {{ {known} }}, 1
init = function(args)
    among = tonumber(args[1])
    math.randomseed(among)
end
request = function()
    local one = known[math.random(among)]
    return wrk.format("GET", "{PATH}", {{ ["Authorization"] = "Bearer " .. one[1], ["X-SCHOOL-ID"] = one[2] }})
end
"""
    )
    return found


def backends(tenancy: Tenancy) -> dict[int, float]:
    """Find the backends of the pool of the server, with their private memory in MB."""
    with tenancy.admin.connect() as connection:
        found = connection.execute(
            text("SELECT pid FROM pg_stat_activity WHERE application_name = 'school-service'")
        ).scalars()
        return {backend: private_memory(backend) for backend in found}


def measure(
    limit: int, here: Installation, callers: list[Caller], requests: Path, rounds: int, seconds: int
) -> str:
    """Serve with a limit and drive the server; return a line of the figures."""
    server = subprocess.Popen(
        [sys.executable, "-m", "school_service", "serve", "--port", str(PORT)],
        env={**os.environ, **here.environment, "SCHOOLS_PER_CONNECTION": str(limit)},
        stderr=subprocess.DEVNULL,
    )
    rates: dict[int, list[float]] = {len(callers): [], FEW: []}
    memory, seen, measured = 0.0, set(), 0
    try:
        for caller in callers:
            fetch(PORT, PATH, caller)  # each token is verified, each school entered
        for number in range(rounds + 1):
            for among, found in rates.items():
                known = backends(here.tenancy)
                rate = drive(
                    PORT, PATH, callers[0], seconds=seconds, clients=CLIENTS, script=requests, first=among
                )
                if number:  # the first round warms up
                    found.append(rate)
                if among != FEW:
                    after = backends(here.tenancy)
                    memory = max(memory, *after.values())
                    seen |= after.keys() - known.keys()
                    measured += seconds
    finally:
        server.kill()
        server.wait()
    many, few = (statistics.median(found) for found in rates.values())
    return (
        f"{limit:5} schools a connection: of {len(callers)} {many:5.0f}/s, of {FEW} {few:5.0f}/s, "
        f"ratio {many / few:.2f}; {memory:4.0f} MB at most in a backend; at least {len(seen) / measured:.1f} "
        "backends replaced a second"
    )


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--schools", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=int, default=4)
    parser.add_argument("--limits", type=int, nargs="+", default=[150, 400, 1000])
    arguments = parser.parse_args()
    if shutil.which("wrk") is None:
        raise SystemExit("wrk is not installed: apt-get install wrk")
    with installation() as here:
        callers = make_schools(here, arguments.schools)
        requests = script(here.folder, callers)
        for limit in arguments.limits:
            print(
                measure(limit, here, callers, requests, arguments.rounds, arguments.seconds),
                flush=True,
            )


if __name__ == "__main__":
    main()
