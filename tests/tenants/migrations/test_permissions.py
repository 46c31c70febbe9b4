"""A permission that is added to the catalogue reaches the schools that are there, by a migration."""

from __future__ import annotations

from uuid import uuid4

import pytest
from sqlalchemy import text

from migrations.tenant.permissions import add_permissions
from school_service.core.permissions import Permission
from tenants.connections.engines import execute_script
from tenants.migrations.migration_rules import check_migrations
from tenants.migrations.migration_sql import baseline, upgrade_statements
from tests.tenants.migrations.histories import history_with_script

SECTIONS_OF_T0003 = (
    *(
        "assessments",
        "classrooms",
        "cohort-subjects",
        "cohorts",
        "contacts",
        "employees",
        "gradebooks",
        "graduates",
    ),
    *(
        "metrics",
        "results",
        "roles",
        "scoresheets",
        "settings",
        "students",
        "subjects",
        "teachers",
        "terms",
        "users",
    ),
)
# The permissions that a school of this revision was seeded with. It stays as it is: later ones come by a migration.
PERMISSIONS_OF_T0003 = frozenset(
    f"{access}:{section}" for section in SECTIONS_OF_T0003 for access in ("delete", "read", "write")
)
ADDING = """
from migrations.tenant.permissions import add_permissions


def upgrade() -> None:
    add_permissions("read:made-up", "write:made-up")
"""


def execute_all(connection, statements):
    if statements:
        execute_script(connection, ";\n".join(statements))


@pytest.fixture
def scratch_schema(connection):
    """An empty schema that the connection's transaction is in."""
    schema = f"scratch_{uuid4().hex}"
    execute_script(connection, f"CREATE SCHEMA {schema}; SET LOCAL search_path TO {schema}")


@pytest.fixture
def school_of_t0003(connection, scratch_schema):
    """The role Administrator of a school as it was seeded at the revision t0003."""
    execute_all(connection, upgrade_statements(None, "t0003"))
    insert(connection, "counters", name="students", value=0)
    role_id = insert(connection, "roles", name="Administrator", avatar_number=1)
    for permission in sorted(PERMISSIONS_OF_T0003):
        grant(connection, role_id, insert_permission(connection, permission))
    return role_id


def insert(connection, table, **values):
    row = {"id": uuid4(), **values}
    names = ", ".join(row)
    parameters = ", ".join(f":{name}" for name in row)
    connection.execute(text(f"INSERT INTO {table} ({names}) VALUES ({parameters})"), row)
    return row["id"]


def insert_permission(connection, permission):
    access, section = permission.split(":")
    return insert(connection, "permissions", access=access, section=section)


def grant(connection, role_id, permission_id):
    connection.execute(
        text("INSERT INTO role_permissions (role_id, permission_id) VALUES (:role_id, :permission_id)"),
        {"role_id": role_id, "permission_id": permission_id},
    )


def permissions(connection):
    """List the permissions that the school has, a pair that is there twice also twice."""
    return sorted(connection.execute(text("SELECT access || ':' || section FROM permissions")).scalars())


def permissions_of(connection, role):
    return set(
        connection.execute(
            text(
                "SELECT p.access || ':' || p.section FROM permissions p "
                "JOIN role_permissions rp ON rp.permission_id = p.id JOIN roles r ON r.id = rp.role_id "
                "WHERE r.name = :role"
            ),
            {"role": role},
        ).scalars()
    )


def unreached(catalogue, names, granted):
    """List the permissions of a catalogue that an upgraded school lacks, or its Administrator, with the remedy."""
    return [
        f'{permission} reaches no existing school: call add_permissions("{permission}") in a migration '
        f'(school-service tenants revision "…" --empty)'
        for permission in sorted(catalogue)
        if permission not in names or permission not in granted
    ]


def test_every_permission_reaches_the_schools_that_are_there(connection, school_of_t0003):
    execute_all(connection, upgrade_statements("t0003"))

    names, granted = permissions(connection), permissions_of(connection, "Administrator")

    missing = unreached(map(str, Permission), names, granted)
    assert not missing, "\n".join(missing)


def test_a_permission_without_a_migration_is_reported(connection, school_of_t0003):
    execute_all(connection, upgrade_statements("t0003"))
    names, granted = permissions(connection), permissions_of(connection, "Administrator")
    lacking = (
        'read:made-up reaches no existing school: call add_permissions("read:made-up") in a migration '
        '(school-service tenants revision "…" --empty)'
    )

    assert unreached({*map(str, Permission), "read:made-up"}, names, granted) == [lacking]
    assert unreached({"read:made-up"}, ["read:made-up"], set()) == [lacking]
    assert unreached({"read:made-up"}, ["read:made-up"], {"read:made-up"}) == []


@pytest.fixture
def adding(tmp_path):
    """A history whose newest revision adds two permissions."""
    return history_with_script(tmp_path, ADDING)


@pytest.fixture
def upgrade(connection, adding):
    """Brings the school to the newest revision of that history."""

    def upgrade():
        execute_all(connection, upgrade_statements("t0003", folder=adding))

    return upgrade


def test_a_migration_gives_permissions_to_a_school_and_its_administrator(
    connection, school_of_t0003, upgrade
):
    insert(connection, "roles", name="Viewer", avatar_number=2)

    upgrade()

    added = {"read:made-up", "write:made-up"}
    assert set(permissions(connection)) >= PERMISSIONS_OF_T0003 | added
    assert permissions_of(connection, "Administrator") >= PERMISSIONS_OF_T0003 | added
    assert permissions_of(connection, "Viewer") == set()


def test_a_pair_that_the_school_made_itself_stays_and_is_granted(connection, school_of_t0003, upgrade):
    own = insert_permission(connection, "read:made-up")
    granted = insert_permission(connection, "write:made-up")
    grant(connection, school_of_t0003, granted)

    upgrade()

    names = permissions(connection)
    assert [names.count("read:made-up"), names.count("write:made-up")] == [1, 1]
    ids = connection.execute(text("SELECT id FROM permissions WHERE section = 'made-up'")).scalars()
    assert set(ids) == {own, granted}
    assert {"read:made-up", "write:made-up"} <= permissions_of(connection, "Administrator")


def test_a_school_without_an_administrator_gets_the_pair_alone(connection, school_of_t0003, upgrade):
    connection.execute(text("UPDATE roles SET name = 'Proprietor'"))

    upgrade()

    assert {"read:made-up", "write:made-up"} <= set(permissions(connection))
    assert not {"read:made-up", "write:made-up"} & permissions_of(connection, "Proprietor")


def test_a_school_that_is_being_created_gets_none_but_is_seeded(connection, scratch_schema, adding):
    execute_all(connection, [baseline(adding)[1]])

    assert permissions(connection) == []


def test_the_statements_keep_the_rules_of_migrations(adding):
    assert check_migrations(adding) == []


@pytest.mark.parametrize(
    "permission", ["made-up", "read:", "Read:made-up", "read:made-up'", "read:made-up:all"]
)
def test_a_permission_of_another_form_is_refused(permission):
    with pytest.raises(ValueError, match="is not of the form access:section"):
        add_permissions(permission)
