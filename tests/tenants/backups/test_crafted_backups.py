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
    copied,
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
def tenancy(few):
    """The installation of few tables: its tests do not depend on their number."""
    return few


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


@pytest.fixture(scope="module")
def columns(tenancy, real):
    """The columns of each table."""
    with tenancy.admin.connect() as connection:
        return table_columns(connection, real.schema)


def statements_of(tenancy, file):
    """Restore a backup as another school; answers the school, and the statements sent, alike for each id."""
    copy = uuid4()
    with recorded(tenancy) as (watched, statements):
        return restore(watched, file, school_id=copy), without_id(statements, copy)


# Changes of an attacker to the database that they dump, and the sign that they ran: a large object of their number.

PLACEHOLDER = "P" * 60
PLACED = f"'{PLACEHOLDER}'::text IS NOT NULL"
EXTRA_TABLE = "CREATE TABLE {0}.extra (id int); INSERT INTO {0}.extra VALUES (1)"
EXTRA_COLUMN = "ALTER TABLE {0}.classrooms ADD COLUMN extra text; UPDATE {0}.classrooms SET extra = 'x'"
INSERT = "INSERT INTO {0}.classrooms (id, name, level) VALUES (gen_random_uuid(), 'x', DEFAULT)"


def function(name, number, *, returns, answer, arguments=""):
    """Write a function that leaves its number behind."""
    return (
        f"CREATE FUNCTION {{0}}.{name}({arguments}) RETURNS {returns} LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN "
        f"IF NOT EXISTS (SELECT FROM pg_largeobject_metadata WHERE oid = {number}) "
        f"THEN PERFORM lo_create({number}); END IF; {answer} END $$;"
    )


@dataclass(frozen=True)
class Craft:
    """Changes to a database before it is dumped, a change to its dump, and a later statement."""

    change: str
    patch: tuple[str, str] | None = None
    later: str | None = None


# By the numbers.
HARMLESS = {
    # A check.
    4242: Craft(
        f"ALTER TABLE {{0}}.classrooms ADD CHECK ({PLACED})",
        (PLACED, r"""U&"lo!005fcreate" UESCAPE '!' (4242) IS NOT NULL"""),
    ),
    # A column's default.
    4243: Craft(
        f"ALTER TABLE {{0}}.classrooms ALTER COLUMN level SET DEFAULT '{PLACEHOLDER.lower()}'",
        (f"'{PLACEHOLDER.lower()}'", r"""U&"lo!005fcreate" UESCAPE '!' (4243)::text"""),
        later=INSERT,
    ),
    # An index's expression.
    4244: Craft(
        function("indexed", 4244, arguments="value text", returns="text", answer="RETURN value;")
        + "CREATE INDEX evil ON {0}.classrooms ({0}.indexed(name))"
    ),
    # A trigger.
    4245: Craft(
        function("triggered", 4245, returns="trigger", answer="RETURN NEW;")
        + "CREATE TRIGGER evil BEFORE INSERT ON {0}.classrooms FOR EACH ROW EXECUTE FUNCTION {0}.triggered()",
        later=INSERT.replace("DEFAULT", "'y'").replace("'x'", "'y'"),
    ),
    # A view.
    4246: Craft("CREATE VIEW {0}.viewed AS SELECT lo_create(4246)", later="SELECT * FROM {0}.viewed"),
    # An event trigger: the last, as each change after it is an event.
    4247: Craft(
        function("happened", 4247, returns="event_trigger", answer="")
        + "CREATE EVENT TRIGGER evil ON ddl_command_end EXECUTE FUNCTION {0}.happened()",
        later="CREATE TABLE {0}.any (id int)",
    ),
}


@pytest.fixture(scope="module")
def original(server, real):
    """A database that the dump of a backup was unpacked into."""
    with unpacked(server, real.dump) as database:
        yield database


def crafted(server, original, real, crafts, to, *, whole=False):
    """Make a backup as an attacker does, of the school's schema or of the whole database."""
    with copied(server, original, real.dump) as database:
        for craft in crafts:
            execute(database, craft.change.format(real.schema))
        # Objects of changes that have run here already would be in the dump of all.
        ran(database)
        dump = dumped(database, *([] if whole else [f"--schema={real.schema}"]))
    for craft in crafts:
        dump = patched(dump, *craft.patch) if craft.patch else dump
    return with_dump(real.file, dump, to)


