"""The next migration is drafted from the differences of the models and the baseline, and leads to the models."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest
from click.testing import CliRunner
from sqlalchemy import (
    CheckConstraint,
    Column,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    String,
    Table,
    UniqueConstraint,
    Uuid,
    text,
)
from sqlalchemy.dialects.postgresql import JSONB, ExcludeConstraint

from school_service.cli.program import program
from school_service.core.database import db
from tenants.connections.engines import execute_script
from tenants.exceptions import StaleBaseline
from tenants.migrations.migration_rules import check_migrations
from tenants.migrations.migration_sql import baseline_file, head, revisions, write_baseline
from tenants.migrations.new_revision import generate_revision, next_revision, slug_of
from tenants.registry.schools import NAMING_CONVENTION
from tests.cli.program import PROGRAM, ROOT, run
from tests.tenants.catalogue import drift, of_caller_state
from tests.tenants.migrations.histories import later_history, small_history

pytestmark = pytest.mark.program


@pytest.fixture
def models():
    """A copy of the models' tables, to be changed."""
    copy = MetaData(naming_convention=NAMING_CONVENTION)
    for table in db.metadata.sorted_tables:
        table.to_metadata(copy)
    return copy


@pytest.fixture
def history(tmp_path):
    """A copy of the program's migrations."""
    return later_history(tmp_path)


@pytest.fixture
def few():
    """The tables of `small_history`, as models would say them: they are compared fast."""
    tables = MetaData(naming_convention=NAMING_CONVENTION)
    for table, parts in {
        "classrooms": (
            Column("name", String(120), nullable=False, unique=True),
            Column("level", String(60), nullable=False),
        ),
        "subjects": (Column("name", String(120), nullable=False, index=True),),
        "users": (Column("username", String(120), nullable=False),),
        "audit_entries": (),
    }.items():
        Table(table, tables, Column("id", Uuid, primary_key=True), *parts)
    return tables


@pytest.fixture
def small(tmp_path):
    """A history of these four tables."""
    return small_history(tmp_path)


@pytest.fixture
def draft_small(scratch_connection, few, small):
    """Drafts its next migration."""

    def draft(message="A change", **options):
        return generate_revision(scratch_connection, few, message, folder=small, **options)

    return draft


@pytest.fixture
def cli(settings, tmp_path, monkeypatch):
    """Run a verb in this process."""

    def invoke(*arguments):
        monkeypatch.chdir(tmp_path)
        monkeypatch.setenv("DATABASE_URL", settings.admin_database_url.render_as_string(hide_password=False))
        return CliRunner().invoke(program, arguments, prog_name="school-service")

    return invoke


@pytest.fixture
def scratch_connection(tenancy):
    """A connection in no transaction."""
    with tenancy.admin.connect() as connection:
        yield connection


@pytest.fixture
def draft(scratch_connection, models, history):
    """Drafts the next migration from the changed models."""

    def draft(message="A change", **options):
        return generate_revision(scratch_connection, models, message, folder=history, **options)

    return draft


def add_chairs(models):
    """Add a table with constraints and indexes of all kinds."""
    Table(
        "chairs",
        models,
        Column("id", Uuid, primary_key=True),
        Column("number", Integer, nullable=False),
        Column("classroom_id", ForeignKey("classrooms.id"), nullable=False),
        Column("user_id", ForeignKey("users.id"), nullable=False, index=True),
        Column("notes", JSONB, nullable=False),
        CheckConstraint("number > 0", name="number"),
        UniqueConstraint("classroom_id", "number"),
        ExcludeConstraint(
            (text("int4range(number, number, '[]')"), "&&"), using="gist", name="ex_chairs_number"
        ),
        Index("uq_chairs_notes", "notes", unique=True, postgresql_where=text("number = 1")),
        Index("ix_chairs_twice", text("(number * 2)")),
    )


def change_classrooms(models):
    """Change a table that is there in each way that is seen."""
    table = models.tables["classrooms"]
    table.append_column(Column("stools", Integer))
    table.append_column(Column("warden_id", ForeignKey("users.id"), index=True))
    table.append_column(Column("key_code", String(20), unique=True))
    table.append_column(Column("outline", String(20), nullable=False, server_default="square"))
    table.c.level.type = String(240)


