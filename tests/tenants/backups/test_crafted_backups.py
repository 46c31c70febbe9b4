"""Backups that somebody made to run code: nothing of them comes in but rows, or they are refused."""

from __future__ import annotations

import random
import tempfile
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from uuid import uuid4

import pytest

from tenants.backups.archive import open_archive
from tenants.backups.backup import back_up, rows_of
from tenants.backups.checksums import table_checksums
from tenants.backups.restore import restore
from tenants.backups.revision_tables import table_columns
from tenants.backups.table_rows import read_tables
from tenants.exceptions import BackupRefused, ProgramFailed
from tenants.provisioning.create import create_school
from tests.tenants.backups.crafting import (
    dump_of,
    dumped,
    first_format,
    manifest_of,
    patched,
    program,
    recorded,
    script_of,
    unpacked,
    with_dump,
    with_script,
    without_id,
)
from tests.tenants.backups.test_backup import without_log
from tests.tenants.backups.test_table_rows import HOSTILE
from tests.tenants.catalogue import drift, read_catalogue
from tests.tenants.installations import ADMINISTRATOR, execute
from tests.tenants.provisioning.test_create import traces


@dataclass(frozen=True)
class Real:
    """Backups of a school, of the first format and of the present one, and its schema there.

    Restoring either sends the same statements, the COPYs in another order.
    """

    file: Path
    scripted: Path
    schema: str
    statements: list[str]

    @property
    def dump(self):
        return dump_of(self.file)

    @property
    def script(self):
        return script_of(self.scripted)


@pytest.fixture(scope="module")
def real(tenancy, tmp_path_factory):
    """A backup of a school with a classroom."""
    school = create_school(tenancy, name="Real", administrator=ADMINISTRATOR)
    execute(
        tenancy.admin_url,
        f'INSERT INTO "{school.schema}".classrooms (id, name, level) VALUES (%s, %s, %s)',
        (str(uuid4()), "JSS 1", "1"),
    )
    folder = tmp_path_factory.mktemp("real")
    scripted = folder / "school.zip"
    log = f'DELETE FROM "{school.schema}".audit_entries'
    back_up(tenancy, school.id, scripted)
    execute(tenancy.admin_url, log)
    file = first_format(tenancy, school, scripted, folder / "dump.zip")
    return Real(file, scripted, school.schema, statements_of(tenancy, file)[1])


def statements_of(tenancy, file):
    """Restore a backup as another school; answers the school, and what was sent, whatever the id."""
    copy = uuid4()
    with recorded(tenancy) as (watched, statements):
        return restore(watched, file, school_id=copy), without_id(statements, copy)


# What an attacker can do to the database that they dump, and what shows that it ran: the large object 4242.

PLACEHOLDER = "P" * 60
EXTRA_TABLE = "CREATE TABLE {0}.extra (id int); INSERT INTO {0}.extra VALUES (1)"
EXTRA_COLUMN = "ALTER TABLE {0}.classrooms ADD COLUMN extra text; UPDATE {0}.classrooms SET extra = 'x'"
FUNCTION = """
CREATE FUNCTION {0}.evil(value text) RETURNS text LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN
IF NOT EXISTS (SELECT FROM pg_largeobject_metadata WHERE oid = 4242) THEN PERFORM lo_create(4242); END IF;
RETURN value; END $$;
"""
TRIGGER = """
CREATE FUNCTION {0}.evil() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
IF NOT EXISTS (SELECT FROM pg_largeobject_metadata WHERE oid = 4242) THEN PERFORM lo_create(4242); END IF;
RETURN NEW; END $$;
CREATE TRIGGER evil BEFORE INSERT ON {0}.classrooms FOR EACH ROW EXECUTE FUNCTION {0}.evil();
"""
EVENT_TRIGGER = """
CREATE FUNCTION {0}.evil() RETURNS event_trigger LANGUAGE plpgsql AS $$ BEGIN
IF NOT EXISTS (SELECT FROM pg_largeobject_metadata WHERE oid = 4242) THEN PERFORM lo_create(4242); END IF; END $$;
CREATE EVENT TRIGGER evil ON ddl_command_end EXECUTE FUNCTION {0}.evil();
"""
INSERT = "INSERT INTO {0}.classrooms (id, name) VALUES (gen_random_uuid(), 'x')"
ESCAPED = r"""U&"lo!005fcreate" UESCAPE '!' (4242) IS NOT NULL"""


