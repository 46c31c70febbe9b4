"""The script of a backup's data: which rows are taken of it, and that nothing else is."""

from __future__ import annotations

import io

import pytest

from tenants.backups import table_rows
from tenants.backups.table_rows import read_tables
from tenants.exceptions import BackupRefused

SCHEMA = "school_" + "a" * 32
TABLES = {"rooms": ("id", "name"), "order": ("id", "position", 'odd "name"')}
COPY = f"COPY {SCHEMA}.rooms (id, name) FROM stdin;\n"
ROOMS = f"{COPY}1\tone\n\\.\n"
PREAMBLE = """--
-- PostgreSQL database dump
--

\\restrict Abc123

-- Dumped from database version 18.4
-- Dumped by pg_dump version 18.4

SET statement_timeout = 0;
SET lock_timeout = 0;
SET idle_in_transaction_session_timeout = 0;
SET transaction_timeout = 0;
SET client_encoding = 'UTF8';
SET standard_conforming_strings = on;
SELECT pg_catalog.set_config('search_path', '', false);
SET check_function_bodies = false;
SET xmloption = content;
SET client_min_messages = warning;
SET row_security = off;

"""


def read(script, tables=TABLES):
    """Read a script; answers the statement of each table, and its rows as one text."""
    source = io.BytesIO(script if isinstance(script, bytes) else script.encode())
    return [
        (table.copy_statement("school_b"), all_of(table.rows).decode())
        for table in read_tables(source, SCHEMA, tables)
    ]


def all_of(rows):
    return b"".join(iter(lambda: rows.read(8), b""))


def test_the_frame_of_pg_restore_is_passed_over_and_rows_are_taken():
    rows = read(
        f"{PREAMBLE}--\n-- Data for Name: rooms; Type: TABLE DATA\n--\n\n{ROOMS}\n\n\\unrestrict Abc123\n\n"
    )

    assert rows == [('COPY "school_b"."rooms" ("id", "name") FROM STDIN WITH (FORMAT text)', "1\tone\n")]


def test_names_are_quoted_and_columns_stand_in_the_order_of_the_rows():
    ((statement, rows),) = read(
        f'COPY {SCHEMA}."order" ("odd ""name""", "position", id) FROM stdin;\n1\t2\t3\n\\.\n'
    )

    assert statement == (
        'COPY "school_b"."order" ("odd ""name""", "position", "id") FROM STDIN WITH (FORMAT text)'
    )
    assert rows == "1\t2\t3\n"


def test_rows_that_look_like_statements_pass_untouched():
    rows = f"1\t{SCHEMA}.users\n2\t\\\\.\n3\tCOPY x FROM stdin;\\n\\\\.\n4\t\\N\n\n"
    rows += "\\! id\n; DROP TABLE x;\n\\.x\n \\.\n"

    assert read(f"{COPY}{rows}\\.\n")[0][1] == rows


def test_the_sign_of_the_end_within_a_long_row_ends_nothing():
    size = table_rows._MAX_LINE
    rows = "x" * size + "\\.\n" + "y" * (size - 1) + "\n" + "z" * (3 * size) + "\n"
    script = io.BytesIO(f"{COPY}{rows}\\.\n".encode())

    table = next(read_tables(script, SCHEMA, TABLES))
    parts = list(iter(lambda: table.rows.read(1), b""))

    assert b"".join(parts).decode() == rows
    assert max(map(len, parts)) <= size
    assert table.rows.count == 3


