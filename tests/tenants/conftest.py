"""Two schools whose classrooms bear the school's id as their name: a row of another school shows at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest
from sqlalchemy import URL, Connection, create_engine
from sqlalchemy.engine import Engine
from sqlalchemy.orm import Session, sessionmaker

from tenants.connections.binding import BindingOptions
from tenants.connections.engines import school_url, serving_options
from tenants.provisioning.create import create_school
from tenants.registry.schools import School
from tenants.tenancy import Tenancy
from tests.postgres import at_schools
from tests.savepoint_engine import CountingCursor
from tests.tenants.installations import (
    ADMINISTRATOR,
    binding_options,
    bound_sessions,
    execute,
    installation,
)
from tests.tenants.migrations.histories import LOG_AND_KEYS, few_rows, later_history, small_history


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run a module's tests in each of its WAYS to reach schools, as far as they use the installation."""
    ways = getattr(metafunc.module, "WAYS", None)
    if ways and "settings" in metafunc.fixturenames:
        metafunc.parametrize("settings", ways, indirect=True, scope="session")


def tagged_school(tenancy: Tenancy, rows: int = 2, *, login: str | None = None) -> School:
    """Create a school, of any login or the named one; classrooms bear the school's id and a number."""
    school_id = uuid4()
    while login is not None and tenancy.placement.login_of(school_id) != login:
        school_id = uuid4()
    school = create_school(tenancy, name="Tagged", administrator=ADMINISTRATOR, school_id=school_id)
    for number in range(rows):
        execute(
            tenancy.admin_url,
            f'INSERT INTO "{school.schema}".classrooms (id, name, level) VALUES (%s, %s, %s)',
            (str(uuid4()), f"{school.id} {number}", "tag"),
        )
    return school


def tag_of(name: str) -> UUID:
    """Read the school's id from the name of a classroom."""
    return UUID(name[:36])


@pytest.fixture(scope="session")
def schools(tenancy: Tenancy) -> tuple[School, School]:
    """The two schools, both of the first login."""
    login = tenancy.placement.school_logins[0]
    return tagged_school(tenancy, login=login), tagged_school(tenancy, login=login)


@pytest.fixture(scope="session")
def few_tables(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The history of a program that knows few tables: schools are made, copied and dropped fast."""
    folder = tmp_path_factory.mktemp("history")
    return later_history(folder / "few", LOG_AND_KEYS, origin=small_history(folder / "origin"))


@pytest.fixture(scope="session")
def few(server: URL, few_tables: Path) -> Iterator[Tenancy]:
    """An installation of that program."""
    with installation(server, history=few_tables, seed=few_rows) as tenancy:
        yield tenancy


@pytest.fixture(scope="session")
def options(tenancy: Tenancy) -> BindingOptions:
    """The options of every binding."""
    return binding_options(tenancy)


@pytest.fixture
def connection(tenancy: Tenancy) -> Iterator[Connection]:
    """The operator's connection, whose work is undone after the test."""
    with tenancy.admin.connect() as connection:
        yield connection
        connection.rollback()


@pytest.fixture
def make_engine(tenancy: Tenancy) -> Iterator[Callable[..., Engine]]:
    """Makes engines like the application's, of the first login, which count their round trips; options override."""
    made = []
    first_login = at_schools(tenancy.serving_url).set(username=tenancy.placement.school_logins[0])

    def make(
        url: URL | None = None, pool_size: int = 1, schools_per_connection: int = 100, **options: Any
    ) -> Engine:
        chosen = {**serving_options(pool_size, schools_per_connection=schools_per_connection), **options}
        chosen["connect_args"]["cursor_factory"] = CountingCursor
        made.append(create_engine(url or school_url(first_login), **chosen))
        return made[-1]

    yield make
    for engine in made:
        engine.dispose()


@pytest.fixture
def make_engines(tenancy: Tenancy, make_engine: Callable[..., Engine]) -> Callable[..., dict[str, Engine]]:
    """Makes an engine for each login that enters schools."""

    def make(drivername: str = "postgresql+school", **options: Any) -> dict[str, Engine]:
        url = at_schools(tenancy.serving_url).set(drivername=drivername)
        return {
            login: make_engine(url.set(username=login), **options)
            for login in tenancy.placement.school_logins
        }

    return make


@pytest.fixture
def engine(make_engine: Callable[..., Engine]) -> Engine:
    """An engine of one connection."""
    return make_engine()


@pytest.fixture
def sessions(engine: Engine, options: BindingOptions) -> sessionmaker[Session]:
    """Sessions on that connection."""
    return bound_sessions(engine, options)
