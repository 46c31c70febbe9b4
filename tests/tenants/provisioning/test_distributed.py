"""Schools placed by Citus: the one setting of the one transaction, and a refusal where Citus is missing."""

from __future__ import annotations

from dataclasses import replace
from uuid import uuid4

import pytest
from sqlalchemy import text

from tenants.connections.engines import execute_script
from tenants.exceptions import NotDistributed
from tenants.provisioning.create import create_school, creation_statements
from tenants.registry.installation import install
from tests.tenants.installations import ADMINISTRATOR, execute, installation

SHARDING = "citus.enable_schema_based_sharding"


@pytest.fixture(scope="module")
def plain(server):
    """An installation without roles, on PostgreSQL alone."""
    with installation(server, roles=False) as tenancy:
        yield tenancy


def statements_of(tenancy, school_id):
    with tenancy.admin.connect() as connection:
        return creation_statements(tenancy, connection, school_id=school_id, name="x", rows=())


def test_the_setting_comes_before_the_schema_and_for_its_transaction_alone(plain):
    statements = statements_of(replace(plain, distributed=True), uuid4())

    setting = [statement for statement in statements if SHARDING in statement]
    assert setting == [f"SET LOCAL {SHARDING} TO on"]
    assert statements.index(setting[0]) < next(
        place for place, statement in enumerate(statements) if statement.startswith("CREATE SCHEMA")
    )


def test_without_it_nothing_is_said_of_citus(plain):
    assert not any("citus" in statement for statement in statements_of(plain, uuid4()))


def test_the_setting_holds_within_the_message_and_no_longer(plain):
    school_id = uuid4()
    with plain.admin.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        statements = creation_statements(
            replace(plain, distributed=True), connection, school_id=school_id, name="x", rows=()
        )
        witness = f"INSERT INTO classrooms VALUES ('{uuid4()}', current_setting('{SHARDING}'), 'x')"
        execute_script(connection, ";\n".join([*statements, witness]))
        left = connection.execute(text(f"SELECT current_setting('{SHARDING}', true)")).scalar_one()
        named = connection.exec_driver_sql(f"SELECT name FROM school_{school_id.hex}.classrooms").scalars()
        seen = named.all()

    assert seen == ["on"]
    assert left in (None, "")


def test_creating_is_refused_where_citus_is_missing(plain):
    school_id = uuid4()

    with pytest.raises(
        NotDistributed, match="TENANT_DISTRIBUTED is on, but the database has no extension citus"
    ):
        create_school(
            replace(plain, distributed=True), name="x", administrator=ADMINISTRATOR, school_id=school_id
        )

    assert execute(plain.admin_url, "SELECT FROM registry.schools WHERE id = %s", (str(school_id),)) == []


def test_installing_is_refused_where_citus_is_missing(server):
    with installation(server, roles=False, installed=False) as tenancy:
        with pytest.raises(NotDistributed):
            install(replace(tenancy, distributed=True))

        assert execute(tenancy.admin_url, "SELECT FROM pg_namespace WHERE nspname = 'registry'") == []
