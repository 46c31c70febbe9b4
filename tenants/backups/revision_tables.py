"""The tables of a school's schema at a revision: made by our own migrations, and read from the catalogue."""

from __future__ import annotations

from pathlib import Path
from uuid import uuid4

from sqlalchemy import Connection, text

from tenants.connections.engines import execute_script, quote_identifier
from tenants.exceptions import BackupRefused
from tenants.migrations.migration_sql import baseline_statements, head, revisions, upgrade_statements
from tenants.relations import RELATIONS_OF_SCHEMA
from tenants.tenancy import Tenancy

# What a schema holds besides its tables' indexes and types: a line for each relation, and for each column.
_RELATIONS = text(
    f"""
    SELECT CASE c.relkind WHEN 'r' THEN 'table' WHEN 'v' THEN 'view' WHEN 'm' THEN 'materialized view'
        WHEN 'S' THEN 'sequence' WHEN 'f' THEN 'foreign table' ELSE 'partitioned table' END || ' ' || c.relname,
        NULL
    FROM {RELATIONS_OF_SCHEMA} WHERE c.relkind IN ('r', 'v', 'm', 'S', 'f', 'p')
    UNION ALL
    SELECT 'column ' || c.relname || '.' || a.attname, format_type(a.atttypid, a.atttypmod)
    FROM {RELATIONS_OF_SCHEMA} JOIN pg_attribute a ON a.attrelid = c.oid
    WHERE c.relkind = 'r' AND a.attnum > 0 AND NOT a.attisdropped
    """  # noqa: S608 -- a text of our own
)
_COLUMNS = text(
    f"""
    SELECT c.relname,
        coalesce(array_agg(a.attname::text ORDER BY a.attnum) FILTER (WHERE a.attgenerated = ''), '{{}}'),
        coalesce(bool_or(a.attgenerated <> ''), false)
    FROM {RELATIONS_OF_SCHEMA} LEFT JOIN pg_attribute a
        ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
    WHERE c.relkind = 'r'
    GROUP BY c.relname
    """  # noqa: S608 -- a text of our own
)
# By the statements that make them, so that a history that is edited gives others.
_known: dict[str, dict[str, str | None]] = {}


def refuse_unknown(revision: str, history: Path) -> None:
    """See that this program's migrations have a revision; raises BackupRefused."""
    if revision not in revisions(history):
        raise BackupRefused(
            f"The backup is of a school at revision {revision}, which this program does not know "
            f"(its newest is {head(history)}): use a newer program."
        )


def table_statements(revision: str, history: Path) -> list[str]:
    """Write the statements for a school's tables at a revision; migrations may insert rows among them."""
    at_head = revision == head(history)
    return baseline_statements(history) if at_head else upgrade_statements(None, revision, history)


def table_columns(connection: Connection, schema: str) -> dict[str, tuple[str, ...]]:
    """Read the tables of a schema, and the columns of each with values given by rows."""
    rows = connection.execute(_COLUMNS, {"schema": schema})
    return {table: tuple(columns) for table, columns, _ in rows}


def computed_tables(connection: Connection, schema: str) -> set[str]:
    """Read the tables of a schema with columns computed by PostgreSQL: rows give these no value."""
    rows = connection.execute(_COLUMNS, {"schema": schema})
    return {table for table, _, computed in rows if computed}


def odd_parts(tenancy: Tenancy, connection: Connection, schema: str, revision: str) -> list[str]:
    """List the parts of a school's schema beyond its revision, or missing of it, such as "view summary".

    Such rows would not be brought back. The revision's tables are made in a schema of the moment, in a transaction
    rolled back at its end; once in a process.
    """
    found = _relations(connection, schema)
    statements = ";\n".join(table_statements(revision, tenancy.history))
    if statements not in _known:
        _known[statements] = _rehearse(tenancy, statements)
    expected = _known[statements]
    return sorted(
        part
        for part in found.keys() | expected.keys()
        if part not in found or part not in expected or found[part] != expected[part]
    )


def _rehearse(tenancy: Tenancy, statements: str) -> dict[str, str | None]:
    schema = f"rehearsal_{uuid4().hex}"
    name = quote_identifier(schema)
    with tenancy.admin.connect() as connection, connection.begin() as transaction:
        tenancy.placement.stay_here(connection)
        execute_script(
            connection, f"CREATE SCHEMA {name};\nSET LOCAL search_path TO {name}, pg_temp;\n{statements}"
        )
        found = _relations(connection, schema)
        transaction.rollback()
    return found


def _relations(connection: Connection, schema: str) -> dict[str, str | None]:
    return {row[0]: row[1] for row in connection.execute(_RELATIONS, {"schema": schema})}
