"""Requests to a cluster of Citus while schools are moved and migrated, and while a worker is away.

    python -m benchmarks.cluster --citus postgresql://… [--schools 20] [--clients 8] [--seconds 10]

The address is of a superuser, and of an empty database: of the coordinator of a cluster on this machine, whose nodes
have joined it (docs/scaling.md). Run it as root, or as the user of PostgreSQL: it kills and stops the coordinator and
workers, and starts them again. Makes the schools with `tenants create`, starts `school-service serve`, and lets the
clients ask for classrooms, make some and sign in, without a pause, each in the schools of one node in turn.

Meanwhile: nothing; three schools are moved, and back again; all are migrated (a column, its CHECK, an index, a table
with a foreign key); the coordinator is killed, and comes back; it is stopped (SIGSTOP), and goes on; so is a worker.
While the coordinator is away, clients ask for records of the registry, too. Prints for each the number of requests, the
answers other than 200, and the slowest, by the node of their school; and at the end whether every
classroom is there that was answered with 200 (a node that is killed loses some where its synchronous_commit is off).
Exits with 1 where one is not, and where a request failed that had nothing to do with a node that was away.
The database stays as it is made: drop it afterwards.
"""

from __future__ import annotations

import argparse
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import urllib3
from sqlalchemy import create_engine, make_url, text
from sqlalchemy.engine import URL

from benchmarks.installation import path_of_program
from benchmarks.throughput import Caller
from school_service.app import create_app, tenancy_of
from school_service.auth.signing_key import SigningKey
from school_service.auth.tokens import issue_user_token
from school_service.config import Settings
from tenants.connections.engines import registry_url
from tenants.distribution.nodes import Node, nodes_of_schools
from tenants.registry.schools import schema_name
from tenants.tenancy import Tenancy
from tests.tenants.migrations.histories import later_history

PORT = 18313
PASSWORD = "harmattan over Jos"
DEADLINE = 60  # seconds that a client waits for an answer
CHANGES = [
    "ALTER TABLE classrooms ADD COLUMN seats integer",
    "ALTER TABLE classrooms ADD CONSTRAINT ck_classrooms_seats CHECK (seats > 0)",
    "CREATE INDEX ix_classrooms_level ON classrooms (level)",
    "CREATE TABLE desks (id uuid NOT NULL, classroom_id uuid NOT NULL, CONSTRAINT pk_desks PRIMARY KEY (id))",
    "ALTER TABLE desks ADD CONSTRAINT fk_desks_classroom_id FOREIGN KEY (classroom_id) REFERENCES classrooms (id)",
]


