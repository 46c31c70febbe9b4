"""Updates from 0.2.0 and 0.3.0 as docs/deployment/update.md has them, and back: two schools with data, under traffic.

The schools' records are read by the API before, after, and when the update was taken back, row by row.
"""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import sysconfig
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

PAGE = (ROOT / "docs" / "deployment" / "update.md").read_text(encoding="utf-8")
PASSWORD = "kola nut, harmattan, river"
PAUSE = 0.02  # seconds between the requests of a client
# Differences of records since then, named by the changelog.
CHANGED = {
    r"/submissions\?\S*/(takers|blanks)": "results are submitted by arm: counted are the students of the arm",
    r"/students/\S*/data/student/guardian_\w+": "guardians are people: a copy of the data has them as such",
    r"/students/\S*/transcript/generated_at": "the moment of the request",
}


@dataclass
class Installation:
    """A database with the settings of the programs that work on it."""

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
    def serving(self, tree: Path, *arguments: str):
        """Serve with the program in a folder."""
        settings = {**self.settings, "PYTHONPATH": str(tree)}
        with serving(*arguments, cwd=self.cwd, settings=settings, command=PROGRAM) as service:
            yield service

    def filled(self, tree: Path) -> tuple[list[str], str]:
        """Install with the program in a folder, and fill two schools: their ids, and the secret of their client."""
        self.run(tree, "tenants", "init")
        fill = (sys.executable, str(Path(__file__).with_name("fill_schools.py")))
        schools = json.loads(self.run(tree, PASSWORD, program=fill))
        grant = ("--all-schools", "--all-permissions", "--json")
        made = self.run(tree, "clients", "create", "front-end", *grant)
        return schools, json.loads(made)["client_secret"]


@dataclass
class Traffic:
    """Requests that go on all the time, to the service that the proxy leads to."""

    readers: list[Reader]
    statuses: list[int] = field(default_factory=list)
    refused: dict[int, bytes] = field(default_factory=dict)
    """The last answer of each status but 200."""
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
        """Wait until there are some answers more, the last with these statuses."""
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
    """List values of before that are missing or others now, but for the intended ones."""
    return [
        difference
        for difference in differences(before, after)
        if not any(re.search(f"{place}(:|$)", difference) for place in CHANGED)
    ]


