"""The contents of a school's tables, in a line for each: the same on each server with the same rows.

The checksum of a table is the sum, as two numbers of 64 bits and up, of the halves of a SHA-256 of each row's text: in
any order of the rows, in any schema, on any server. A row's text is PostgreSQL's own (null and the empty text differ in
it), written under settings made here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy import Connection, text

from tenants.connections.engines import execute_script, quote_identifier, quote_literal
from tenants.relations import RELATIONS_OF_SCHEMA
from tenants.wording import counted

_SETTINGS = (
    "SET LOCAL TIME ZONE 'UTC'; SET LOCAL datestyle TO 'ISO, YMD'; SET LOCAL intervalstyle TO 'postgres'; "
    "SET LOCAL extra_float_digits TO 1; SET LOCAL bytea_output TO 'hex'"
)
_TABLES = text(f"SELECT c.relname FROM {RELATIONS_OF_SCHEMA} WHERE c.relkind = 'r'")  # noqa: S608
# One sum over the rows of all tables: PostgreSQL would plan a sum for each table, which takes longer than to read the
# rows of a new school. A table without rows is not in the answer.
_ROWS = "SELECT {literal} AS name, ROW({columns})::text AS content FROM {table} AS t"
_CHECKSUMS = """
SELECT name, count(*) AS rows,
    sum(('x' || substr(h, 1, 16))::bit(64)::bigint) || ':' ||
    sum(('x' || substr(h, 17, 16))::bit(64)::bigint) AS checksum
FROM (SELECT name, encode(sha256(convert_to(content, 'UTF8')), 'hex') AS h FROM ({rows}) AS contents) AS hashed
GROUP BY name
"""
# Letters whose second byte in UTF-8 makes the server quote them in a row's text: on some systems, by its locale, a byte
# of a letter is a blank by itself.
_QUOTED = text(
    """
    SELECT coalesce(string_agg(chr(n), '' ORDER BY n), '') FROM generate_series(192, 255) AS n
    WHERE current_setting('server_encoding') = 'UTF8' AND starts_with(ROW(chr(n))::text, '("')
    """
)


@dataclass(frozen=True, slots=True)
class TableChecksum:
    """How many rows a table holds, and their checksum."""

    rows: int
    checksum: str


_NO_ROWS = TableChecksum(0, "0:0")


def table_checksums(connection: Connection, schema: str) -> dict[str, TableChecksum]:
    """Compute the checksums of a schema's tables, by name; sets text formats for the rest of the transaction."""
    tables = connection.execute(_TABLES, {"schema": schema}).scalars()
    return _checksums(connection, schema, dict.fromkeys(tables, "t.*"))


def column_checksums(
    connection: Connection, schema: str, tables: Mapping[str, Sequence[str]]
) -> dict[str, TableChecksum]:
    """Compute the checksums of some tables by these of their columns alone; sets text formats as `table_checksums`."""
    columns = {table: ", ".join(map(quote_identifier, names)) for table, names in tables.items()}
    return _checksums(connection, schema, columns)


def blank_bytes(connection: Connection) -> bytes:
    """Find the bytes beyond ASCII taken by the server for blanks, so that it quotes a value of a row for them."""
    letters: str = connection.execute(_QUOTED).scalar_one()
    return letters.encode()[1::2]


def _checksums(connection: Connection, schema: str, columns: Mapping[str, str]) -> dict[str, TableChecksum]:
    execute_script(connection, _SETTINGS)
    if not columns:
        return {}
    contents = " UNION ALL ".join(
        _ROWS.format(
            literal=quote_literal(table),
            columns=columns[table],
            table=f"{quote_identifier(schema)}.{quote_identifier(table)}",
        )
        for table in sorted(columns)
    )
    query = _CHECKSUMS.format(rows=contents)
    rows = connection.exec_driver_sql(query, execution_options={"no_parameters": True})
    sums = {row.name: TableChecksum(row.rows, row.checksum) for row in rows}
    return dict.fromkeys(columns, _NO_ROWS) | sums


def differences(expected: dict[str, TableChecksum], actual: dict[str, TableChecksum]) -> list[str]:
    """Name the tables that differ, and their differences."""
    return [
        f"{table} ({_row_count(actual.get(table))}, not {_row_count(expected.get(table))})"
        if _row_count(actual.get(table)) != _row_count(expected.get(table))
        else f"{table} (other rows)"
        for table in sorted(expected.keys() | actual.keys())
        if expected.get(table) != actual.get(table)
    ]


def _row_count(table: TableChecksum | None) -> str:
    return counted(table.rows, "row") if table else "missing"