@dataclass(frozen=True)
class Craft:
    """Changes to a database before it is dumped, a change to its dump, and what of it comes later."""

    change: str
    patch: tuple[str, str] | None = None
    later: str | None = None
    whole: bool = False


PLACED = f"'{PLACEHOLDER}'::text IS NOT NULL"
HARMLESS = {
    "a check": Craft(f"ALTER TABLE {{0}}.classrooms ADD CHECK ({PLACED})", (PLACED, ESCAPED)),
    "a column default": Craft(
        f"ALTER TABLE {{0}}.classrooms ALTER COLUMN level SET DEFAULT '{PLACEHOLDER}'",
        (f"'{PLACEHOLDER}'", r"""U&"lo!005fcreate" UESCAPE '!' (4242)::text"""),
        later=INSERT,
    ),
    "an index expression": Craft(FUNCTION + "CREATE INDEX evil ON {0}.classrooms ({0}.evil(name))"),
    "a trigger": Craft(TRIGGER, later=INSERT.replace("name)", "name, level)").replace("'x')", "'x', 'y')")),
    "an event trigger": Craft(EVENT_TRIGGER, whole=True, later="CREATE TABLE {0}.any (id int)"),
    "a view": Craft("CREATE VIEW {0}.evil AS SELECT lo_create(4242)", later="SELECT * FROM {0}.evil"),
}


def crafted(server, real, craft, to):
    """Make a backup as an attacker does."""
    with unpacked(server, real.dump) as database:
        execute(database, craft.change.format(real.schema))
        dump = dumped(database, *([] if craft.whole else [f"--schema={real.schema}"]))
    return with_dump(real.file, patched(dump, *craft.patch) if craft.patch else dump, to)


def ran(database):
    """Tell whether the code ran there."""
    return execute(database, "SELECT 1 FROM pg_largeobject_metadata WHERE oid = 4242") != []


def runs_elsewhere(server, file, craft, schema):
    """Tell whether the code runs where a backup's dump is restored with PostgreSQL's own programs."""
    with unpacked(server, dump_of(file)) as database:
        if craft.later:
            execute(database, craft.later.format(schema))
        return ran(database)


@pytest.fixture(scope="module")
def fresh(tenancy):
    """The catalogue of a new school, and the functions, triggers and rules of its schema."""
    school = create_school(tenancy, name="Fresh", administrator=ADMINISTRATOR)
    with tenancy.admin.begin() as connection:
        return read_catalogue(connection, school.schema), evil_of(tenancy, school.schema)


@pytest.mark.parametrize("name", HARMLESS)
def test_code_in_a_backup_does_not_come_in(server, tenancy, real, fresh, name, tmp_path):
    craft = HARMLESS[name]
    file = crafted(server, real, craft, tmp_path / "crafted.zip")
    # Without this it would prove nothing.
    assert runs_elsewhere(server, file, craft, real.schema)

    copy, sent = statements_of(tenancy, file)

    assert sent == real.statements
    assert not ran(tenancy.admin_url)
    catalogue, evil = fresh
    assert evil_of(tenancy, copy.schema) == evil
    with tenancy.admin.begin() as connection:
        assert drift(read_catalogue(connection, copy.schema), catalogue) == []
        sums = table_checksums(connection, copy.schema)
    assert {table: sums[table].rows for table in without_log(sums)} == {
        table: each["rows"] for table, each in without_log(manifest_of(file)["tables"]).items()
    }


def evil_of(tenancy, schema):
    """List the functions, triggers and rules of a schema."""
    return execute(
        tenancy.admin_url,
        "SELECT regexp_replace(prosrc, '_[0-9]{6,}', '', 'g') FROM pg_proc "  # Citus: its shards
        "WHERE pronamespace = %(schema)s::regnamespace UNION ALL "
        "SELECT tgname FROM pg_trigger t JOIN pg_class c ON c.oid = tgrelid "
        "WHERE relnamespace = %(schema)s::regnamespace AND NOT tgisinternal UNION ALL "
        "SELECT evtname FROM pg_event_trigger ORDER BY 1",
        {"schema": schema},
    )


