"""What a school's tables hold, in a line for each: the same wherever the same rows are.

The checksum of a table is the sum, as two numbers of 64 bits and up, of the halves of a SHA-256 of each row's text:
in whatever order the rows lie, whatever schema they are in, on whatever server. A row's text is
PostgreSQL's own (null and the empty text differ in it), written under settings that are set here.
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import Connection, text

from tenants.connections.engines import execute_script, quote_identifier

_SETTINGS = (
    "SET LOCAL TIME ZONE 'UTC'; SET LOCAL datestyle TO 'ISO, YMD'; SET LOCAL intervalstyle TO 'postgres'; "
    "SET LOCAL extra_float_digits TO 1; SET LOCAL bytea_output TO 'hex'"
)
_TABLES = text(
    "SELECT c.relname FROM pg_class c WHERE c.relnamespace = to_regnamespace(:schema) AND relkind = 'r'"
)
_CHECKSUM = """
SELECT {literal} AS name, count(*) AS rows,
    coalesce(sum(('x' || substr(h, 1, 16))::bit(64)::bigint), 0) || ':' ||
    coalesce(sum(('x' || substr(h, 17, 16))::bit(64)::bigint), 0) AS checksum
FROM (SELECT encode(sha256(convert_to(ROW(t.*)::text, 'UTF8')), 'hex') AS h FROM {table} AS t) AS hashed
"""


@dataclass(frozen=True, slots=True)
class TableChecksum:
    """How many rows a table holds, and their checksum."""

    rows: int
    checksum: str


def table_checksums(connection: Connection, schema: str) -> dict[str, TableChecksum]:
    """Compute the checksums of a schema's tables, by name; sets text formats for the rest of the transaction."""
    execute_script(connection, _SETTINGS)
    tables = sorted(connection.execute(_TABLES, {"schema": schema}).scalars())
    if not tables:
        return {}
    query = " UNION ALL ".join(
        _CHECKSUM.format(
            literal=_literal(table), table=f"{quote_identifier(schema)}.{quote_identifier(table)}"
        )
        for table in tables
    )
    rows = connection.exec_driver_sql(query, execution_options={"no_parameters": True})
    return {row.name: TableChecksum(row.rows, row.checksum) for row in rows}


def differences(expected: dict[str, TableChecksum], found: dict[str, TableChecksum]) -> list[str]:
    """Say which tables are not as they should be, and how."""
    return [
        f"{table} ({_row_count(found.get(table))}, not {_row_count(expected.get(table))})"
        if _row_count(found.get(table)) != _row_count(expected.get(table))
        else f"{table} (other rows)"
        for table in sorted(expected.keys() | found.keys())
        if expected.get(table) != found.get(table)
    ]


def _row_count(table: TableChecksum | None) -> str:
    return f"{table.rows} rows" if table else "missing"


def _literal(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"
