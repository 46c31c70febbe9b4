"""Schools to migrate, broken ones too, and locks that are in the way."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from uuid import uuid4

import psycopg2

from tenants.provisioning.create import create_school
from tenants.registry.schools import School, schools_to_lock
from tenants.tenancy import Tenancy
from tests.cli.program import wait_for
from tests.postgres import nodes_of
from tests.tenants.installations import ADMINISTRATOR, execute

# A school's classroom's level counts its migrations.
CHANGE = [
    "ALTER TABLE classrooms ADD COLUMN motto varchar(120)",
    "CREATE INDEX ix_classrooms_motto ON classrooms (motto)",
    "UPDATE classrooms SET level = level || '+'",
]


def make_schools(tenancy: Tenancy, count: int) -> list[School]:
    """Create schools, each with a classroom that was never migrated."""
    made = []
    for number in range(count):
        school = create_school(tenancy, name=f"School {number}", administrator=ADMINISTRATOR)
        execute(
            tenancy.admin_url,
            f'INSERT INTO "{school.schema}".classrooms (id, name, level) VALUES (%s, %s, %s)',
            (str(uuid4()), "JSS 1", "0"),
        )
        made.append(school)
    return made


def level(tenancy: Tenancy, school: School) -> str:
    """Read how often a school was migrated."""
    ((level,),) = execute(tenancy.admin_url, f'SELECT level FROM "{school.schema}".classrooms')
    return level


def revision(tenancy: Tenancy, school: Any) -> str:
    """Read the revision of a school."""
    ((revision,),) = execute(
        tenancy.admin_url, "SELECT revision FROM registry.schools WHERE id = %s", (str(school.id),)
    )
    return revision


def break_school(tenancy: Tenancy, school: School) -> None:
    """Give a school the column that its migration is to add."""
    execute(tenancy.admin_url, f'ALTER TABLE "{school.schema}".classrooms ADD COLUMN motto text')


def mend_school(tenancy: Tenancy, school: School) -> None:
    """Take that column away again."""
    execute(tenancy.admin_url, f'ALTER TABLE "{school.schema}".classrooms DROP COLUMN motto')


@contextmanager
def locked(tenancy: Tenancy, sql: str, parameters: Sequence[Any] | None = None) -> Iterator[Any]:
    """Hold the locks of a statement, until the block ends or the connection is closed."""
    url = tenancy.admin_url.set(drivername="postgresql")
    connection = psycopg2.connect(url.render_as_string(hide_password=False))
    try:
        with connection.cursor() as cursor:
            cursor.execute(sql, parameters)
        yield connection
    finally:
        connection.close()


def rows_of_schools(tenancy: Tenancy) -> str:
    """Name the table in which the operator's work locks the rows of schools."""
    with tenancy.admin.connect() as connection:
        return schools_to_lock(connection).fullname


def await_lock(tenancy: Tenancy, count: int = 1) -> None:
    """Wait until so many transactions wait for a lock."""
    waiting = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
    nodes = nodes_of(tenancy.admin_url)
    wait_for(
        lambda: sum(execute(node, waiting)[0][0] for node in nodes) >= count, "somebody waits for a lock"
    )