REFUSED = {
    "a table": (EXTRA_TABLE, "rows of extra, a table that its revision does not have"),
    "a column": (EXTRA_COLUMN, "rows of classrooms have other columns"),
    "a sequence": (
        "CREATE SEQUENCE {0}.evil; SELECT nextval('{0}.evil')",
        "something else than rows: SELECT",
    ),
    "rows that refer to none": (
        "ALTER TABLE {0}.user_roles DROP CONSTRAINT fk_user_roles_user_id; DELETE FROM {0}.users",
        'can\'t be restored here: insert or update on table "user_roles" violates foreign key constraint',
    ),
    "rows that a check forbids": (
        "ALTER TABLE {0}.sessions DROP CONSTRAINT ck_sessions_dates; "
        "INSERT INTO {0}.sessions VALUES (gen_random_uuid(), 'x', '2026-01-02', '2026-01-01', false)",
        'violates check constraint "ck_sessions_dates"',
    ),
    "the same row twice": (
        "ALTER TABLE {0}.classrooms DROP CONSTRAINT pk_classrooms CASCADE, DROP CONSTRAINT uq_classrooms_name; "
        "INSERT INTO {0}.classrooms SELECT * FROM {0}.classrooms",
        "violates unique constraint",
    ),
    "other rows": (
        "UPDATE {0}.classrooms SET name = 'another'",
        "is not what was backed up: classrooms (other rows)",
    ),
    "fewer rows": (
        "DELETE FROM {0}.classrooms",
        "is not what was backed up: classrooms (0 rows, not 1 row)",
    ),
    "a large object": ("SELECT lo_from_bytea(4242, 'x')", "something else than rows"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_rows_of_anything_else_are_refused(server, tenancy, real, name, tmp_path):
    change, reason = REFUSED[name]
    craft = Craft(change, whole=name == "a large object")
    file = crafted(server, real, craft, tmp_path / "crafted.zip")

    assert reason in refusal(tenancy, real, file)


def refusal(tenancy, real, file):
    """Restore a backup, which has to be refused and leave nothing; answers why."""
    copy = uuid4()
    with recorded(tenancy) as (watched, statements), pytest.raises(BackupRefused) as refused:
        restore(watched, file, school_id=copy)
    assert set(without_id(statements, copy)) <= set(real.statements)
    assert traces(tenancy, copy) == []
    assert not ran(tenancy.admin_url)
    return str(refused.value)


@contextmanager
def open_folder():
    """Make a folder that the server's user may write to."""
    with tempfile.TemporaryDirectory(dir="/tmp") as name:
        Path(name).chmod(0o777)
        yield Path(name)


def header_of(real, table):
    """Find the statement that a dump copies a table's rows with."""
    start = real.dump.index(f"COPY {real.schema}.{table} (".encode())
    return real.dump[start : real.dump.index(b"\n", start)].decode()


def test_a_copy_from_a_program_is_refused(server, tenancy, real, tmp_path):
    with open_folder() as folder:
        program_ = f"COPY {real.schema}.users FROM PROGRAM 'touch {folder}/ran';"
        dump = patched(real.dump, header_of(real, "users"), program_)
        file = with_dump(real.file, dump, tmp_path / "crafted.zip")
        with unpacked(server, dump):
            assert (folder / "ran").exists()
        (folder / "ran").unlink()

        assert "something else than rows: COPY" in refusal(tenancy, real, file)
        assert not (folder / "ran").exists()


@pytest.mark.parametrize(
    "text",
    [
        "\\! touch /tmp/evil",
        "\\connect registry",
        "\\copy x FROM PROGRAM 'id'",
        "DROP SCHEMA registry CASCADE;",
        "SELECT lo_create(4242);",
        "COPY registry.clients (id) FROM stdin;",
        "COPY {0}.users FROM stdin;",
        "COPY {0}.users TO PROGRAM 'id';",
    ],
)
def test_other_statements_in_the_place_of_a_copy_are_refused(tenancy, real, text, tmp_path):
    dump = patched(real.dump, header_of(real, "users"), text.format(real.schema))
    file = with_dump(real.file, dump, tmp_path / "crafted.zip")

    assert refusal(tenancy, real, file)


def test_statements_behind_a_false_end_of_rows_are_refused(server, tenancy, real, tmp_path):
    """In the data itself, which PostgreSQL's program passes on as it is."""
    with unpacked(server, real.dump) as database:
        execute(database, f"UPDATE {real.schema}.classrooms SET name = '{PLACEHOLDER}'")
        dump = dumped(database, f"--schema={real.schema}", "--compress=none")
    evil = "x\t1\n\\.\nSELECT lo_create(4242);\n--"
    file = with_dump(real.file, patched(dump, PLACEHOLDER, evil), tmp_path / "crafted.zip")
    script = program("pg_restore", "--file=-", stdin=dump_of(file)).decode()
    assert "\nSELECT lo_create(4242);\n" in script

    assert "something else than rows: SELECT lo_create(4242);" in refusal(tenancy, real, file)


def test_a_dump_of_another_format_is_refused(server, tenancy, real, tmp_path):
    """PostgreSQL's program would find out itself which one it is."""
    with unpacked(server, real.dump) as database:
        tar = dumped(database, f"--schema={real.schema}", "--format=tar")
    file = with_dump(real.file, tar, tmp_path / "crafted.zip")
    copy = uuid4()

    with pytest.raises(ProgramFailed, match="pg_restore failed"):
        restore(tenancy, file, school_id=copy)
    assert traces(tenancy, copy) == []


# At random, and the same each time.

SEED, SCRIPTS, ARCHIVES, RESTORES = 20261122, 440, 60, 10


@pytest.fixture(scope="module")
def columns(tenancy, real):
    """The columns of each table."""
    with tenancy.admin.connect() as connection:
        return table_columns(connection, real.schema)


def mutated(rng, original, lines=()):
    """Change bytes in one to four ways; `lines` are put between others."""
    changed = bytearray(original)
    for _ in range(rng.randint(1, 4)):
        place, length = rng.randrange(len(changed)), rng.choice((1, 1, 2, 8, 64, 1000))
        part = bytes(changed[place : place + length])
        other = rng.randrange(len(changed))
        match rng.randrange(7 if lines else 5):
            case 0:
                changed[place] ^= 1 << rng.randrange(8)
            case 1:
                del changed[place : place + length]
            case 2:
                changed[other:other] = part
            case 3:
                changed[place : place + length] = rng.randbytes(length)
            case 4:
                changed[place : place + length] = bytes(changed[other : other + length])
            case _:
                begin = changed.rfind(b"\n", 0, place) + 1
                changed[begin:begin] = rng.choice(lines).encode() + b"\n"
        if len(changed) < 2:
            return original
    return bytes(changed)


@pytest.mark.parametrize("kind", ["dump", "script"])
def test_mutated_scripts_send_nothing_but_our_statements(real, columns, kind):
    script = real.script
    if kind == "dump":
        script = program("pg_restore", "--file=-", "--data-only", "--section=data", stdin=real.dump)
    ours = {table.copy_statement("school_X") for table in _all(script, real, columns)}
    assert len(ours) == len(columns)
    # Statements in which a line is no row weigh more than the text of rows.
    lines = [*HOSTILE, "\\.", f"COPY {real.schema}.users (id) FROM stdin;"]
    rng, refused, taken = random.Random(SEED), 0, 0

    for _ in range(SCRIPTS // 2):
        sent = []
        try:
            for table in read_tables(BytesIO(mutated(rng, script, lines)), real.schema, columns):
                sent.append(table.copy_statement("school_X"))
                while table.rows.read(8192):
                    pass
            taken += 1
        except BackupRefused:
            refused += 1
        assert set(sent) <= ours
        assert len(sent) == len(set(sent))

    assert refused > 50
    assert taken > 5


def _all(script, real, columns):
    for table in read_tables(BytesIO(script), real.schema, columns):
        while table.rows.read(8192):
            pass
        yield table


def test_mutated_archives_send_nothing_but_our_statements(real, columns, tmp_path):
    ours = {f"COPY {table}" for table in columns}
    rng, refused = random.Random(SEED), 0

    for _ in range(ARCHIVES):
        dump = b"PGDMP" + mutated(rng, real.dump[5:])
        sent = []
        with open_archive(with_dump(real.file, dump, tmp_path / "mutated.zip")) as archive:
            try:
                with rows_of(archive, columns) as tables:
                    for table in tables:
                        sent.append(f"COPY {table.table}")
                        while table.rows.read(8192):
                            pass
            except (BackupRefused, ProgramFailed):
                refused += 1
        assert set(sent) <= ours

    assert refused > ARCHIVES // 4


@pytest.mark.parametrize("kind", ["dump", "script"])
def test_mutated_archives_leave_the_same_rows_or_nothing(tenancy, real, tmp_path, kind):
    rng = random.Random(SEED + 1)
    ours = set(real.statements)
    path = tmp_path / "mutated.zip"

    for _ in range(RESTORES // 2):
        if kind == "dump":
            file = with_dump(real.file, b"PGDMP" + mutated(rng, real.dump[5:]), path)
        else:
            file = with_script(real.scripted, mutated(rng, real.script), path)
        copy = uuid4()
        with recorded(tenancy) as (watched, statements):
            restored = None
            with suppress(BackupRefused, ProgramFailed):
                restored = restore(watched, file, school_id=copy)
        assert set(without_id(statements, copy)) <= ours
        if restored is None:
            assert traces(tenancy, copy) == []
            continue
        with tenancy.admin.begin() as connection:
            sums = without_log(table_checksums(connection, restored.schema))
        assert {name: table.checksum for name, table in sums.items()} == {
            name: table["checksum"] for name, table in without_log(manifest_of(real.file)["tables"]).items()
        }


SCRIPTED = {
    "a statement": ("COPY {0}", "SELECT lo_create(4242);\nCOPY {0}", "something else than rows: SELECT"),
    "a program": ('COPY {0}."users" (', "COPY {0}.\"users\" FROM PROGRAM 'id';\n", "else than rows: COPY"),
    "a file": ('COPY {0}."users" (', "COPY {0}.\"users\" FROM '/etc/passwd';\n", "else than rows: COPY"),
    "a false end": ("JSS 1\t1\n", "JSS 1\t1\n\\.\nSELECT lo_create(4242);\n", "than rows: SELECT"),
    "a table of the registry": ('COPY {0}."users"', 'COPY "registry"."clients"', "of another schema"),
    "another school": ('COPY {0}."users"', 'COPY "school_x"."users"', "of another schema"),
    "another column": ('("id", "name", "level")', '("id", "name", "size")', "have other columns"),
    "another table": ('."classrooms"', '."evil"', "a table that its revision does not have"),
    "another encoding": ("'UTF8'", "'LATIN1'", "something else than rows: SET"),
    "another value": ("JSS 1\t1", "JSS 1\t2", "not what was backed up: classrooms (other rows)"),
    "a row that is none": ("JSS 1\t1", "JSS 1\t1\t1", "can't be restored here: extra data"),
}


@pytest.mark.parametrize("name", SCRIPTED)
def test_a_script_that_somebody_wrote_brings_rows_or_nothing(tenancy, real, name, tmp_path):
    old, new, reason = SCRIPTED[name]
    schema = f'"{real.schema}"'
    script = real.script.decode()
    changed = script.replace(old.format(schema), new.format(schema), 1)
    assert changed != script
    file = with_script(real.scripted, changed.encode(), tmp_path / "crafted.zip")

    assert reason in refusal(tenancy, real, file)


def test_a_script_that_somebody_wrote_as_it_was_comes_in(tenancy, real, tmp_path):
    file = with_script(real.scripted, real.script, tmp_path / "same.zip")

    copy, sent = statements_of(tenancy, file)

    assert sorted(sent) == sorted(real.statements)
    with tenancy.admin.begin() as connection:
        assert table_checksums(connection, copy.schema)["classrooms"].rows == 1
