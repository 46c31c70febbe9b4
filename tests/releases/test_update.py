"""The update from release 0.2.0 as docs/operators.md has it, with two schools full of data and under traffic; and back.

What the schools hold is read by the API before, after, and when it was taken back, row by row.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from sqlalchemy import make_url

from school_service import __version__
from school_service.auth.signing_key import SigningKey
from tenants.migrations.migration_sql import head
from tenants.pg_programs import find_program
from tests.cli.program import PROGRAM, ROOT, environment, serving
from tests.postgres import addresses, on_postgresql_alone
from tests.postgres import test_database as new_database
from tests.releases.records import Reader, differences
from tests.tenants.installations import execute

pytestmark = [pytest.mark.release, pytest.mark.program, on_postgresql_alone]

PASSWORD = "kola nut, harmattan, river"
PAUSE = 0.02  # seconds between the requests of a client
# What a record says otherwise since, of which the changelog tells.
CHANGED = {
    r"/submissions\?\S*/(takers|blanks)": "results are submitted by arm: counted are the students of the arm",
    r"/students/\S*/data/student/guardian_\w+": "guardians are people: a copy of the data has them as such",
    r"/students/\S*/transcript/generated_at": "the moment of the request",
}


@dataclass
class Installation:
    """A database with the settings of those who work on it."""

    settings: dict[str, str]
    cwd: Path

    def run(self, tree: Path, *arguments: str, program: tuple[str, ...] = PROGRAM) -> str:
        """Run a verb with the program in a folder; it must end well."""
        done = subprocess.run(
            [*program, *arguments],
            cwd=self.cwd,
            env=environment(**self.settings, PYTHONPATH=str(tree)),
            capture_output=True,
            encoding="utf-8",
            check=False,
        )
        assert done.returncode == 0, (arguments, done.stderr)
        return done.stdout

    @contextmanager
    def serving(self, tree: Path):
        """Serve with the program in a folder."""
        settings = {**self.settings, "PYTHONPATH": str(tree)}
        with serving(cwd=self.cwd, settings=settings, command=PROGRAM) as service:
            yield service


@dataclass
class Traffic:
    """Requests that go on all the time, to the service that the proxy leads to."""

    readers: list[Reader]
    statuses: list[int] = field(default_factory=list)
    refused: dict[int, bytes] = field(default_factory=dict)
    """By its status, what the last answer said that was none of 200."""
    written: list[list[str]] = field(default_factory=list)
    _ended: threading.Event = field(default_factory=threading.Event)
    _under_way: list[Future[None]] = field(default_factory=list)

    @contextmanager
    def going_on(self):
        """Read and write in each school until the block has ended, or `end` is called."""
        self.written = [[] for _ in self.readers]
        with ThreadPoolExecutor(len(self.readers)) as threads:
            self._under_way = [threads.submit(self._use, number) for number in range(len(self.readers))]
            try:
                yield
            finally:
                self.end()

    def end(self) -> None:
        """Let the requests under way be the last."""
        self._ended.set()
        for work in self._under_way:
            work.result()

    def _use(self, number: int) -> None:
        reader, count = self.readers[number], 0
        while not self._ended.wait(PAUSE):
            count += 1
            room = {"name": f"Room {count}", "level": "Traffic"}
            for method, options in (("POST", {"json": room}), ("GET", {})):
                answer = reader.send(method, "/classrooms", **options)
                self.statuses.append(answer.status)
                if answer.status != 200:
                    self.refused[answer.status] = answer.data
                if answer.status == 200 and method == "POST":
                    self.written[number].append(answer.json()["id"])
                if answer.status == 503:
                    assert int(answer.headers["Retry-After"]) > 0

    def await_statuses(self, *expected: int) -> None:
        """Wait until there are some answers more, of which the last have these statuses."""
        begun, deadline = len(self.statuses), time.monotonic() + 60
        while set(self.statuses[-4:]) != set(expected) or len(self.statuses) < begun + 8:
            assert time.monotonic() < deadline, (self.statuses[-20:], self.refused)
            time.sleep(0.02)


@pytest.fixture
def installation(server, tmp_path):
    """A database without anything in it."""
    with new_database(server) as (admin, login):
        settings = {**addresses(admin, login), "SIGNING_KEY": SigningKey.generate().to_pem()}
        yield Installation(settings, tmp_path)
        for (name,) in execute(
            server, "SELECT datname FROM pg_database WHERE starts_with(datname, %s)", (f"{admin.database}_",)
        ):
            execute(server, f'DROP DATABASE "{name}" WITH (FORCE)')


def read_all(readers, base_url):
    """Read every school, one after the other: 0.2.0 answers 500 where two threads compile a statement at once."""
    for reader in readers:
        reader.base_url = base_url
    return [reader.read_all() for reader in readers]


def changes(before, after):
    """List what was there before and is not, or is another, but for what has to be."""
    return [
        found
        for found in differences(before, after)
        if not any(re.search(f"{place}(:|$)", found) for place in CHANGED)
    ]


def postgres(name, admin, *arguments):
    """Run a program of PostgreSQL on a database."""
    address = admin.set(drivername="postgresql").render_as_string(hide_password=False)
    done = subprocess.run(
        [find_program(name, 16).path, "--dbname", address, *arguments], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


def classrooms(found):
    """The ids of the classrooms of each school."""
    return [{room["id"] for room in school["/classrooms"]} for school in found]


def test_no_row_is_lost_or_changed_by_the_update_or_by_taking_it_back(
    installation, release_before, server, tmp_path
):
    admin = make_url(installation.settings["ADMIN_DATABASE_URL"])
    before_tree, this_tree = release_before, ROOT
    installation.run(before_tree, "tenants", "init")
    fill = (sys.executable, str(Path(__file__).with_name("fill_schools.py")))
    schools = json.loads(installation.run(before_tree, PASSWORD, program=fill))
    made = installation.run(
        before_tree, "clients", "create", "front-end", "--all-schools", "--all-permissions", "--json"
    )
    secret = json.loads(made)["client_secret"]

    with installation.serving(before_tree) as old:
        token = old.client_token("front-end", secret)
        readers = [Reader(old.base_url, school, PASSWORD, token) for school in schools]
        before = read_all(readers, old.base_url)
        # Enough to tell that nothing is compared with nothing.
        assert all(len(school["/gradebooks"]) > 1000 and len(school["/students"]) > 50 for school in before)

        traffic = Traffic(readers)
        with traffic.going_on():
            traffic.await_statuses(200)
            saved = [set(rooms) for rooms in traffic.written]
            postgres("pg_dump", admin, "--format=directory", "--jobs=2", f"--file={tmp_path}/before")
            installation.run(this_tree, "tenants", "init")
            # The program of before goes on, and so does its token endpoint.
            traffic.await_statuses(200)
            assert old.client_token("front-end", secret)
            assert set(traffic.statuses) == {200}, (traffic.refused, old.err.read_text())
            with installation.serving(this_tree) as new:
                for reader in readers:
                    reader.base_url = new.base_url
                # Closed until they are migrated; and nobody is at work in them as before.
                traffic.await_statuses(503)
                assert old.end() == 0
                installation.run(this_tree, "tenants", "migrate")
                traffic.await_statuses(200)
                assert new.ok("GET", "/health")["version"] == __version__
                traffic.end()
                after = read_all(readers, new.base_url)
        assert set(traffic.statuses) == {200, 503}, traffic.refused

    assert changes(before, after) == []
    assert all(
        set(written) <= rooms for written, rooms in zip(traffic.written, classrooms(after), strict=True)
    )

    # What was written since the backup stays in the database that is put aside.
    aside = admin.set(database=f"{admin.database}_after")
    execute(server, f'ALTER DATABASE "{admin.database}" RENAME TO "{aside.database}"')
    execute(server, f'CREATE DATABASE "{admin.database}"')
    postgres("pg_restore", admin, "--exit-on-error", "--jobs=2", f"{tmp_path}/before")
    installation.run(before_tree, "tenants", "init")
    with installation.serving(before_tree) as old:
        # With the tokens of before: nobody signs in again.
        back = read_all(readers, old.base_url)
    revisions = [execute(url, "SELECT DISTINCT revision FROM registry.schools") for url in (admin, aside)]
    assert revisions == [[("t0012",)], [(head(),)]]

    assert [found for found in differences(before, back) if "/generated_at: " not in found] == []
    assert all(rooms <= found for rooms, found in zip(saved, classrooms(back), strict=True))