def postgres(name, admin, *arguments):
    """Run a program of PostgreSQL on a database."""
    address = admin.set(drivername="postgresql").render_as_string(hide_password=False)
    done = subprocess.run(
        [find_program(name, 16).path, "--dbname", address, *arguments], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


def classrooms(schools):
    """The ids of the classrooms of each school."""
    return [{room["id"] for room in school["/classrooms"]} for school in schools]


def test_no_row_is_lost_or_changed_by_the_update_or_by_taking_it_back(
    installation, release_before, server, tmp_path
):
    admin = make_url(installation.settings["ADMIN_DATABASE_URL"])
    before_tree, this_tree = release_before, ROOT
    schools, secret = installation.filled(before_tree)

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

    # Writes since the backup stay in the database that is put aside.
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

    assert [
        difference for difference in differences(before, back) if "/generated_at: " not in difference
    ] == []
    assert all(rooms <= ids for rooms, ids in zip(saved, classrooms(back), strict=True))


# From 0.3.0

# In place of /opt another folder with environments, and of systemd a signal. The other lines are the page's.
PREAMBLE = """
set -u
RELEASE={release} BEFORE={before}
school-service() {{ "${{PROGRAM:-{opt}/school-service}}/bin/python3" -P -m school_service "$@"; }}
install() {{ :; }}
systemctl() {{ [ "$1" = daemon-reload ] || {{ [ "$*" = "reload school-service@*" ] && kill -HUP {pid}; }}; }}
"""


def block(name):
    """The block of the page with this name in its first line."""
    (text,) = re.findall(rf"^```sh\n# {re.escape(name)}\n(.*?)^```", PAGE, re.S | re.M)
    return text


def paste(installation, name, **values):
    """Paste a block of the page, which must end well."""
    script = PREAMBLE.format(**values) + block(name).replace("/opt/", f"{values['opt']}/")
    done = subprocess.run(
        ["bash", "-c", script],
        cwd=installation.cwd,
        env=environment(**installation.settings),
        capture_output=True,
        encoding="utf-8",
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, (name, done.stdout, done.stderr)


def reloads(service):
    """The number of times that all workers were replaced."""
    return sum(line["message"] == "reloaded" for line in service.log)


def versions(service):
    """The versions that answer, of two workers."""
    return {service.ok("GET", "/health")["version"] for _ in range(40)}


def environment_of(folder, tree):
    """Make an environment of its own for the release in a tree, as pip does; its dependencies are the tests' own."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    (packages,) = folder.glob("lib/python3*/site-packages")
    (packages / "needed.pth").write_text(sysconfig.get_path("purelib"))
    for package in ("school_service", "tenants", "migrations"):
        (packages / package).symlink_to(tree / package)


def test_nobody_sees_503_from_0_3_0_to_this_release_or_back(installation, release_0_3, tmp_path):
    opt = tmp_path / "opt"
    environment_of(opt / "school-service-0.3.0", release_0_3)
    environment_of(opt / f"school-service-{__version__}", ROOT)
    (opt / "school-service").symlink_to(opt / "school-service-0.3.0")
    schools, secret = installation.filled(release_0_3)
    installation.settings["PYTHONPATH"] = ""
    # As pip writes the first line of a command: with its own environment, and not the link.
    python = opt / "school-service-0.3.0" / "bin" / "python3"
    command = (str(python), "-P", "-m", "school_service")
    cwd, settings = installation.cwd, installation.settings

    with serving("--workers", "2", cwd=cwd, settings=settings, command=command) as service:
        values = {"release": __version__, "before": "0.3.0", "opt": opt, "pid": service.process.pid}
        token = service.client_token("front-end", secret)
        readers = [Reader(service.base_url, school, PASSWORD, token) for school in schools]
        before = read_all(readers, service.base_url)
        assert all(len(school["/gradebooks"]) > 1000 and len(school["/students"]) > 50 for school in before)
        assert versions(service) == {"0.3.0"}

        traffic = Traffic(readers)
        with traffic.going_on():
            traffic.await_statuses(200)
            paste(installation, "from 0.3.0", **values)
            service.wait_for(lambda: reloads(service) == 1, "the reload")
            traffic.await_statuses(200)
            assert versions(service) == {__version__}
            paste(installation, "back to 0.3.0", **values)
            service.wait_for(lambda: reloads(service) == 2, "the reload back")
            traffic.await_statuses(200)
            assert versions(service) == {"0.3.0"}
            traffic.end()
            back = read_all(readers, service.base_url)
            paste(installation, "from 0.3.0", **values)
            service.wait_for(lambda: reloads(service) == 3, "the reload once more")
            after = read_all(readers, service.base_url)
        assert service.end(signal.SIGTERM) == 0

    assert (set(traffic.statuses), traffic.refused) == ({200}, {})
    assert len(traffic.statuses) > 100
    admin = make_url(installation.settings["ADMIN_DATABASE_URL"])
    assert execute(admin, "SELECT DISTINCT revision FROM registry.schools") == [(head(),)]
    for schools in (back, after):
        assert changes(before, schools) == []
        assert all(set(ids) <= rooms for ids, rooms in zip(traffic.written, classrooms(schools), strict=True))


def test_each_release_is_known_by_the_output_that_the_page_has(
    installation, release_before, release_0_3, server
):
    rows = re.findall(r"^\| `([\d.]+)`, ([^|]+) \| (?:`(t\d+)`|a later one) \| ([\d.]+) \|$", PAGE, re.M)
    assert [row[-1] for row in rows] == ["0.1.0", "0.2.0", "0.3.0", __version__]
    trees = {"0.2.0": release_before, "0.3.0": release_0_3, __version__: ROOT}
    for said, more, revision, release in rows:
        if release not in trees:
            continue
        first, *lines = installation.run(trees[release], "--version").splitlines()
        assert first == f"school-service {said}"
        assert [line.split()[0] for line in lines] == (re.findall(r"`(\w+)`", more) if lines else [])
        assert (more == "in one line") == (not lines)
        if lines:
            assert lines[-1].split() == ["schools", revision or head()]
    # Where the program says no revision, its schools' do.
    installation.run(release_before, "tenants", "init")
    installation.run(release_before, "tenants", "create", "A school")
    assert "t0012" in installation.run(release_before, "tenants", "status")
