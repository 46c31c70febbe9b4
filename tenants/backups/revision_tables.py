"""The tables of a school's schema at a revision: made by our own migrations, and read from the catalogue."""

from __future__ import annotations

from pathlib import Path

from sqlalchemy import Connection, text

from tenants.catalogue import RELATIONS, catalogue_of_revision, read_catalogue
from tenants.exceptions import BackupRefused
from tenants.migrations.migration_sql import head, revisions
from tenants.relations import RELATIONS_OF_SCHEMA
from tenants.tenancy import Tenancy

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
_STORED = {*RELATIONS.values(), "column"}


def refuse_unknown(revision: str, history: Path) -> None:
    """See that this program's migrations have a revision; raises BackupRefused."""
    if revision not in revisions(history):
        raise BackupRefused(
            f"The backup is of a school at revision {revision}, which this program does not know "
            f"(its newest is {head(history)}): use a newer program."
        )


def table_columns(connection: Connection, schema: str) -> dict[str, tuple[str, ...]]:
    """Read the tables of a schema, and the columns of each with values given by rows."""
    rows = connection.execute(_COLUMNS, {"schema": schema})
    return {table: tuple(columns) for table, columns, _ in rows}


def computed_tables(connection: Connection, schema: str) -> set[str]:
    """Read the tables of a schema with columns computed by PostgreSQL: rows give these no value."""
    rows = connection.execute(_COLUMNS, {"schema": schema})
    return {table for table, _, computed in rows if computed}


def odd_parts(tenancy: Tenancy, connection: Connection, schema: str, revision: str) -> list[str]:
    """List the relations and columns of a school's schema beyond its revision, or missing of it, or of another type.

    Such rows would not be brought back.
    """
    expected, actual = catalogue_of_revision(tenancy, revision), read_catalogue(connection, schema)
    return sorted(
        f"{kind} {name}"
        for kind, name in expected.keys() | actual.keys()
        if kind in _STORED and expected.get((kind, name)) != actual.get((kind, name))
    )