class Server:
    """A PostgreSQL of this machine: its first process and its children."""

    def __init__(self, url: URL) -> None:
        engine = create_engine(registry_url(url))
        with engine.connect() as connection:
            pid = connection.execute(text("SELECT pg_read_file('postmaster.pid')")).scalar_one().split()[0]
        engine.dispose()
        self._process = Path("/proc") / pid
        self._owner = self._process.stat()
        self._command = (self._process / "cmdline").read_bytes().rstrip(b"\0").split(b"\0")
        self._command[0] = os.fsencode(os.readlink(self._process / "exe"))
        self._folder = os.readlink(self._process / "cwd")

    def kill(self) -> None:
        """End it at once, as if its machine had died."""
        os.kill(int(self._process.name), signal.SIGQUIT)
        while self._process.exists() and "zombie" not in (self._process / "status").read_text():
            time.sleep(0.05)

    def start(self) -> None:
        """Start it again, where it was killed."""
        subprocess.Popen(
            self._command,
            cwd=self._folder,
            user=self._owner.st_uid,
            group=self._owner.st_gid,
            extra_groups=[],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    def send(self, number: signal.Signals) -> None:
        """Send a signal to all of its processes."""
        children = (self._process / "task" / self._process.name / "children").read_text().split()
        for pid in [self._process.name, *children]:
            os.kill(int(pid), number)


@dataclass
class Seen:
    """The answers of the schools of a node to clients: by status (None: no answer), and the slowest, in seconds.

    `registry` has the answers to requests that need the registry beyond their school.
    """

    answers: Counter[int | None] = field(default_factory=Counter)
    registry: Counter[int | None] = field(default_factory=Counter)
    slowest: float = 0.0


SIGN_IN, LGAS = "/users/login", "/lgas"


class Load:
    """Clients that ask for classrooms, make some and sign in, each in the schools of one node in turn."""

    def __init__(self, callers: Sequence[Caller]) -> None:
        self._callers = callers
        self.asks_registry = False
        self._http = urllib3.PoolManager(maxsize=64, retries=False)
        self._lock = threading.Lock()
        self.made: Counter[str] = Counter()
        self.perhaps: Counter[str] = Counter()

    @contextmanager
    def running(self, clients: int, nodes: dict[str, Node]) -> Iterator[dict[str, Seen]]:
        """Let so many clients work for the length of the block; `nodes` has the node of each school."""
        seen: dict[str, Seen] = defaultdict(Seen)
        over = threading.Event()
        of_nodes: dict[str, list[Caller]] = defaultdict(list)
        for caller in self._callers:
            of_nodes[str(nodes[caller.school])].append(caller)

        def work(number: int) -> None:
            callers, turn = sorted(of_nodes.items())[number % len(of_nodes)][1], number
            while not over.is_set():
                caller = callers[number % len(callers)]
                turn += 1
                asks_registry = self.asks_registry and turn % 5 == 3
                begun = time.perf_counter()
                if turn % 10 == 9:
                    status = self._sign_in(caller)
                elif asks_registry:
                    status = self._get(caller, LGAS)
                else:
                    status = self._send(caller, write=turn % 4 == 0)
                taken = time.perf_counter() - begun
                with self._lock:
                    of_node = seen[str(nodes[caller.school])]
                    (of_node.registry if asks_registry else of_node.answers)[status] += 1
                    of_node.slowest = max(of_node.slowest, taken)
                number += 7  # another school

        threads = [threading.Thread(target=work, args=(number,)) for number in range(clients)]
        for thread in threads:
            thread.start()
        try:
            yield seen
        finally:
            over.set()
            for thread in threads:
                thread.join()

    def wait_for_registry(self, caller: Caller) -> float:
        """Wait until the registry answers; the seconds that it took."""
        begun = time.perf_counter()
        while self._get(caller, LGAS) != 200:
            time.sleep(0.2)
        return time.perf_counter() - begun

    def send_once(self, caller: Caller) -> int | None:
        """Ask for a school's classrooms."""
        return self._send(caller, write=False)

    def _get(self, caller: Caller, path: str) -> int | None:
        try:
            return self._http.request(
                "GET", f"http://127.0.0.1:{PORT}{path}", headers=caller.headers, timeout=DEADLINE
            ).status
        except urllib3.exceptions.HTTPError:
            return None

    def _sign_in(self, caller: Caller) -> int | None:
        try:
            return self._http.request(
                "POST",
                f"http://127.0.0.1:{PORT}{SIGN_IN}",
                headers=caller.headers,
                json={"username": "admin", "password": PASSWORD},
                timeout=DEADLINE,
            ).status
        except urllib3.exceptions.HTTPError:
            return None

    def _send(self, caller: Caller, *, write: bool) -> int | None:
        address = f"http://127.0.0.1:{PORT}/classrooms"
        options: dict[str, Any] = {"headers": caller.headers, "timeout": DEADLINE}
        try:
            if not write:
                return self._http.request("GET", address, **options).status
            status = self._http.request(
                "POST", address, json={"name": uuid4().hex, "level": "x"}, **options
            ).status
        except urllib3.exceptions.HTTPError:
            status = None
        with self._lock:
            if write and status == 200:
                self.made[caller.school] += 1
            elif write:
                # A write without an answer may have been committed.
                self.perhaps[caller.school] += 1
        return status


class Bench:
    """A cluster with its schools, and the service on it."""

    def __init__(self, address: str, folder: Path, *, clients: int, seconds: float) -> None:
        admin = make_url(address)
        self.environment = {
            "DATABASE_URL": admin.set(username="cluster_serving", password="secret").render_as_string(
                hide_password=False
            ),
            "ADMIN_DATABASE_URL": admin.render_as_string(hide_password=False),
            "SIGNING_KEY": SigningKey.generate().to_pem(),
            "TENANT_DISTRIBUTED": "on",
            "LOG_LEVEL": "CRITICAL",
        }
        self.settings = Settings.load(self.environment)
        self.tenancy: Tenancy = tenancy_of(self.settings)
        self.clients, self.seconds = clients, seconds
        self.failed = False
        # The release that is served, and to which the schools are migrated, knows the revision before.
        history = later_history(folder, CHANGES)
        package = history / "__init__.py"
        head = max(path.name.partition("_")[0] for path in (Path("migrations/tenant/versions")).glob("t*.py"))
        package.write_text(
            re.sub(
                r"^ALSO_SERVED: .*$", f"ALSO_SERVED = ({head!r},)", package.read_text(), flags=re.MULTILINE
            )
        )
        self.later = {**os.environ, **self.environment, "PYTHONPATH": path_of_program(history)}
        self._folder = folder

    def operate(self, *arguments: str, later: bool = False, stdin: str = "") -> float:
        """Run one of the operator's verbs; the seconds that it took."""
        begun = time.perf_counter()
        subprocess.run(
            [sys.executable, "-m", "school_service", "tenants", *arguments],
            env=self.later if later else {**os.environ, **self.environment},
            cwd=self._folder if later else None,
            stdout=subprocess.DEVNULL,
            input=stdin.encode(),
            check=True,
        )
        return time.perf_counter() - begun

    def create(self, number: int) -> list[Caller]:
        """Create schools, by the program; their administrators."""
        self.operate("init")
        took = [
            self.operate(
                "create", f"School {school}", "--id", str(uuid4()), "--password-stdin", stdin=PASSWORD
            )
            for school in range(number)
        ]
        placed = Counter(map(str, self.nodes().values()))
        print(
            f"created {number} schools, {', '.join(f'{count} on {node}' for node, count in sorted(placed.items()))}: "
            f"the first in {took[0]:.1f} s, the last in {took[-1]:.1f} s"
        )
        app = create_app(self.settings)
        callers = []
        with app.app_context(), self.tenancy.admin.connect() as connection:
            key = app.extensions["school-service"].verifier.key
            for school in self.nodes():
                users = f'SELECT id FROM "{schema_name(UUID(school))}".users'
                user = connection.exec_driver_sql(users).scalar_one()
                callers.append(Caller(issue_user_token(key, user, UUID(school), 1)["access_token"], school))
        return callers

    def nodes(self) -> dict[str, Node]:
        """Tell the node of each school."""
        with self.tenancy.admin.connect() as connection:
            return {
                str(UUID(schema.removeprefix("school_"))): node
                for schema, node in nodes_of_schools(connection).items()
            }

    @contextmanager
    def serving(self) -> Iterator[None]:
        """Run `school-service serve`."""
        process = subprocess.Popen(
            [sys.executable, "-m", "school_service", "serve", "--port", str(PORT)],
            env=self.later,
            cwd=self._folder,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            yield
        finally:
            process.terminate()
            process.wait()

    @contextmanager
    def load(
        self, load: Load, label: str, *, away: Node | None = None, nodes: dict[str, Node] | None = None
    ) -> Iterator[dict[str, Node]]:
        """Let the clients work for the length of the block, and print their answers; `away` is a node that may fail.

        `nodes` has the node of each school; without it the coordinator is asked.
        """
        nodes = nodes or self.nodes()
        with load.running(self.clients, nodes) as seen:
            yield nodes
        print(label)
        for node, of_node in sorted(seen.items()):
            others = {status or "none": n for status, n in of_node.answers.items() if status != 200}
            print(
                f"    {node}: {of_node.answers.total()} requests, not 200: {others or 'none'}, "
                f"the slowest {of_node.slowest:.2f} s"
            )
            if of_node.registry:
                print(f"        of the registry: {dict(of_node.registry)}")
            self.failed |= bool(others) and node != str(away)

    def count(self, load: Load) -> None:
        """See that every classroom is there that was answered with 200."""
        with self.tenancy.admin.connect() as connection:
            rows = {
                school: connection.exec_driver_sql(
                    f'SELECT count(*) FROM "{schema_name(UUID(school))}".classrooms'
                ).scalar_one()
                for school in self.nodes()
            }
        nodes = self.nodes()
        print(f"classrooms made: {load.made.total()}")
        for school, count in rows.items():
            made, most = load.made[school], load.made[school] + load.perhaps[school]
            if not made <= count <= most:
                print(f"    {school} on {nodes[school]}: {made} made, {most} at most, {count} there")
                self.failed = True


def wait_for_answer(load: Load, callers: Sequence[Caller]) -> float:
    """Wait until all schools answer; the seconds that it took."""
    begun = time.perf_counter()
    while any(load.send_once(caller) != 200 for caller in callers):
        if time.perf_counter() - begun > 10 * DEADLINE:
            raise SystemExit("A school does not answer.")
        time.sleep(0.2)
    return time.perf_counter() - begun


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--citus", required=True)
    parser.add_argument("--schools", type=int, default=20)
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=10)
    arguments = parser.parse_args()
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    with tempfile.TemporaryDirectory(prefix="school-benchmark-") as folder:
        bench = Bench(arguments.citus, Path(folder), clients=arguments.clients, seconds=arguments.seconds)
        callers = bench.create(arguments.schools)
        load = Load(callers)
        with bench.serving():
            wait_for_answer(load, callers)
            measure(bench, load, callers)
        bench.count(load)
        bench.tenancy.admin.dispose()
    sys.exit(bench.failed)


def measure(bench: Bench, load: Load, callers: Sequence[Caller]) -> None:
    """Go through all that happens to a cluster."""
    with bench.load(load, "nothing else"):
        time.sleep(bench.seconds)
    first, second = sorted(set(bench.nodes().values()), key=str)[:2]
    with bench.load(load, "three schools are moved, and back again") as nodes:
        moved = [school for school, node in nodes.items() if node == first][:3]
        took = [bench.operate("move", school, str(node)) for node in (second, first) for school in moved]
    print(f"    a move took {min(took):.1f} to {max(took):.1f} s")
    with bench.load(load, "all schools are migrated"):
        took = [bench.operate("migrate", "--workers", "2", later=True)]
    print(f"    {len(callers)} schools in {took[0]:.1f} s")
    take_away_coordinator(bench, load, callers)
    worker = Server(first.at(bench.tenancy.admin_url))
    with bench.load(load, f"{first} is killed for {bench.seconds:.0f} s", away=first):
        worker.kill()
        time.sleep(bench.seconds)
    worker.start()
    print(f"    started again, all schools answer after {wait_for_answer(load, callers):.1f} s")
    worker = Server(second.at(bench.tenancy.admin_url))
    with bench.load(load, f"{second} is stopped for {3 * bench.seconds:.0f} s", away=second):
        worker.send(signal.SIGSTOP)
        try:
            time.sleep(3 * bench.seconds)
        finally:
            worker.send(signal.SIGCONT)
    print(f"    it goes on, all schools answer after {wait_for_answer(load, callers):.1f} s")


def take_away_coordinator(bench: Bench, load: Load, callers: Sequence[Caller]) -> None:
    """Kill the coordinator and start it again; then stop it, and let it go on."""
    coordinator = Server(bench.tenancy.admin_url)
    nodes = bench.nodes()
    load.asks_registry = True
    with bench.load(load, f"the coordinator is killed for {bench.seconds:.0f} s", nodes=nodes):
        coordinator.kill()
        time.sleep(bench.seconds)
    coordinator.start()
    print(f"    started again, the registry answers after {load.wait_for_registry(callers[0]):.1f} s")
    coordinator = Server(bench.tenancy.admin_url)
    with bench.load(load, f"the coordinator is stopped for {2 * bench.seconds:.0f} s", nodes=nodes):
        coordinator.send(signal.SIGSTOP)
        try:
            time.sleep(2 * bench.seconds)
        finally:
            coordinator.send(signal.SIGCONT)
    print(f"    it goes on, the registry answers after {load.wait_for_registry(callers[0]):.1f} s")
    load.asks_registry = False
    # The connections that it had are lost.
    bench.tenancy.admin.dispose()


if __name__ == "__main__":
    main()
