"""Two schools whose classrooms bear the school's id as their name: a row of another school shows at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any
from uuid import UUID, uuid4

import pytest
from sqlalchemy import URL, create_engine
from sqlalchemy.engine import Engine
from sqlalchemy.orm import Session, sessionmaker

from tenants.binding import Rules
from tenants.database import school_url, serving_options
from tenants.provisioning import create_school
from tenants.registry import School
from tenants.tenancy import Tenancy
from tests.rehearsal import CountingCursor
from tests.tenants.installations import ADMINISTRATOR, execute, guarded, rules_of


def tagged_school(tenancy: Tenancy, rows: int = 2) -> School:
    """Create a school with classrooms that are named with the school's id, and a number."""
    school = create_school(tenancy, name="Tagged", administrator=ADMINISTRATOR)
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
    """The two schools."""
    return tagged_school(tenancy), tagged_school(tenancy)


@pytest.fixture(scope="session")
def rules(tenancy: Tenancy) -> Rules:
    """What holds for every entry."""
    return rules_of(tenancy)


@pytest.fixture
def make_engine(tenancy: Tenancy) -> Iterator[Callable[..., Engine]]:
    """Makes engines like the application's, which count their messages; options override."""
    made = []

    def make(url: URL | None = None, pool_size: int = 1, **options: Any) -> Engine:
        wanted = {**serving_options(pool_size), **options}
        wanted["connect_args"]["cursor_factory"] = CountingCursor
        made.append(create_engine(url or school_url(tenancy.serving_url), **wanted))
        return made[-1]

    yield make
    for engine in made:
        engine.dispose()


@pytest.fixture
def engine(make_engine: Callable[..., Engine]) -> Engine:
    """An engine of one connection."""
    return make_engine()


@pytest.fixture
def sessions(engine: Engine, rules: Rules) -> sessionmaker[Session]:
    """Sessions on that connection."""
    return guarded(engine, rules)
