"""Checksums of rows as COPY writes them: the same as PostgreSQL computes of them in their table."""

from __future__ import annotations

import hashlib
import io
import struct

import pytest

from tenants.backups.checksums import blank_bytes, column_checksums
from tenants.backups.row_sums import RowSum
from tenants.connections.engines import execute_script
from tenants.connections.statements import copy_rows

# Each in a column of its own type, and so in every place of a row.
VALUES = {
    "text": [
        "",
        " ",
        "plain",
        "a,b",
        "(a)",
        'a "quoted" text',
        "back\\slash \\N \\. \\t",
        "\\N",
        "\b\f\n\r\t\v\x01\x7f",
        "Ọmọ àÀéÅå 学校 🏫 \u00a0\u0085\u2003",
        "NULL",
    ],
    "varchar(9)": ["x", ""],
    "char(5)": ["ab", ""],
    "boolean": ["t", "f"],
    "integer": ["-7", "0"],
    "numeric(6,2)": ["12.50", "-0.01"],
    "double precision": ["0.1", "1e300", "NaN", "-Infinity"],
    "uuid": ["00000000-0000-0000-0000-00000000000a"],
    "date": ["2026-11-22"],
    "timestamptz": ["2026-11-22 14:30:00.123456+01"],
    "interval": ["1 year 2 days 03:04:05"],
    "bytea": ["\\x00ff5c22", "\\x"],
    "jsonb": ['{"a": [1, null, "x\\"y\\\\z"], "é": {}}', "null"],
    "text[]": ['{a,NULL,"NULL",""," ","a\\"b\\\\c"}', "{}"],
    "integer[]": ["{1,2}"],
}


@pytest.fixture
def table(connection):
    """A table of every type and one column that is computed, whose rows have each value once, and nulls."""
    columns = ", ".join(f'"c {number}" {kind}' for number, kind in enumerate(VALUES))
    execute_script(
        connection,
        f"CREATE TEMPORARY TABLE odd ({columns}, computed text GENERATED ALWAYS AS (\"c 0\" || '!') STORED)",
    )
    names = [f"c {number}" for number in range(len(VALUES))]
    quoted = ", ".join(f'"{name}"' for name in names)
    driver = connection.connection.dbapi_connection
    with driver.cursor() as cursor:
        for row in range(max(map(len, VALUES.values())) + 1):
            values = [kinds[row] if row < len(kinds) else None for kinds in VALUES.values()]
            marks = ", ".join(f"%s::{kind}" for kind in VALUES)
            cursor.execute(f"INSERT INTO odd ({quoted}) VALUES ({marks})", values)
    return names


def both(connection, names):
    """Compute a checksum by PostgreSQL, and one of the output of COPY."""
    expected = column_checksums(connection, "pg_temp", {"odd": names})["odd"]
    written = io.BytesIO()
    chosen = ", ".join(f'"{name}"' for name in names)
    copy_rows(connection, f"SELECT {chosen} FROM odd", None, written, layout="text")
    row_sum = RowSum(blank_bytes(connection))
    for line in written.getvalue().split(b"\n")[:-1]:
        row_sum.add(line)
    return expected, row_sum.checksum


def test_the_checksum_is_postgresqls_for_any_values(connection, table):
    expected, checksum = both(connection, table)

    assert expected.rows == 12
    assert checksum == expected


@pytest.mark.parametrize("number", range(len(VALUES)))
def test_each_column_counts(connection, table, number):
    before, _ = both(connection, table)
    execute_script(connection, f'UPDATE odd SET "c {number}" = NULL')

    after, checksum = both(connection, table)

    assert checksum == after != before


def test_no_rows_have_a_checksum_too(connection, table):
    execute_script(connection, "DELETE FROM odd")

    expected, checksum = both(connection, table)

    assert checksum == expected
    assert expected.rows == 0


def test_a_server_that_takes_a_byte_of_a_letter_for_a_blank_is_followed():
    sums = {}
    for blanks in (b"", b"\xa0"):
        rows = RowSum(blanks)
        rows.add("à\té".encode())
        sums[blanks] = rows.checksum.checksum

    assert sums == {b"": checksum("(à,é)"), b"\xa0": checksum('("à",é)')}


def checksum(record):
    first, second = struct.unpack(">qq", hashlib.sha256(record.encode()).digest()[:16])
    return f"{first}:{second}"