def formatted(path):
    """Tell whether ruff finds nothing to say about a file."""
    options = ["--config", str(ROOT / "pyproject.toml"), "--no-cache", str(path)]
    done = [
        subprocess.run([sys.executable, "-m", "ruff", *verb, *options], check=False, capture_output=True)
        for verb in (["check"], ["format", "--check"])
    ]
    return [process.stdout.decode() + process.stderr.decode() for process in done if process.returncode] == []


@pytest.mark.usefixtures("of_no_expansion")
def test_a_drafted_migration_leads_where_the_models_do(connection, fill, draft, models, history):
    add_chairs(models)
    change_classrooms(models)

    made = draft()

    written = baseline_file(history).read_text(encoding="utf-8")
    migrated = fill(lambda: execute_script(connection, written))
    from_models = fill(lambda: models.create_all(connection, checkfirst=False))
    # A function is no table: no model has it.
    assert [
        difference for difference in drift(migrated, from_models) if not of_caller_state(difference)
    ] == []
    assert written == write_baseline(history)
    assert (made.empty, made.drops, made.requires, made.formatted) == (False, False, False, True)
    assert check_migrations(history) == []
    assert formatted(made.path)


def test_a_draft_is_the_next_revision_and_named_by_its_message(draft_small, few, small):
    before = revisions(small)[-1]
    few.tables["classrooms"].append_column(Column("stools", Integer))

    made = draft_small('seats  of the "old" classrooms')

    assert made.revision == f"t{int(before[1:]) + 1:04}" == revisions(small)[-1] == head(small)
    assert made.path.name == f"{made.revision}_seats_of_the_old_classrooms.py"
    assert made.path.parent == small / "versions"
    namespace = {}
    exec(compile(made.path.read_text(encoding="utf-8"), made.path, "exec"), namespace)
    assert namespace["__doc__"] == 'Seats of the "old" classrooms.'
    assert (namespace["revision"], namespace["down_revision"]) == (made.revision, before)
    assert next_revision(small) == f"t{int(before[1:]) + 2:04}"


@pytest.mark.parametrize(
    ("message", "slug"),
    [
        ("Seats", "seats"),
        ("Pupils' Ẹ̀kọ́: 2 steps!", "pupils_eko_2_steps"),
        ("a word " * 20, "a_word_a_word_a_word_a_word_a_word_a"),
        ("x" * 60, "x" * 40),
        ("y " + "x" * 60, "y"),
    ],
)
def test_a_message_makes_the_name_of_a_file(message, slug):
    assert slug_of(message) == slug


@pytest.mark.parametrize("message", ["", " ", "…!", "教室"])
def test_a_message_without_a_letter_or_digit_of_ascii_is_refused(draft_small, small, message):
    with pytest.raises(ValueError, match="a letter or digit"):
        draft_small(message, empty=True)
    assert revisions(small) == ["t0001", "t0002"]


def test_where_nothing_differs_nothing_is_written(draft, history):
    before = {path: path.read_bytes() for path in history.rglob("*") if path.is_file()}

    assert draft() is None

    assert {path: path.read_bytes() for path in before} == before
    assert revisions(history) == revisions()


def test_an_empty_migration_is_written_when_it_is_meant(draft_small, small):
    made = draft_small("By hand", empty=True)

    assert made.empty
    assert formatted(made.path)
    assert head(small) == made.revision
    assert check_migrations(small) == []


def test_nothing_of_the_comparison_stays_in_the_database(scratch_connection, draft_small, few):
    add_chairs(few)
    schemas = text("SELECT nspname FROM pg_namespace WHERE nspname LIKE 'scratch%'")
    with scratch_connection.begin():
        before = scratch_connection.execute(schemas).all()

    draft_small()

    assert not scratch_connection.in_transaction()
    assert scratch_connection.execute(schemas).all() == before


def test_a_required_column_without_a_default_is_written_and_found_by_the_rules(draft_small, few, small):
    few.tables["classrooms"].append_column(Column("stools", Integer, nullable=False))

    made = draft_small()

    assert [(finding.revision, finding.rule) for finding in check_migrations(small)] == [
        (made.revision, "not-null")
    ]


