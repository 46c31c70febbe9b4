"""Two schools made once, an application on a real PostgreSQL, and a client for each school's administrator."""

from __future__ import annotations

import gc
import io
import json
import logging
import os
import re
import signal
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar
from uuid import UUID

import argon2
import pytest
from flask import Flask
from sqlalchemy import URL, inspect, make_url
from sqlalchemy.engine import Engine

import school_service.app as service
from school_service.app import tenancy_of
from school_service.auth import passwords
from school_service.auth.login_throttle import limiter
from school_service.auth.signing_key import SigningKey
from school_service.auth.tokens import issue_user_token
from school_service.config import Settings
from school_service.core.database import db, placement
from school_service.core.shares import computing
from school_service.printing import printers
from school_service.serving.monitoring import count_requests
from school_service.sheets import uploads
from school_service.web.application import Service
from school_service.web.request_log import JsonFormatter
from tenants.connections import engines, registry
from tenants.placement import Placement
from tenants.provisioning.create import create_school
from tenants.registry.installation import install
from tenants.registry.schools import School, schema_name
from tenants.tenancy import Administrator, Tenancy
from tests.cli.program import ROOT, Interpreter, addresses_of_interpreters
from tests.client import ApiClient, Document, checking_errors
from tests.factories import Factory
from tests.lent_schools import Lender
from tests.pgbouncer import pgbouncer
from tests.postgres import NoServer, addresses, at_schools, test_database, test_server
from tests.savepoint_engine import CountingCursor, savepoint_engine, uncommitted
from tests.tenants.installations import TEMPLATES

PASSWORD = "correct horse battery staple"

# Each hash of a password is to take no time here; tests of the real cost make a hasher of their own.
passwords.hasher = argon2.PasswordHasher(time_cost=1, memory_cost=8, parallelism=1)

# Nor does an application here refuse a request because the machine has much else to do: a request that waits for
# a turn, a lock or a printer waits for it. Tests of these bounds set their own.
PATIENCE = 180  # seconds
service.LOCK_TIMEOUT = service.SHARE_PATIENCE = PATIENCE
engines.POOL_TIMEOUT = registry.PATIENCE = registry.BRIEFLY = PATIENCE
printers.PATIENCE = printers.TIMEOUT = PATIENCE
for waiting in (passwords._turns, uploads.sheet_turns, computing):
    waiting.patience = PATIENCE


def create_app(settings: Settings | None = None) -> Service:
    """Make an application as servers do: with METRICS_PORT its requests are counted."""
    app = _create_app(settings)
    if app.extensions["school-service"].settings.metrics_port is not None:
        app.extensions["metrics"] = count_requests(app)
    return app


# Of every module that is imported after this one.
_create_app, service.create_app = service.create_app, create_app


@dataclass(frozen=True)
class Place:
    """A school of the tests, and its administrator."""

    id: UUID
    name: str
    admin_id: UUID
    admin_token: str


# More than processors: for much of their time tests wait for servers and programs.
WORKERS = 3
SERVER = pytest.StashKey[URL]()
INTERPRETER = pytest.StashKey[Interpreter]()


def server_of(config: pytest.Config) -> URL:
    """Find the run's PostgreSQL server, which is started when it is first needed and stopped at the run's end.

    There is one for all workers of pytest-xdist: the process that starts them has started it. Where none
    starts, the run ends.
    """
    if hasattr(config, "workerinput"):
        return make_url(config.workerinput["server"])
    if SERVER not in config.stash:
        stack = ExitStack()
        config.add_cleanup(stack.close)
        try:
            config.stash[SERVER] = stack.enter_context(test_server())
        except NoServer as error:
            pytest.exit(f"The tests have no PostgreSQL: {error}", returncode=pytest.ExitCode.INTERNAL_ERROR)
    return config.stash[SERVER]


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config: pytest.Config) -> None:
    """Let a run of whole folders take WORKERS processes; `-n 0` and `-p no:xdist` say otherwise.

    These are no options of setup.cfg's, which a run without pytest-xdist would refuse.
    """
    option = config.option
    if hasattr(config, "workerinput"):
        return
    # Modules compiled by one process need no compiling by the others, nor by programs that tests start.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    sys.dont_write_bytecode = False
    if not hasattr(option, "numprocesses"):
        return
    by_folder = all(Path(argument).is_dir() for argument in config.args)
    if option.numprocesses is None and by_folder and not (option.usepdb or option.collectonly):
        option.numprocesses = WORKERS
    if option.numprocesses and option.dist == "no":
        option.dist = "loadfile"
    # Modules in the order of pytest_collection_modifyitems, and not by the number of their tests.
    option.loadscopereorder = False


