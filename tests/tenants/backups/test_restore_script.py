"""The script of a backup: what is taken of it, and what is not."""

from __future__ import annotations

import io

import pytest

from tenants.backups.restore_script import steps
from tenants.exceptions import BackupRefused

OLD, NEW = "school_" + "a" * 32, "school_" + "b" * 32
TABLE = f"CREATE TABLE {OLD}.rooms (id uuid NOT NULL, name text);\n"


def read(script):
    """Read a script; answers its statements, and the rows of each as one text."""
    source = io.BytesIO(script.encode())
    return [(step.sql, rows_of(step)) for step in steps(source, OLD, NEW)]


def rows_of(step):
    return None if step.rows is None else b"".join(iter(lambda: step.rows.read(8), b"")).decode()


@pytest.mark.parametrize(
    "statement",
    [
        f"CREATE TABLE {OLD}.rooms (\n    id uuid NOT NULL,\n    size numeric(7,2) DEFAULT 0.5\n);",
        f"CREATE TABLE {OLD}.\"order\" (at timestamp(0) with time zone) WITH (fillfactor='90');",
        f"CREATE TABLE {OLD}.t (s text, CONSTRAINT c CHECK (((s)::text = ANY (ARRAY['A;'::text, 'B'::text]))));",
        f"CREATE TABLE {OLD}.t (s text, CONSTRAINT c CHECK ((s ~ E'^\\\\d+$'::text)));",
        f"CREATE TABLE {OLD}.t (s text, CONSTRAINT c CHECK ((s <> 'set_config(''x'');\n--')));",
        f"ALTER TABLE ONLY {OLD}.t\n    ADD CONSTRAINT pk_t PRIMARY KEY (id);",
        f"ALTER TABLE ONLY {OLD}.t\n    ADD CONSTRAINT uq_t UNIQUE NULLS NOT DISTINCT (a, b);",
        f"ALTER TABLE ONLY {OLD}.t ADD CONSTRAINT f FOREIGN KEY (a) REFERENCES {OLD}.u(id) ON DELETE CASCADE;",
        f"ALTER TABLE ONLY {OLD}.t ALTER COLUMN a SET STORAGE EXTERNAL;",
        f"CREATE UNIQUE INDEX i ON {OLD}.t USING btree (lower((name)::text)) WHERE (ended_at IS NULL);",
    ],
)
def test_what_makes_up_a_schools_schema_is_taken_into_the_other_schema(statement):
    ((sql, rows),) = read(statement + "\n")

    assert rows is None
    assert sql == statement.replace(f"{OLD}.", f'"{NEW}".').removesuffix(";")


def test_rows_pass_untouched_whatever_they_hold():
    rows = f"1\t{OLD}.users\n2\t\\\\.\n3\tCOPY x FROM stdin;\\n\\\\.\n4\t\\N\n\n"

    (copy, create) = read(f'COPY {OLD}.rooms (id, "position") FROM stdin;\n{rows}\\.\n\n\n{TABLE}')

    assert copy == (f'COPY "{NEW}".rooms (id, "position") FROM stdin', rows)
    assert create[0].startswith("CREATE TABLE")


def test_what_the_restoring_transaction_says_itself_is_left_out():
    assert (
        read(
            "--\n-- PostgreSQL database dump\n--\n\n\\restrict Abc123\n\nSET statement_timeout = 0;\n"
            "SELECT pg_catalog.set_config('search_path', '', false);\n"
            f"CREATE SCHEMA {OLD};\n\n\\unrestrict Abc123\n\n"
        )
        == []
    )