def ran(database):
    """Find the numbers of the changes that ran there; each is told once."""
    numbers = "SELECT oid::int FROM pg_largeobject_metadata WHERE oid::int = ANY (%s)"
    left = [number for (number,) in execute(database, numbers, ([*HARMLESS],))]
    for number in left:
        execute(database, "SELECT lo_unlink(%s)", (number,))
    return set(left)


def runs_elsewhere(server, file, schema):
    """Find the changes that run where a backup's dump is restored with PostgreSQL's own programs, and then used."""
    with unpacked(server, dump_of(file)) as database:
        seen = ran(database)
        for craft in HARMLESS.values():
            if craft.later:
                execute(database, craft.later.format(schema))
                seen |= ran(database)
        return seen


@pytest.fixture(scope="module")
def fresh(tenancy):
    """The catalogue of a new school, and the functions, triggers and rules of its schema."""
    school = create_school(tenancy, name="Fresh", administrator=ADMINISTRATOR)
    with tenancy.admin.begin() as connection:
        return read_catalogue(connection, school.schema), evil_of(tenancy, school.schema)


def test_code_in_a_backup_does_not_come_in(server, tenancy, original, real, fresh, tmp_path):
    file = crafted(server, original, real, HARMLESS.values(), tmp_path / "crafted.zip", whole=True)
    # Without this it would prove nothing.
    assert runs_elsewhere(server, file, real.schema) == {*HARMLESS}

    copy, sent = statements_of(tenancy, file)

    assert sent == real.statements
    assert ran(tenancy.admin_url) == set()
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


REFUSED_AS_READ = {
    "a table": (EXTRA_TABLE, "rows of extra, a table that its revision does not have"),
    "a column": (EXTRA_COLUMN, "rows of classrooms have other columns"),
    "a sequence": (
        "CREATE SEQUENCE {0}.evil; SELECT nextval('{0}.evil')",
        "something else than rows: SELECT",
    ),
    "a large object": ("SELECT lo_from_bytea(1, 'x')", "something else than rows"),
}


@pytest.mark.parametrize("name", REFUSED_AS_READ)
def test_anything_else_than_rows_is_refused_as_it_is_read(server, original, real, columns, name, tmp_path):
    change, reason = REFUSED_AS_READ[name]
    whole = name == "a large object"
    file = crafted(server, original, real, [Craft(change)], tmp_path / "crafted.zip", whole=whole)

    assert reason in refused_as_read(columns, file)