# Modules that take longest: begun last, one of them would be waited for alone.
LONGEST = (
    "tests/demo/test_demo.py",
    "tests/web/test_docs_page.py",
    "tests/features/reach/test_matrix.py",
    "tests/tenants/backups/test_backup.py",
    "tests/features/results/golden/test_golden.py",
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Let the longest modules come first, then the tests that start programs: they wait for them."""
    items.sort(
        key=lambda item: (
            not item.nodeid.startswith(LONGEST),
            item.get_closest_marker("program") is None,
        )
    )


@pytest.hookimpl(hookwrapper=True)
def pytest_collection() -> Iterator[None]:
    """Collect without the garbage collector: it looked again and again at tests, which all live."""
    gc.disable()
    yield
    gc.enable()


def pytest_collection_finish() -> None:
    """Take imported and collected objects out of the garbage collector's sight: they stay until the end.

    To look through all of it again and again was a tenth of a run's time in Python.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(1_000_000, 50, 1000)


# As the settings' documentation names them.
SETTINGS = {*re.findall(r"\b[A-Z]+(?:_[A-Z]+)+\b", Settings.__doc__ or ""), "DOCS"}


def forget_settings() -> None:
    """Take the service's settings, and libpq's, out of the environment: tests and their programs have their own."""
    for name in [*os.environ]:
        if name in SETTINGS or name.startswith("PG"):
            del os.environ[name]


def pytest_configure(config: pytest.Config) -> None:
    """Let the programs that tests start react to signals as they would in a terminal.

    A process that ignores a signal hands that on to its programs, and under nohup we ignore SIGHUP, in the
    background SIGINT. A handler is not handed on; this one, too, lets nothing happen.
    """
    forget_settings()
    for number in (signal.SIGINT, signal.SIGHUP):
        if signal.getsignal(number) == signal.SIG_IGN:
            signal.signal(number, lambda *_: None)
    if hasattr(config, "workerinput"):
        addresses_of_interpreters[str(ROOT)] = config.workerinput["interpreter"]
    else:
        # Told to end, as by `timeout`, we stop the server as after Ctrl-C.
        signal.signal(signal.SIGTERM, signal.default_int_handler)


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Tell a worker of pytest-xdist where the server is, and the interpreter that forks programs for all workers."""
    config = node.config
    node.workerinput["server"] = server_of(config).render_as_string(hide_password=False)
    if INTERPRETER not in config.stash:
        config.stash[INTERPRETER] = Interpreter(str(ROOT))
        config.add_cleanup(config.stash[INTERPRETER].end)
    node.workerinput["interpreter"] = config.stash[INTERPRETER].address


@pytest.fixture(scope="session", autouse=True)
def _errors_are_checked() -> Iterator[None]:
    """Whichever test asks: each error has the one shape, and a type that its status may have."""
    with checking_errors():
        yield


@pytest.fixture(scope="session")
def server(pytestconfig: pytest.Config) -> Iterator[URL]:
    """The PostgreSQL server, as a superuser."""
    with TEMPLATES:
        yield server_of(pytestconfig)


@dataclass(frozen=True)
class Way:
    """The way of the application to its schools: the number of logins, through PgBouncer or not."""

    logins: int = 1
    pgbouncer: bool = False

    @contextmanager
    def reach(self, serving: URL) -> Iterator[URL]:
        """Yield the address that the application is given."""
        if not self.pgbouncer:
            yield serving
            return
        logins = Placement(str(serving.username), self.logins).all_logins
        with pgbouncer(serving, logins, pool_size=1) as address:
            yield address


@pytest.fixture(scope="session")
def settings(server: URL, request: pytest.FixtureRequest) -> Iterator[Settings]:
    """Settings of an installation with a database and a serving login of its own; a test may name a Way."""
    way = getattr(request, "param", None) or Way()
    with test_database(server) as (admin, serving), way.reach(serving) as address:
        yield settings_of(admin, address, way)


def settings_of(admin: URL, address: URL, way: Way) -> Settings:
    """Make the settings of an installation, by the addresses of its provisioning and its serving login."""
    return Settings.load(
        {
            **addresses(admin, address),
            "SERVING_LOGINS": str(way.logins),
            "SIGNING_KEY": SigningKey.generate().to_pem(),
            # Tests send many requests of one school at once, and no dispatcher lets them queue.
            "SCHOOL_REQUESTS": "20",
            "STATEMENT_TIMEOUT": str(PATIENCE),
            "LOG_LEVEL": "ERROR",
            "METRICS_PORT": "0",
            "PUBLIC_URL": "https://schools.example.org",
            "TRUSTED_PROXIES": "127.0.0.1",
        }
    )


@pytest.fixture(scope="session")
def tenancy(settings: Settings) -> Iterator[Tenancy]:
    """The operator's view of the installation, with the registry in place."""
    tenancy = tenancy_of(settings)
    install(tenancy)
    yield tenancy
    tenancy.admin.dispose()


@pytest.fixture(scope="session")
def app(settings: Settings, tenancy: Tenancy) -> Iterator[Flask]:
    """The application, whose requests commit."""
    app = create_app(settings)
    yield app
    dispose(app)


@pytest.fixture(scope="session")
def without_address(settings: Settings, tenancy: Tenancy) -> Iterator[Flask]:
    """The application without a PUBLIC_URL: nobody signs in by an app, and the guide is written so."""
    app = create_app(replace(settings, public_url=None))
    yield app
    dispose(app)


def dispose(app: Flask) -> None:
    """Close the connections of an application."""
    with app.app_context():
        for engine in [*db.engines.values(), *placement().engines_by_server().values()]:
            engine.dispose()


@pytest.fixture(scope="session")
def document(app: Flask) -> Document:
    """The OpenAPI document."""
    return Document(app)


def make_place(app: Flask, tenancy: Tenancy, name: str) -> Place:
    """Create a school, committed."""
    school = create_school(tenancy, name=name, administrator=Administrator("admin", PASSWORD))
    return Place(school.id, name, *administrator_of(app, tenancy, school))


def administrator_of(app: Flask, tenancy: Tenancy, school: School) -> tuple[UUID, str]:
    """Find a school's administrator and issue a token for them."""
    with tenancy.admin.connect() as connection:
        user_id = connection.exec_driver_sql(f'SELECT id FROM "{school.schema}".users').scalar_one()
    with app.app_context():
        token = issue_user_token(app.extensions["school-service"].verifier.key, user_id, school.id, 1)
    return user_id, token["access_token"]


@pytest.fixture(scope="session")
def place(app: Flask, tenancy: Tenancy, shared_rows: SharedRows) -> Place:
    """The school, shared by all tests: each takes its commits away again."""
    return shared_rows.watch(make_place(app, tenancy, "Queen's College, Yaba"))


@pytest.fixture(scope="session")
def other_place(app: Flask, tenancy: Tenancy, shared_rows: SharedRows) -> Place:
    """The other school, shared like the first."""
    return shared_rows.watch(make_place(app, tenancy, "Government College, Umuahia"))


class SharedRows:
    """The rows of the schools that all tests share, as they were at first: each module leaves them so."""

    def __init__(self, tenancy: Tenancy) -> None:
        self._tenancy = tenancy
        self._at_first: dict[str, dict[str, Any]] = {}

    def watch(self, place: Place) -> Place:
        """Remember a school's rows."""
        schema = schema_name(place.id)
        self._at_first[schema] = self._rows(schema)
        return place

    def differing(self) -> dict[str, dict[str, Any]]:
        """Find the tables whose rows have changed since the last call or the start, by school."""
        changed = {}
        for schema, before in self._at_first.items():
            self._at_first[schema] = after = self._rows(schema)
            if after != before:
                changed[schema] = {name: rows for name, rows in after.items() if rows != before[name]}
        return changed

    def _rows(self, schema: str) -> dict[str, Any]:
        """Count a school's rows by table, with a sum of their values."""
        with self._tenancy.admin.connect() as connection:
            tables = self._at_first.get(schema) or inspect(connection).get_table_names(schema)
            each = (
                f"SELECT '{table}', count(*), sum(hashtext(t::text)) FROM \"{schema}\".{table} t"
                for table in tables
            )
            rows = connection.exec_driver_sql(" UNION ALL ".join(each))
            return {table: (count, content) for table, count, content in rows}


SHARED = pytest.StashKey[SharedRows]()


@pytest.fixture(scope="session")
def shared_rows(tenancy: Tenancy, pytestconfig: pytest.Config) -> Iterator[SharedRows]:
    """The first rows of the schools that all tests share."""
    pytestconfig.stash[SHARED] = rows = SharedRows(tenancy)
    yield rows
    del pytestconfig.stash[SHARED]


@pytest.fixture(scope="module", autouse=True)
def _nothing_is_left_behind(pytestconfig: pytest.Config) -> Iterator[None]:
    """See that a module leaves the schools that all tests share as they were."""
    yield
    if SHARED in pytestconfig.stash:
        assert pytestconfig.stash[SHARED].differing() == {}


@pytest.fixture(scope="session")
def uncommitted_engine(settings: Settings) -> Iterator[Engine]:
    """The engine whose work is undone after each test."""
    with savepoint_engine(at_schools(settings.database_url)) as engine:
        yield engine


@pytest.fixture
def rehearsed(
    app: Flask, tenancy: Tenancy, uncommitted_engine: Engine, place: Place, other_place: Place
) -> Iterator[Flask]:
    """The application, whose requests are all undone after the test."""
    with uncommitted(uncommitted_engine), _requests_on(app, tenancy, uncommitted_engine):
        limiter.limiter.storage.reset()
        yield app


@contextmanager
def _requests_on(app: Flask, tenancy: Tenancy, engine: Engine) -> Iterator[None]:
    """Let all requests go to this engine."""
    with app.app_context():
        db.session.remove()
        try:
            with replaced_engines(app, dict.fromkeys(tenancy.placement.school_logins, engine)):
                yield
        finally:
            db.session.remove()


Made = TypeVar("Made")


@pytest.fixture(scope="module")
def prepared(
    app: Flask,
    tenancy: Tenancy,
    document: Document,
    uncommitted_engine: Engine,
    place: Place,
    other_place: Place,
) -> Iterator[Callable[[Callable[[Factory], Made]], Made]]:
    """Makes the first records of every test of a module: call with a function that takes a Factory.

    It is made once, in a transaction that each test goes on in and undoes to where it began. The fixture that calls
    it is for all tests of its module, `autouse`, so that none depends on which ran before; it hands out copies.
    """

    def make(build: Callable[[Factory], Made]) -> Made:
        with _requests_on(app, tenancy, uncommitted_engine):
            return build(Factory(ApiClient(app, document, place.admin_token, place.id)))

    with uncommitted(uncommitted_engine):
        yield make


@pytest.fixture(autouse=True)
def in_order() -> Iterator[None]:
    """Fails a test that sends a transaction whose locks are in another order than all others'."""
    CountingCursor.locks.wrong.clear()
    yield
    assert CountingCursor.locks.wrong == []


@contextmanager
def replaced_engines(app: Flask, engines: Mapping[str, Engine]) -> Iterator[None]:
    """Let other engines, by login, serve the schools of the application, for the length of the block."""
    placed: Placement = app.extensions["placement"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(placed, "engine_of", lambda school_id: engines[placed.login_of(school_id)])
        yield


@pytest.fixture
def api(rehearsed: Flask, document: Document, place: Place) -> ApiClient:
    """The school's administrator at the API."""
    return ApiClient(rehearsed, document, place.admin_token, place.id)


@pytest.fixture
def other_api(rehearsed: Flask, document: Document, other_place: Place) -> ApiClient:
    """The other school's administrator at the API."""
    return ApiClient(rehearsed, document, other_place.admin_token, other_place.id)


@pytest.fixture
def make(api: ApiClient) -> Factory:
    """Makes records of the school."""
    return Factory(api)


@pytest.fixture
def make_other(other_api: ApiClient) -> Factory:
    """Makes records of the other school."""
    return Factory(other_api)


@pytest.fixture
def messages(rehearsed: Flask) -> Callable[[], AbstractContextManager[list[str]]]:
    """Counts the statement batches sent to the database within a block: each is a round trip."""

    @contextmanager
    def counting() -> Iterator[list[str]]:
        CountingCursor.messages = sent = []
        yield sent
        CountingCursor.messages = []

    return counting


@pytest.fixture(scope="session")
def committed_places(app: Flask, tenancy: Tenancy) -> Lender[Place]:
    """Lends the school of `committing`."""
    return Lender(tenancy, lambda: make_place(app, tenancy, "Mayflower School, Ikenne"))


@pytest.fixture
def committing(app: Flask, document: Document, committed_places: Lender[Place]) -> Factory:
    """Makes records of a school of its own, committed; each thread needs its own client, `api.using()`."""
    place = committed_places.lend()
    with app.app_context():
        limiter.limiter.storage.reset()
    return Factory(ApiClient(app, document, place.admin_token, place.id))


@pytest.fixture
def logs() -> Iterator[Callable[[], list[dict[str, Any]]]]:
    """The log as the service writes it, from DEBUG on: call for the lines so far, each parsed."""
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(JsonFormatter())
    root = logging.getLogger()
    level = root.level
    root.addHandler(handler)
    root.setLevel(logging.DEBUG)
    yield lambda: [json.loads(line) for line in stream.getvalue().splitlines()]
    root.removeHandler(handler)
    root.setLevel(level)
