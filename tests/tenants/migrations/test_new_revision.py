"""The next migration is drafted from what the models say beyond the baseline, and leads where they do."""

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
from tests.tenants.migrations.histories import later_history

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
@pytest.mark.parametrize("changes", [[add_chairs], [change_classrooms], [add_chairs, change_classrooms]])
def test_a_drafted_migration_leads_where_the_models_do(connection, fill, draft, models, history, changes):
    for change in changes:
        change(models)

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


def test_it_is_the_next_revision_and_named_by_its_message(draft, models, history):
    before = revisions(history)[-1]
    models.tables["classrooms"].append_column(Column("stools", Integer))

    made = draft('seats  of the "old" classrooms')

    assert made.revision == f"t{int(before[1:]) + 1:04}" == revisions(history)[-1] == head(history)
    assert made.path.name == f"{made.revision}_seats_of_the_old_classrooms.py"
    assert made.path.parent == history / "versions"
    namespace = {}
    exec(compile(made.path.read_text(encoding="utf-8"), made.path, "exec"), namespace)
    assert namespace["__doc__"] == 'Seats of the "old" classrooms.'
    assert (namespace["revision"], namespace["down_revision"]) == (made.revision, before)
    assert next_revision(history) == f"t{int(before[1:]) + 2:04}"


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
def test_a_message_without_a_letter_or_digit_of_ascii_is_refused(draft, history, message):
    with pytest.raises(ValueError, match="a letter or digit"):
        draft(message, empty=True)
    assert revisions(history) == revisions()


def test_where_nothing_differs_nothing_is_written(draft, history):
    before = {path: path.read_bytes() for path in history.rglob("*") if path.is_file()}

    assert draft() is None

    assert {path: path.read_bytes() for path in before} == before
    assert revisions(history) == revisions()


def test_an_empty_migration_is_written_when_it_is_meant(draft, history):
    made = draft("By hand", empty=True)

    assert made.empty
    assert formatted(made.path)
    assert head(history) == made.revision
    assert check_migrations(history) == []


def test_nothing_of_the_comparison_stays_in_the_database(scratch_connection, draft, models):
    add_chairs(models)
    schemas = text("SELECT nspname FROM pg_namespace WHERE nspname LIKE 'scratch%'")
    with scratch_connection.begin():
        before = scratch_connection.execute(schemas).all()

    draft()

    assert not scratch_connection.in_transaction()
    assert scratch_connection.execute(schemas).all() == before


def test_a_required_column_without_a_default_is_written_and_found_by_the_rules(draft, models, history):
    models.tables["classrooms"].append_column(Column("stools", Integer, nullable=False))

    made = draft()

    assert [(finding.revision, finding.rule) for finding in check_migrations(history)] == [
        (made.revision, "not-null")
    ]


def test_what_it_drops_and_what_it_makes_required_are_distinguished(draft, models):
    add_chairs(models)
    adding = draft()
    models.remove(models.tables["chairs"])
    dropping = draft()
    models.tables["users"].c.password_hash.nullable = False
    requiring = draft()

    assert [(made.drops, made.requires) for made in (adding, dropping, requiring)] == [
        (False, False),
        (True, False),
        (False, True),
    ]


def test_a_baseline_that_is_not_what_the_migrations_say_is_refused(draft, models, history):
    add_chairs(models)
    with baseline_file(history).open("a", encoding="utf-8") as file:
        file.write("\nDROP TABLE classrooms;\n")

    with pytest.raises(StaleBaseline, match="school-service tenants baseline"):
        draft()
    assert revisions(history) == revisions()


def test_the_file_is_left_as_it_is_where_ruff_is_missing(draft, models, monkeypatch):
    models.tables["classrooms"].append_column(Column("stools", Integer))
    monkeypatch.setattr("tenants.migrations.new_revision.find_spec", lambda _name: None)

    assert not draft().formatted


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


def test_the_verb_says_what_to_edit(settings, tmp_path):
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


def test_help_lists_what_developers_use(cli):
    verbs = cli("tenants", "--help").stdout

    assert re.search(r"revision +Draft the next migration \(for developers\)\.", verbs)
    assert re.search(r"baseline +Write baseline.sql anew \(for developers\)\.", verbs)
    assert "--history" in cli("tenants", "revision", "--help").stdout