REFUSED = {
    "rows that refer to none": (
        "ALTER TABLE {0}.user_roles DROP CONSTRAINT fk_user_roles_user_id; DELETE FROM {0}.users",
        'can\'t be restored here: insert or update on table "user_roles" violates foreign key constraint',
    ),
    "rows that a check forbids": (
        "ALTER TABLE {0}.sessions DROP CONSTRAINT ck_sessions_dates; "
        "INSERT INTO {0}.sessions VALUES (gen_random_uuid(), 'x', '2026-01-02', '2026-01-01')",
        'violates check constraint "ck_sessions_dates"',
    ),
    "the same row twice": (
        "ALTER TABLE {0}.classrooms DROP CONSTRAINT pk_classrooms CASCADE, DROP CONSTRAINT uq_classrooms_name; "
        "INSERT INTO {0}.classrooms SELECT * FROM {0}.classrooms",
        "violates unique constraint",
    ),
    "other rows, and fewer": (
        "DELETE FROM {0}.classrooms; UPDATE {0}.roles SET name = upper(name)",
        "is not what was backed up: classrooms (0 rows, not 1 row), roles (other rows)",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_other_rows_are_refused(server, tenancy, original, real, name, tmp_path):
    change, reason = REFUSED[name]
    file = crafted(server, original, real, [Craft(change)], tmp_path / "crafted.zip")

    assert reason in refusal(tenancy, real, file)


def refused_as_read(columns, file):
    """Read the rows of a backup as restoring does, which has to be refused; answers why."""
    with (
        open_archive(file) as archive,
        pytest.raises(BackupRefused) as refused,
        rows_of(archive, columns) as tables,
    ):
        read_all(tables)
    return str(refused.value)


def read_all(tables):
    """Read all rows; answers the tables."""
    names = []
    for table in tables:
        names.append(table.table)
        while table.rows.read(8192):
            pass
    return names


def refusal(tenancy, real, file):
    """Restore a backup, which has to be refused and leave nothing; answers why."""
    copy = uuid4()
    with recorded(tenancy) as (watched, statements), pytest.raises(BackupRefused) as refused:
        restore(watched, file, school_id=copy)
    assert set(without_id(statements, copy)) <= set(real.statements)
    assert traces(tenancy, copy) == []
    assert ran(tenancy.admin_url) == set()
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
        program_ = f"COPY {real.schema}.audit_entries FROM PROGRAM 'touch {folder}/ran';"
        dump = patched(real.dump, header_of(real, "audit_entries"), program_)
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
def test_other_statements_in_the_place_of_a_copy_are_refused(real, columns, text, tmp_path):
    dump = patched(real.dump, header_of(real, "users"), text.format(real.schema))
    file = with_dump(real.file, dump, tmp_path / "crafted.zip")

    assert refused_as_read(columns, file)


def test_statements_behind_a_false_end_of_rows_are_refused(server, original, real, columns, tmp_path):
    """In the data itself, which PostgreSQL's program passes on as it is."""
    with copied(server, original, real.dump) as database:
        execute(database, f"UPDATE {real.schema}.classrooms SET name = '{PLACEHOLDER}'")
        dump = dumped(database, f"--schema={real.schema}", "--compress=none")
    evil = "x\t1\n\\.\nSELECT lo_create(4242);\n--"
    file = with_dump(real.file, patched(dump, PLACEHOLDER, evil), tmp_path / "crafted.zip")
    script = program("pg_restore", "--file=-", stdin=dump_of(file)).decode()
    assert "\nSELECT lo_create(4242);\n" in script

    assert "something else than rows: SELECT lo_create(4242);" in refused_as_read(columns, file)


def test_a_dump_of_another_format_is_refused(tenancy, original, real, tmp_path):
    """PostgreSQL's program would find out itself which one it is."""
    tar = dumped(original, f"--schema={real.schema}", "--format=tar")
    file = with_dump(real.file, tar, tmp_path / "crafted.zip")
    copy = uuid4()

    with pytest.raises(ProgramFailed, match="pg_restore failed"):
        restore(tenancy, file, school_id=copy)
    assert traces(tenancy, copy) == []


# At random, and the same each time.

SEED, SCRIPTS, ARCHIVES, RESTORES = 20261122, 440, 60, 6


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
def test_mutated_archives_leave_the_same_rows_or_nothing(tenancy, real, columns, tmp_path, kind):
    """Archives that can be read to the end: the others are refused before they end."""
    rng = random.Random(SEED + 1)
    ours = set(real.statements)
    path = tmp_path / "mutated.zip"
    readable = 0

    while readable < RESTORES // 2:
        if kind == "dump":
            file = with_dump(real.file, b"PGDMP" + mutated(rng, real.dump[5:]), path)
        else:
            file = with_script(real.scripted, mutated(rng, real.script), path)
        try:
            with open_archive(file) as archive, rows_of(archive, columns) as tables:
                read_all(tables)
        except (BackupRefused, ProgramFailed):
            continue
        readable += 1
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
# PostgreSQL itself refuses a row, or another row comes in; and a statement is refused as it is read.
RESTORED = ("a row that is none", "another value", "a statement")


@pytest.mark.parametrize("name", SCRIPTED)
def test_a_script_that_somebody_wrote_brings_rows_or_nothing(tenancy, real, columns, name, tmp_path):
    old, new, reason = SCRIPTED[name]
    schema = f'"{real.schema}"'
    script = real.script.decode()
    changed = script.replace(old.format(schema), new.format(schema), 1)
    assert changed != script
    file = with_script(real.scripted, changed.encode(), tmp_path / "crafted.zip")

    if name not in RESTORED:
        assert reason in refused_as_read(columns, file)
    else:
        assert reason in refusal(tenancy, real, file)


def test_a_script_that_somebody_wrote_as_it_was_comes_in(tenancy, real, tmp_path):
    file = with_script(real.scripted, real.script, tmp_path / "same.zip")

    copy, sent = statements_of(tenancy, file)

    assert sorted(sent) == sorted(real.statements)
    with tenancy.admin.begin() as connection:
        assert table_checksums(connection, copy.schema)["classrooms"].rows == 1
