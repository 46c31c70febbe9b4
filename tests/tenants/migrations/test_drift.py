"""Baseline, migrations and models agree, of a school's schema and of the registry.

And the comparison is shown to see differences, and violations of the rules.
"""

from __future__ import annotations

import re
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages
from uuid import uuid4

import pytest
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, text

import school_service
from school_service.core.database import db
from school_service.features.school.geography.service import metadata as geography
from tenants.connections.engines import execute_script, quote_identifier
from tenants.migrations.migration_sql import baseline, head, history, upgrade_statements, write_baseline
from tenants.provisioning.create import create_school
from tenants.registry import schools as registry
from tests.postgres import on_citus
from tests.tenants.catalogue import drift, of_caller_state, read_catalogue, violations
from tests.tenants.installations import ADMINISTRATOR

for module in walk_packages(school_service.__path__, "school_service."):
    if module.name.endswith(".models"):
        import_module(module.name)


def revisions(name):
    """List the revisions of a history, the first of all first."""
    return list(reversed(list(ScriptDirectory(str(history(name))).walk_revisions())))


@dataclass(frozen=True)
class Scratch:
    """A schema, made in a transaction that is never committed."""

    connection: Connection
    schema: str

    @contextmanager
    def changed(self, change):
        """Make a change for the length of the block; yields the connection."""
        savepoint = self.connection.begin_nested()
        execute_script(self.connection, change)
        yield self.connection
        savepoint.rollback()


@contextmanager
def made_by_baseline(tenancy):
    """A schema that baseline.sql made, for the length of the block."""
    with tenancy.admin.connect() as connection:
        scratch = Scratch(connection, f"scratch_{uuid4().hex[:8]}")
        made = [f"CREATE SCHEMA {scratch.schema}", f"SET LOCAL search_path TO {scratch.schema}"]
        execute_script(connection, ";\n".join([*made, baseline()[1]]))
        yield scratch
        connection.rollback()


@pytest.fixture(scope="module")
def scratch(tenancy):
    with made_by_baseline(tenancy) as scratch:
        yield scratch


@pytest.fixture(scope="module")
def from_baseline(tenancy):
    """The catalogue of a school's schema as baseline.sql makes it."""
    # Not the schema of all tests: on Citus its open transaction would hold locks that a migration waits for.
    with made_by_baseline(tenancy) as scratch:
        return read_catalogue(scratch.connection, scratch.schema)


# A school's schema.


def test_the_baseline_is_written_by_the_migrations():
    written = (history("tenant") / "baseline.sql").read_text(encoding="utf-8")

    assert written == write_baseline(), "run: school-service tenants baseline"
    assert head() == revisions("tenant")[-1].revision


def test_the_baseline_agrees_with_the_models(connection, fill, from_baseline):
    from_models = fill(lambda: db.metadata.create_all(connection, checkfirst=False))

    differences = [
        difference for difference in drift(from_baseline, from_models) if not of_caller_state(difference)
    ]
    assert differences == [], 'run: school-service tenants revision "what changes"'


def test_the_baseline_is_where_the_migrations_lead_one_after_the_other(connection, fill, from_baseline):
    def step_by_step():
        before = None
        for step in revisions("tenant"):
            execute_script(connection, ";\n".join(upgrade_statements(before, step.revision)))
            before = step.revision
        # The baseline is without statements that change rows: they make none where there are none.
        tables = text(
            "SELECT relname FROM pg_class WHERE relnamespace = current_schema()::regnamespace AND relkind = 'r'"
        )
        for table in connection.execute(tables).scalars().all():
            count = text(f"SELECT count(*) FROM {quote_identifier(table)}")
            assert connection.scalar(count) == 0, table

    assert drift(from_baseline, fill(step_by_step)) == []


def test_a_created_school_agrees_with_the_baseline(tenancy, connection, from_baseline):
    school = create_school(tenancy, name="Drift", administrator=ADMINISTRATOR)
    execute_script(connection, f"SET LOCAL search_path TO {quote_identifier(school.schema)}")

    assert drift(from_baseline, read_catalogue(connection, school.schema)) == []
    owners = text(
        "SELECT DISTINCT relowner::regrole::text FROM pg_class WHERE relnamespace = to_regnamespace(:name)"
    )
    assert connection.execute(owners, {"name": school.schema}).scalars().all() == [tenancy.owner]


def test_a_schools_schema_keeps_the_rules(scratch):
    assert violations(scratch.connection, scratch.schema) == []


# The registry.

# Additions where Citus places the schools, and definitions that Citus has given in other words to the nodes.
ON_CITUS = {
    "function enter_node(bigint)",
    "function read_shards(text)",
    "function client_grant(text)",
    "constraint schools.ck_schools_deletion",
    "constraint schools.ck_schools_status",
}
if not on_citus():
    ON_CITUS.clear()


