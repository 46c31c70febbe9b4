"""A migration that changes records lets keepers of copies read everything anew."""

from __future__ import annotations

from migrations.tenant.resync import RESYNC
from tenants.migrations.migration_rules import check_migrations
from tenants.migrations.migration_sql import migration_scripts, script_statements
from tests.tenants.migrations.histories import history_with_script

CHANGING = ("INSERT ", "UPDATE ", "DELETE ")
SCRIPT = """
from alembic import op

from migrations.tenant.resync import resync


def upgrade() -> None:
    op.execute("UPDATE classrooms SET name = upper(name)")
    resync()
"""


def without_resync(folder=None):
    """The revisions since change sets that change rows, and add no change set for it."""
    steps = migration_scripts(folder=folder) if folder else migration_scripts()
    revisions, there = [], False
    for step in steps:
        statements = [statement.strip() for statement in script_statements(step)]
        changing = any(statement.startswith(CHANGING) for statement in statements)
        if there and changing and RESYNC.strip() not in statements:
            revisions.append(step.revision)
        there = there or any("CREATE TABLE change_sets" in statement for statement in statements)
    assert there
    return revisions


def test_every_migration_that_changes_rows_does():
    assert without_resync() == []


def test_one_that_does_keeps_the_rules_of_migrations(tmp_path):
    history = history_with_script(tmp_path, SCRIPT)

    assert without_resync(history) == []
    assert check_migrations(history) == []


def test_one_that_does_not_is_missed(tmp_path):
    history = history_with_script(tmp_path, SCRIPT.replace("    resync()\n", ""))

    assert len(without_resync(history)) == 1