HOSTILE = [
    # Other kinds of statement.
    "DROP SCHEMA registry CASCADE;",
    "ALTER ROLE postgres PASSWORD 'x';",
    "DO $$ BEGIN END $$;",
    "SELECT 1;",
    "SELECT pg_catalog.set_config('role', 'postgres', false), pg_read_file('/etc/passwd');",
    f"INSERT INTO {OLD}.rooms VALUES (1);",
    f"CREATE VIEW {OLD}.v AS SELECT 1;",
    f"CREATE FUNCTION {OLD}.f() RETURNS int LANGUAGE sql AS 'SELECT 1';",
    f"CREATE TRIGGER t BEFORE INSERT ON {OLD}.rooms EXECUTE FUNCTION f();",
    f"CREATE TABLE {OLD}.t AS SELECT * FROM registry.clients;",
    f"CREATE TABLE {OLD}.t (a) AS TABLE registry.clients;",
    f"CREATE TABLE {OLD}.t (id uuid) INHERITS (pg_authid);",
    f"CREATE TABLE {OLD}.t (id uuid) TABLESPACE x;",
    f"CREATE UNLOGGED TABLE {OLD}.t (id uuid);",
    f"ALTER TABLE {OLD}.t OWNER TO postgres;",
    f"ALTER TABLE {OLD}.t ADD CONSTRAINT c CHECK (true), OWNER TO postgres;",
    f"ALTER TABLE {OLD}.t ADD COLUMN c text;",
    f"COPY {OLD}.t (a) FROM PROGRAM 'id';",
    f"COPY {OLD}.t (a) FROM '/etc/passwd';",
    f"COPY {OLD}.t (a) TO stdout;",
    f"COPY {OLD}.t (a) FROM stdin WITH (FORMAT csv);",
    # Two in one.
    f"CREATE TABLE {OLD}.t (id uuid); DROP SCHEMA registry;",
    "SET x = 1; DROP SCHEMA registry;",
    f"CREATE TABLE {OLD}.t (id uuid; DROP SCHEMA registry; );",
    f"CREATE TABLE {OLD}.t (id uuid)) INHERITS (pg_authid;",
    # Other schemas.
    "CREATE TABLE public.t (id uuid);",
    "CREATE TABLE t (id uuid);",
    "CREATE TABLE pg_catalog.t (id uuid);",
    f"CREATE TABLE {NEW}x.t (id uuid);",
    f"CREATE TABLE {OLD}.t (LIKE registry.clients);",
    f"CREATE INDEX i ON registry.clients USING btree (id, ({OLD}.x));",
    f"ALTER TABLE {OLD}.t ADD CONSTRAINT f FOREIGN KEY (a) REFERENCES registry.clients(id);",
    # Functions.
    f"CREATE TABLE {OLD}.t (a text, CHECK (set_config('role', 'postgres', true) IS NOT NULL));",
    f"CREATE TABLE {OLD}.t (a text, CHECK (pg_catalog.set_config('role', 'x', true) IS NOT NULL));",
    f"CREATE TABLE {OLD}.t (a text, CHECK (\"set_config\" ('role', 'x', true) IS NOT NULL));",
    f"CREATE TABLE {OLD}.t (a text, CHECK (U&\"set\\005fconfig\"('role', 'x', true) IS NOT NULL));",
    f"CREATE TABLE {OLD}.t (a text, CHECK (set_config/**/('role', 'x', true) IS NOT NULL));",
    f"CREATE TABLE {OLD}.t (a bigint DEFAULT nextval('{OLD}.s'::regclass));",
    f"CREATE INDEX i ON {OLD}.t USING btree (pg_sleep(1000));",
    f"CREATE TABLE {OLD}.t (a text, CHECK ((a) OPERATOR(evil.=) ('x')));",
    # What scanners read differently.
    f"CREATE TABLE {OLD}.t (a text -- comment\r, CHECK (pg_sleep(9) IS NULL)\n);",
    f"CREATE TABLE {OLD}.t (a text DEFAULT E'a'\n'b\\', CHECK (pg_sleep(9) IS NULL), b text DEFAULT ''');",
    f"CREATE TABLE {OLD}.t (a text DEFAULT $x$ ; $x$);",
    f"CREATE TABLE {OLD}.t (\u00e9t\u00e9 text);",
    f"CREATE TABLE {OLD}.t (a\u00a0text);",
    f"CREATE TABLE {OLD}.t (a text /* ; */);",
    "\\! id",
    "\\restrict x; id",
    ";",
]


@pytest.mark.parametrize("statement", HOSTILE)
def test_whatever_else_is_refused(statement):
    with pytest.raises(BackupRefused):
        read(f"{TABLE}{statement}\n")


@pytest.mark.parametrize(
    "script",
    [
        "CREATE TABLE",
        f"CREATE TABLE {OLD}.t (id uuid",
        f"CREATE TABLE {OLD}.t (a text DEFAULT ';\n",
        f"COPY {OLD}.t (a) FROM stdin;\n1\n2\n",
        f"COPY {OLD}.t (a) FROM stdin;\n1\n2",
        f"COPY {OLD}.t (a) FROM stdin;\n",
    ],
)
def test_a_script_that_is_cut_is_refused(script):
    with pytest.raises(BackupRefused, match="damaged: its dump ends within"):
        read(script)


def test_what_is_no_text_is_refused():
    with pytest.raises(BackupRefused):
        list(steps(io.BytesIO(b"CREATE TABLE \xff;\n"), OLD, NEW))


def test_a_statement_without_an_end_is_refused_before_it_fills_the_memory():
    with pytest.raises(BackupRefused):
        read(f"CREATE TABLE {OLD}.t (\n" + "    a text,\n" * 200_000)