def test_the_registry_agrees_with_its_tables(connection, fill):
    def create():
        schema = connection.execute(text("SELECT current_schema()")).scalar_one()
        translated = connection.execution_options(schema_translate_map={"registry": schema})
        for metadata in (registry.metadata, geography):
            metadata.create_all(translated, checkfirst=False)
        connection.execution_options(schema_translate_map=None)

    from_tables = fill(create)
    execute_script(connection, "SET LOCAL search_path TO registry")
    installed = read_catalogue(connection, "registry")

    differences = drift(from_tables, installed)
    # Alembic's own table, and the functions that check a binding and a client's secret, are no tables of ours.
    of_alembic = re.compile(r".* revision(\..*)?")
    assert {
        name for line in differences if not of_alembic.fullmatch(name := line.split(":")[0])
    } - ON_CITUS == {
        "function client_secret_matches(text, text)",
        "function enter(uuid, text[], text)",
        "function enter_as_client(uuid, text[], text, boolean)",
        "function refuse_revoked(text)",
        "function refuse_revoked(text, integer)",
    }


def test_the_registry_is_at_its_newest_revision(connection):
    versions = connection.execute(text("SELECT version_num FROM registry.revision")).scalars().all()

    assert versions == [revisions("registry")[-1].revision]


# Both histories.


@pytest.mark.parametrize("name", ["tenant", "registry"])
def test_revisions_form_one_line(name):
    scripts = ScriptDirectory(str(history(name)))
    steps = revisions(name)

    assert len(scripts.get_heads()) == len(scripts.get_bases()) == 1
    assert [step.down_revision for step in steps] == [None, *(step.revision for step in steps[:-1])]
    assert not any(step.branch_labels or step.dependencies for step in steps)


@pytest.mark.parametrize("name", ["tenant", "registry"])
def test_revisions_are_numbered_and_named_by_their_files(name):
    numbers = [f"{name[0]}{number:04}" for number in range(1, len(revisions(name)) + 1)]

    assert [step.revision for step in revisions(name)] == numbers
    for step in revisions(name):
        assert Path(step.path).name.startswith(f"{step.revision}_")


# The detector detects.


@pytest.mark.parametrize(
    "change",
    [
        "ALTER TABLE classrooms ADD COLUMN added text",
        "ALTER TABLE classrooms DROP COLUMN level",
        "ALTER TABLE classrooms ALTER COLUMN name TYPE varchar(121)",
        'ALTER TABLE classrooms ALTER COLUMN name TYPE varchar(120) COLLATE "C"',
        "ALTER TABLE classrooms ALTER COLUMN level DROP NOT NULL",
        "ALTER TABLE classrooms ALTER COLUMN level SET DEFAULT 'x'",
        "ALTER TABLE classrooms RENAME COLUMN level TO height",
        "ALTER TABLE classrooms RENAME CONSTRAINT uq_classrooms_name TO uq_name",
        "ALTER TABLE classrooms DROP CONSTRAINT uq_classrooms_name",
        "ALTER TABLE classrooms ADD CONSTRAINT ck_classrooms_level CHECK (level <> '')",
        "ALTER TABLE students DROP CONSTRAINT ck_students_status",
        "ALTER TABLE terms DROP CONSTRAINT fk_terms_session_id; "
        "ALTER TABLE terms ADD CONSTRAINT fk_terms_session_id FOREIGN KEY (session_id) REFERENCES sessions "
        "ON DELETE CASCADE",
        "ALTER TABLE counters SET UNLOGGED",
        "ALTER TABLE classrooms SET (fillfactor = 50)",
        "ALTER TABLE classrooms ENABLE ROW LEVEL SECURITY",
        "DROP INDEX ix_students_status",
        "DROP INDEX uq_sessions_current; CREATE UNIQUE INDEX uq_sessions_current ON sessions (current)",
        "CREATE INDEX ix_classrooms_level ON classrooms (level)",
        "CREATE TABLE added (id uuid)",
        "DROP TABLE counters",
        "CREATE SEQUENCE added",
        "CREATE VIEW added AS SELECT 1",
        "CREATE TYPE added AS ENUM ('x')",
        "CREATE DOMAIN added AS text",
        "CREATE FUNCTION added() RETURNS int LANGUAGE sql AS 'SELECT 1'",
        "CREATE FUNCTION added() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN END'; "
        "CREATE TRIGGER added AFTER INSERT ON classrooms EXECUTE FUNCTION added()",
        "CREATE RULE added AS ON DELETE TO classrooms DO INSTEAD NOTHING",
    ],
)
def test_a_difference_is_seen(scratch, from_baseline, change):
    with scratch.changed(change) as connection:
        assert drift(from_baseline, read_catalogue(connection, scratch.schema))

    assert drift(from_baseline, read_catalogue(scratch.connection, scratch.schema)) == []


