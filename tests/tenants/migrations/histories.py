"""Histories of a test's own: the program's, with further revisions."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from tenants.migrations.migration_sql import TENANT, revisions, write_baseline

_REVISION = '''"""A change for tests."""

from alembic import op

revision = "{revision}"
down_revision = {before!r}
branch_labels = None
depends_on = None


def upgrade() -> None:
    for statement in {statements!r}:
        op.execute(statement)
'''


def later_history(folder: Path, *changes: str | list[str], origin: Path = TENANT) -> Path:
    """Copy the package `migrations` into a folder, and add a revision for each change, given as SQL.

    Answers the history's own folder in there.
    """
    package = folder / "migrations"
    shutil.copytree(origin.parent, package, ignore=shutil.ignore_patterns("__pycache__"))
    history = package / origin.name
    for change in changes:
        add_revision(history, change)
    (history / "baseline.sql").write_text(write_baseline(history), encoding="utf-8")
    return history


def path_of_program(history: Path) -> str:
    """Give the PYTHONPATH that makes a later history that of the program."""
    return os.pathsep.join([str(history.parents[1]), str(TENANT.parents[1])])


def add_revision(folder: Path, change: str | list[str]) -> str:
    """Add a revision to a history, without its baseline; answers its name."""
    before = revisions(folder)[-1]
    revision = f"t{int(before[1:]) + 1:04}"
    text = _REVISION.format(
        revision=revision, before=before, statements=[change] if isinstance(change, str) else change
    )
    (folder / "versions" / f"{revision}_change.py").write_text(text, encoding="utf-8")
    return revision
