"""A school that was there before settings has, once upgraded, the rows that a new school is seeded with."""

from __future__ import annotations

from uuid import uuid4

from sqlalchemy import text

from school_service.seed import defaults
from tenants.connections.engines import execute_script, quote_identifier
from tenants.migrations.migration_sql import upgrade_statements
from tenants.provisioning.create import create_school
from tests.tenants.installations import ADMINISTRATOR

SEEDED = (
    "counters",
    "departments",
    "employee_categories",
    "positions",
    "grade_configurations",
    "metric_definitions",
    "school_settings",
)
# The counters of an old school.
OLD_COUNTERS = {"batches": 3, "students": 12}


def rows(connection, schema, table):
    """List the rows of a table as JSON, without the columns that differ from school to school."""
    result = connection.execute(
        text(
            f"SELECT (to_jsonb(one) - 'id' - 'created_at')::text FROM {quote_identifier(schema)}.{table} AS one"
        )
    )
    return sorted(result.scalars())


def old_school(connection):
    """Make the tables of a school as they were before settings, with its counters."""
    schema = f"scratch_{uuid4().hex[:8]}"
    execute_script(connection, f"CREATE SCHEMA {schema}; SET LOCAL search_path TO {schema}")
    execute_script(connection, ";\n".join(upgrade_statements(None, "t0002")))
    for name, value in OLD_COUNTERS.items():
        connection.execute(
            text("INSERT INTO counters (id, name, value) VALUES (:id, :name, :value)"),
            {"id": uuid4(), "name": name, "value": value},
        )
    return schema


def test_an_upgraded_school_has_the_rows_of_a_new_one(tenancy, connection):
    new = create_school(tenancy, name="New", administrator=ADMINISTRATOR).schema
    old = old_school(connection)

    execute_script(connection, ";\n".join(upgrade_statements("t0002")))

    for name, value in OLD_COUNTERS.items():
        counted = {"name": name, "value": value}
        connection.execute(
            text(f"UPDATE {quote_identifier(new)}.counters SET value = :value WHERE name = :name"), counted
        )
    for table in SEEDED:
        assert rows(connection, old, table) == rows(connection, new, table), table


def test_the_rows_are_as_many_as_the_defaults(tenancy, connection):
    old = old_school(connection)
    execute_script(connection, ";\n".join(upgrade_statements("t0002")))

    assert {table: len(rows(connection, old, table)) for table in SEEDED[1:]} == {
        "departments": len(defaults.DEPARTMENTS),
        "employee_categories": len(defaults.EMPLOYEE_CATEGORIES),
        "positions": len(defaults.POSITIONS),
        "grade_configurations": len(defaults.GRADE_BANDS),
        "metric_definitions": sum(map(len, defaults.TRAITS.values())),
        "school_settings": 1,
    }
