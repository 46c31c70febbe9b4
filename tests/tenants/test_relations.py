"""The relations of a schema: found by an index of the catalogue, and the same as in the whole catalogue."""

from __future__ import annotations

import re

import pytest
from sqlalchemy import text

from tenants.backups import checksums, restore, revision_tables
from tenants.catalogue import CATALOGUE
from tenants.connections.engines import execute_script
from tenants.provisioning import delete
from tenants.provisioning.ownership import table_grants
from tenants.relations import RELATIONS_OF_SCHEMA

FOUND = text(f"SELECT c.relkind::text || ' ' || c.relname FROM {RELATIONS_OF_SCHEMA} ORDER BY 1")
LISTED = text(
    "SELECT relkind::text || ' ' || relname FROM pg_class WHERE relnamespace = to_regnamespace(:schema) "
    "AND relkind NOT IN ('i', 'I', 't', 'c') ORDER BY 1"
)
EVERY_KIND = """
CREATE TABLE "{0}".extra (id int PRIMARY KEY, number int GENERATED ALWAYS AS IDENTITY, long text);
CREATE TABLE "{0}".parted (id int) PARTITION BY LIST (id);
CREATE TABLE "{0}".part PARTITION OF "{0}".parted FOR VALUES IN (1);
CREATE TYPE "{0}".pair AS (a int, b int);
CREATE VIEW "{0}".seen AS SELECT 1 AS one;
CREATE MATERIALIZED VIEW "{0}".remembered AS SELECT 1 AS one;
CREATE SEQUENCE "{0}".numbers;
CREATE TABLE public.moved (id int); ALTER TABLE public.moved SET SCHEMA "{0}"
"""
RIGHTS = text(
    "SELECT relname, relacl::text AS relacl FROM pg_class WHERE relnamespace = to_regnamespace(:schema) ORDER BY 1"
)
OF_A_SCHOOL = {
    "everything": CATALOGUE,
    "columns": revision_tables._COLUMNS,
    "tables": checksums._TABLES,
    "foreign keys": restore._FOREIGN_KEYS,
    "tables and locks": delete._TABLES,
}


def test_relations_of_a_school_are_all_that_the_catalogue_lists(connection, schools):
    for school in schools:
        execute_script(connection, EVERY_KIND.format(school.schema) if school is schools[0] else "SELECT")

    relations, others = (
        connection.execute(FOUND, {"schema": school.schema}).scalars().all() for school in schools
    )

    assert relations == connection.execute(LISTED, {"schema": schools[0].schema}).scalars().all()
    assert set(relations) - set(others) == {
        "r extra",
        "S extra_number_seq",
        "p parted",
        "r part",
        "v seen",
        "m remembered",
        "S numbers",
        "r moved",
    }
    assert connection.execute(FOUND, {"schema": "school_of_nobody"}).all() == []


@pytest.mark.parametrize("name", OF_A_SCHOOL)
def test_the_catalogue_of_all_schools_is_not_read(connection, schools, name):
    assert scans(connection, str(OF_A_SCHOOL[name]), schools[0]) == {"pg_class_oid_index"}


def test_a_query_by_schema_alone_reads_it(connection, schools):
    """Without this the test above would prove nothing."""
    query = "SELECT relname FROM pg_class WHERE relnamespace = to_regnamespace(:schema)"

    assert scans(connection, query, schools[0]) != {"pg_class_oid_index"}


def scans(connection, query, school):
    """List how PostgreSQL would read its table of relations, were it large."""
    execute_script(connection, "SET LOCAL enable_seqscan TO off")
    plan = connection.execute(text(f"EXPLAIN {query}"), {"schema": school.schema, "owner": None}).scalars()
    matches = (re.search(r"(\S+) (?:using (\S+) )?on pg_class\b", line) for line in plan)
    return {match[2] or match[1] for match in matches if match}


def test_all_tables_and_views_are_granted_and_nothing_else(tenancy, connection, schools):
    """As ALL TABLES IN SCHEMA would, but for its cost."""
    first, second = schools
    extra = EVERY_KIND.format(first.schema) + f'; CREATE TABLE "{first.schema}"."Odd ""name"" \'x\'" (id int)'
    before = rights(connection, second)
    execute_script(connection, extra)
    execute_script(connection, ";\n".join(table_grants(first.schema)))
    granted = rights(connection, first)
    execute_script(
        connection,
        f'GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA "{first.schema}" TO "{first.schema}";'
        f'REVOKE UPDATE, DELETE ON "{first.schema}".audit_entries, "{first.schema}".change_sets FROM "{first.schema}"',
    )

    assert granted == rights(connection, first)
    for table in ("extra", "seen", "Odd \"name\" 'x'", "classrooms"):
        assert f"{first.schema}=arwd/" in granted[table]
    assert f"{first.schema}=ar/" in granted["audit_entries"]
    assert granted["numbers"] is None
    assert rights(connection, second) == before


def rights(connection, school):
    return {row.relname: row.relacl for row in connection.execute(RIGHTS, {"schema": school.schema})}


def test_a_schema_without_tables_is_no_fault(connection):
    execute_script(connection, "CREATE SCHEMA school_empty; CREATE ROLE school_empty")

    execute_script(connection, ";\n".join(table_grants("school_empty")[:2]))

    assert connection.execute(FOUND, {"schema": "school_empty"}).all() == []