def test_drops_and_requirements_of_a_draft_are_distinguished(draft_small, few):
    add_chairs(few)
    few.tables["users"].append_column(Column("password_hash", String(120)))
    adding = draft_small()
    few.remove(few.tables["chairs"])
    dropping = draft_small()
    few.tables["users"].c.password_hash.nullable = False
    requiring = draft_small()

    assert [(made.drops, made.requires) for made in (adding, dropping, requiring)] == [
        (False, False),
        (True, False),
        (False, True),
    ]


def test_a_baseline_that_differs_from_the_migrations_is_refused(draft_small, few, small):
    add_chairs(few)
    with baseline_file(small).open("a", encoding="utf-8") as file:
        file.write("\nDROP TABLE classrooms;\n")

    with pytest.raises(StaleBaseline, match="school-service tenants baseline"):
        draft_small()
    assert revisions(small) == ["t0001", "t0002"]


def test_the_file_is_left_as_it_is_where_ruff_is_missing(draft_small, few, monkeypatch):
    few.tables["classrooms"].append_column(Column("stools", Integer))
    monkeypatch.setattr("tenants.migrations.new_revision.find_spec", lambda _name: None)

    assert not draft_small().formatted


# The verb.


def test_the_verb_compares_all_models_in_a_database_made_for_the_moment(history, tmp_path):
    # In an interpreter of its own: another has imported modules with tables that the verb itself may have forgotten.
    arguments = ("tenants", "revision", "Nothing", "--history", str(history))
    done = run(*arguments, cwd=tmp_path, command=PROGRAM)

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("The models say what baseline.sql does: nothing to migrate. --empty writes")
    assert "Not compared: CHECK and EXCLUDE constraints of tables that are there;" in done.stdout
    assert "tests/tenants/migrations/test_drift.py" in done.stdout
    assert [path.name for path in tmp_path.iterdir()] == ["migrations"]


def test_the_verb_names_the_files_to_edit(settings, tmp_path):
    folder = later_history(
        tmp_path,
        "CREATE TABLE stools (id uuid NOT NULL, CONSTRAINT pk_stools PRIMARY KEY (id))",
        "ALTER TABLE classrooms DROP COLUMN level",
    )
    admin = settings.admin_database_url.render_as_string(hide_password=False)

    done = run(
        *("tenants", "revision", "Levels again", "--history", str(folder)),
        cwd=tmp_path,
        settings={"DATABASE_URL": admin},
    )

    made = revisions(folder)[-1]
    assert done.returncode == 1
    assert done.stdout.splitlines()[:2] == [
        f"Wrote {folder}/versions/{made}_levels_again.py.",
        f"Wrote {folder}/baseline.sql.",
    ]
    assert "Note: it drops tables or columns, and their rows." in done.stderr
    assert "To edit: not-null: " in done.stderr
    assert "Give the column a server_default" in done.stderr


def test_the_verb_writes_an_empty_migration_and_says_to_fill_it(cli, history):
    done = cli("tenants", "revision", "By hand", "--empty", "--history", str(history))

    assert done.exit_code == 0
    assert f"{revisions(history)[-1]}_by_hand.py" in done.stdout
    assert "Fill its upgrade(), then run: school-service tenants baseline" in done.stdout


def test_the_verb_refuses_a_message_that_names_no_file(cli, history):
    done = cli("tenants", "revision", "…", "--empty", "--history", str(history))

    assert done.exit_code == 2
    assert "a message has a letter or digit, which the file is named by" in done.stderr
    assert revisions(history) == revisions()


def test_the_verb_writes_a_stale_baseline_anew(cli, history):
    baseline_file(history).write_text("", encoding="utf-8")

    done = cli("tenants", "baseline", "--history", str(history))

    assert (done.exit_code, done.stdout) == (0, f"Wrote {history}/baseline.sql.\n")
    assert baseline_file(history).read_text(encoding="utf-8") == write_baseline(history)


def test_help_lists_the_verbs_of_developers(cli):
    verbs = cli("tenants", "--help").stdout

    assert re.search(r"revision +Draft the next migration \(for developers\)\.", verbs)
    assert re.search(r"baseline +Write baseline.sql anew \(for developers\)\.", verbs)
    assert "--history" in cli("tenants", "revision", "--help").stdout