HOSTILE = [
    # Statements.
    "DROP SCHEMA registry CASCADE;",
    "SELECT 1;",
    "DO $$ BEGIN END $$;",
    f"CREATE TABLE {SCHEMA}.rooms (id uuid);",
    f"INSERT INTO {SCHEMA}.rooms VALUES (1);",
    f"ALTER TABLE {SCHEMA}.rooms ADD CHECK (U&\"set_config\" UESCAPE '!' ('role','none',true) IS NOT NULL);",
    f"SELECT pg_catalog.setval('{SCHEMA}.numbers', 1, true);",
    "SELECT pg_catalog.lo_open('4242', 131072);",
    "SELECT pg_catalog.set_config('role', 'postgres', false);",
    "SELECT pg_catalog.set_config('search_path', '', false), pg_read_file('/etc/passwd');",
    "SELECT pg_catalog.set_config('search_path', '', false); DROP SCHEMA registry;",
    "BEGIN;",
    "COMMIT;",
    # Settings that are not pg_restore's, or hide something.
    "SET SESSION AUTHORIZATION postgres;",
    "SET ROLE postgres;",
    "SET client_encoding = 'LATIN1';",
    "SET client_encoding = LATIN1;",
    "SET x = 1; DROP SCHEMA registry;",
    "SET x = ';DROP SCHEMA registry;';",
    "SET x = y -- \r; DROP SCHEMA registry;",
    # psql's.
    "\\! id",
    "\\connect registry",
    "\\copy x FROM PROGRAM 'id'",
    "\\i /etc/passwd",
    "\\restrict x; id",
    "\\restrict x y",
    # Other ways to copy.
    f"COPY {SCHEMA}.rooms (id, name) FROM PROGRAM 'id';",
    f"COPY {SCHEMA}.rooms (id, name) FROM '/etc/passwd';",
    f"COPY {SCHEMA}.rooms (id, name) TO stdout;",
    f"COPY {SCHEMA}.rooms (id, name) TO PROGRAM 'id';",
    f"COPY {SCHEMA}.rooms (id, name) FROM stdin WITH (FORMAT csv);",
    f"COPY {SCHEMA}.rooms (id, name) FROM stdin WHERE pg_sleep(9) IS NULL;",
    f"COPY {SCHEMA}.rooms (id, name) FROM stdin; DROP SCHEMA registry;",
    f"COPY {SCHEMA}.rooms FROM stdin;",
    f"COPY BINARY {SCHEMA}.rooms (id, name) FROM stdin;",
    f"COPY (SELECT 1) TO stdout; COPY {SCHEMA}.rooms (id, name) FROM stdin;",
    f"copy {SCHEMA}.rooms (id, name) from stdin;",
    f" COPY {SCHEMA}.rooms (id, name) FROM stdin;",
    f"COPY {SCHEMA}.rooms\n(id, name) FROM stdin;",
    f"/* */COPY {SCHEMA}.rooms (id, name) FROM stdin;",
    # Other schemas, tables, columns.
    "COPY rooms (id, name) FROM stdin;",
    "COPY registry.rooms (id, name) FROM stdin;",
    f"COPY {SCHEMA}x.rooms (id, name) FROM stdin;",
    f'COPY "{SCHEMA}"".rooms (id, name) FROM stdin;',
    f"COPY {SCHEMA}.halls (id, name) FROM stdin;",
    f"COPY {SCHEMA}.Rooms (id, name) FROM stdin;",
    f'COPY U&"{SCHEMA}".rooms (id, name) FROM stdin;',
    f"COPY {SCHEMA}.rooms (id) FROM stdin;",
    f"COPY {SCHEMA}.rooms (id, name, size) FROM stdin;",
    f"COPY {SCHEMA}.rooms (id, id) FROM stdin;",
    f"COPY {SCHEMA}.rooms (id, name, name) FROM stdin;",
    f"COPY {SCHEMA}.rooms () FROM stdin;",
    f'COPY {SCHEMA}.rooms (id, "na\tme") FROM stdin;',
    # Lines that are no statements at all.
    "1\tone",
    "\\.",
    ";",
    "\ufeff",
    "\u00a0",
    "-- a\rDROP SCHEMA registry;",
    "--" + "x" * (1 << 16),
]


@pytest.mark.parametrize("line", HOSTILE)
def test_any_other_line_is_refused(line):
    # Before the rows, and behind them.
    for script in (f"{line}\n{ROOMS}", f"{ROOMS}{line}\n"):
        with pytest.raises(BackupRefused, match="The backup"):
            read(script)


def test_each_table_comes_once():
    with pytest.raises(BackupRefused, match="the rows of rooms twice"):
        read(ROOMS + ROOMS)


@pytest.mark.parametrize("script", [f"{COPY}1\n2\n", f"{COPY}1\n2", COPY, f"{COPY}1\n\\.", f"{COPY}1\n\\"])
def test_a_script_that_is_cut_within_rows_is_refused(script):
    with pytest.raises(BackupRefused, match="damaged: its dump ends within a table"):
        read(script)


def test_a_line_without_an_end_is_refused():
    with pytest.raises(BackupRefused):
        read(COPY.rstrip())


def test_a_script_that_is_no_text_is_refused():
    with pytest.raises(BackupRefused):
        read(b"COPY \xff;\n")


def test_a_line_without_an_end_does_not_fill_the_memory():
    class Endless:
        asked = 0

        def readline(self, size):
            assert 0 < size <= 1 << 20
            self.asked += 1
            return b"x" * size

    endless = Endless()

    with pytest.raises(BackupRefused):
        next(read_tables(endless, SCHEMA, TABLES))
    assert endless.asked == 1


def test_messages_bear_no_control_characters_and_are_short():
    with pytest.raises(BackupRefused) as refusal:
        read("\x1b[2J\x07" + "x" * 5000 + "\n")

    assert str(refusal.value).isprintable()
    assert len(str(refusal.value)) < 200


def test_an_error_of_reading_is_remembered():
    class Interrupted(io.BytesIO):
        def readline(self, size=-1, /):
            line = super().readline(size)
            if line == b"1\n":
                raise KeyboardInterrupt
            return line

    table = next(read_tables(Interrupted(f"{COPY}1\n\\.\n".encode()), SCHEMA, TABLES))
    with pytest.raises(KeyboardInterrupt):
        table.rows.read(100)
    assert isinstance(table.rows.error, KeyboardInterrupt)