@pytest.mark.parametrize(
    ("offence", "seen"),
    [
        ("CREATE TABLE offences (name text)", "its primary key is of nothing"),
        (
            "CREATE TABLE offences (id int CONSTRAINT pk_offences PRIMARY KEY)",
            "its primary key is of ['integer']",
        ),
        (
            "CREATE TABLE offences (id uuid, day date, CONSTRAINT pk_offences PRIMARY KEY (id, day))",
            "its primary key is of",
        ),
        (
            "CREATE TABLE offences (id uuid CONSTRAINT pk_offences PRIMARY KEY, user_id uuid "
            "CONSTRAINT fk_offences_user_id REFERENCES users)",
            "has no index",
        ),
        (
            "CREATE TABLE offences (id uuid CONSTRAINT pk_offences PRIMARY KEY, user_id uuid "
            "CONSTRAINT fk_offences_user_id REFERENCES users); "
            "CREATE INDEX ix_offences_user_id ON offences (user_id) WHERE user_id IS NOT NULL",
            "has no index",
        ),
        (
            "CREATE TABLE offences (id uuid CONSTRAINT pk_offences PRIMARY KEY, user_id uuid "
            "CONSTRAINT fk_offences_user_id REFERENCES users); "
            "CREATE INDEX ix_offences_id_user_id ON offences (id, user_id)",
            "has no index",
        ),
        (
            "CREATE TABLE offences (id uuid CONSTRAINT pk_offences PRIMARY KEY "
            "CONSTRAINT fk_offences_id REFERENCES registry.schools)",
            "refers to a table outside",
        ),
        ("CREATE TABLE offences (id uuid PRIMARY KEY)", "its name should be pk_offences"),
        ("ALTER TABLE classrooms ADD UNIQUE (level)", "its name should be uq_classrooms_level"),
        ("ALTER TABLE classrooms ADD CHECK (level <> '')", "its name should be ck_classrooms_"),
        (
            "ALTER TABLE classrooms ADD CONSTRAINT ck_level CHECK (level <> '')",
            "its name should be ck_classrooms_",
        ),
        ("CREATE INDEX ON classrooms (level)", "its name should be ix_classrooms_level"),
        ("CREATE INDEX idx_level ON classrooms (lower(level))", "its name should be ix_classrooms_"),
        (
            "CREATE UNIQUE INDEX ix_classrooms_level ON classrooms (level)",
            "its name should be uq_classrooms_level",
        ),
        (
            "ALTER TABLE classrooms ADD COLUMN number int GENERATED ALWAYS AS IDENTITY",
            "generated by a sequence",
        ),
        ("ALTER TABLE classrooms ADD COLUMN number serial", "generated by a sequence"),
        (
            "ALTER TABLE classrooms ADD COLUMN made timestamptz DEFAULT now()",
            "a default that PostgreSQL computes",
        ),
        ("ALTER TABLE classrooms ADD COLUMN school_id uuid", "which the schema says"),
        ("CREATE SEQUENCE offence", "sequence offence"),
        ("CREATE VIEW offence AS SELECT 1", "view offence"),
        ("CREATE MATERIALIZED VIEW offence AS SELECT 1", "view offence"),
        ("CREATE TYPE offence AS ENUM ('x')", "type offence"),
        ("CREATE TYPE offence AS (x int)", "type offence"),
        ("CREATE FUNCTION offence() RETURNS int LANGUAGE sql AS 'SELECT 1'", "function offence()"),
        (
            "CREATE TRIGGER offence BEFORE UPDATE ON classrooms FOR EACH ROW "
            "EXECUTE FUNCTION suppress_redundant_updates_trigger()",
            "trigger classrooms.offence",
        ),
        ("CREATE RULE offence AS ON DELETE TO classrooms DO INSTEAD NOTHING", "rule classrooms.offence"),
        (
            "CREATE UNLOGGED TABLE offences (id uuid CONSTRAINT pk_offences PRIMARY KEY)",
            "storage of offences: unlogged",
        ),
        ("CREATE TABLE offences () INHERITS (classrooms)", "parents of offences: "),
    ],
)
def test_an_offence_against_the_rules_is_seen(scratch, offence, seen):
    with scratch.changed(offence) as connection:
        offences = violations(connection, scratch.schema)

    assert any(seen in violation for violation in offences), offences
