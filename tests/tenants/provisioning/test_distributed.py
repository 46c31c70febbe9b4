"""Schools placed by Citus: the statements that create one, and refusals where Citus is missing."""

from __future__ import annotations

from dataclasses import replace
from uuid import uuid4

import pytest

from tenants.distribution.placement import NodePlacement
from tenants.exceptions import UnfitPlacement
from tenants.provisioning.create import create_school, creation_statements
from tenants.registry.installation import install
from tenants.sql_scanner import statements
from tests.postgres import on_postgresql_alone
from tests.tenants.installations import ADMINISTRATOR, execute, installation

pytestmark = on_postgresql_alone


@pytest.fixture(scope="module")
def plain(server):
    """An installation on PostgreSQL alone."""
    with installation(server) as tenancy:
        yield tenancy


def on_nodes(tenancy):
    """Describe an installation as if Citus placed its schools."""
    return replace(tenancy, placement=NodePlacement(tenancy.placement.login))


def statements_of(tenancy, school_id):
    with tenancy.admin.connect() as connection:
        rows = [("users", [{"id": school_id}])]
        batch = creation_statements(tenancy, connection, school_id=school_id, name="x", rows=rows)
    return [statement.text for statement in statements(";\n".join(batch))]


def test_the_tables_are_given_to_citus_before_their_first_rows_and_grants(plain):
    school_id = uuid4()
    given = f"SELECT citus_schema_distribute('school_{school_id.hex}')"

    sent = statements_of(on_nodes(plain), school_id)

    assert sent.count(given) == 1
    kinds = [words(statement) for statement in sent]
    after = kinds[sent.index(given) + 1 :]
    # Statements that make an index, or change a table, fail behind it in one message with others.
    assert not {"CREATE TABLE", "CREATE INDEX", "CREATE UNIQUE", "ALTER TABLE", "CREATE FUNCTION"} & set(
        after
    )
    assert {"CREATE TABLE", "CREATE INDEX"} < set(kinds)
    assert "INSERT INTO" in after
    granting = [statement for statement in sent if "GRANT SELECT, INSERT, UPDATE, DELETE ON" in statement]
    assert [words(statement) for statement in granting] == ["DO '"]
    assert kinds.index("DO '") > sent.index(given)
    assert "ON ALL TABLES" not in "".join(sent)
    # A role that can't sign in could not be asked for by the coordinator.
    assert not any("SET LOCAL ROLE" in statement for statement in sent)


def words(statement):
    return " ".join(statement.split()[:2])


def test_without_it_nothing_is_said_of_citus(plain):
    assert not any("citus" in statement for statement in statements_of(plain, uuid4()))


def test_the_tables_of_schools_on_citus_belong_to_the_provisioning_login(plain):
    assert plain.owner == f"{plain.placement.login}_owner"
    assert on_nodes(plain).owner == plain.admin_url.username


def test_creating_is_refused_where_citus_is_missing(plain):
    school_id = uuid4()

    with pytest.raises(
        UnfitPlacement, match="TENANT_DISTRIBUTED is on, but the database has no extension citus"
    ):
        create_school(on_nodes(plain), name="x", administrator=ADMINISTRATOR, school_id=school_id)

    assert execute(plain.admin_url, "SELECT FROM registry.schools WHERE id = %s", (str(school_id),)) == []


def test_installing_is_refused_where_citus_is_missing(server):
    with installation(server, installed=False) as tenancy:
        with pytest.raises(UnfitPlacement):
            install(on_nodes(tenancy))

        assert execute(tenancy.admin_url, "SELECT FROM pg_namespace WHERE nspname = 'registry'") == []


def test_how_long_a_lock_is_waited_for_is_told_the_nodes_too(plain):
    assert plain.placement.limit_waiting(2) == "SET LOCAL lock_timeout = '2000ms'"
    first, limit, last = on_nodes(plain).placement.limit_waiting(2).split(";\n")
    assert limit == "SET LOCAL lock_timeout = '2000ms'"
    assert (first, last) == tuple(
        f"SET LOCAL citus.propagate_set_commands TO '{which}'" for which in ("local", "none")
    )
