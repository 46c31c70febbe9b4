"""Histories of a test's own: the program's, with further revisions."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from tenants.migrations.migration_sql import TENANT, revisions, update_baseline
from tenants.migrations.new_revision import next_revision

_HEADER = '''"""A change for tests."""

revision = "{revision}"
down_revision = {before!r}
branch_labels = None
depends_on = None
'''
_EXECUTING = """
from alembic import op


def upgrade() -> None:
    for statement in {statements!r}:
        op.execute(statement)
"""


def later_history(folder: Path, *changes: str | list[str], origin: Path = TENANT) -> Path:
    """Copy the package `migrations` into a folder, and add a revision for each change, given as SQL.

    Answers the history's own folder in there.
    """
    history = _copied(folder, origin)
    for change in changes:
        add_revision(history, change)
    update_baseline(history)
    return history


def history_with_script(folder: Path, script: str) -> Path:
    """Copy the package `migrations` into a folder, and add a revision of this Python text, imports and `upgrade`."""
    history = _copied(folder, TENANT)
    _add(history, _HEADER + script)
    update_baseline(history)
    return history


def _copied(folder: Path, origin: Path) -> Path:
    package = folder / "migrations"
    shutil.copytree(origin.parent, package, ignore=shutil.ignore_patterns("__pycache__"))
    return package / origin.name


def path_of_program(history: Path) -> str:
    """Give the PYTHONPATH that makes a later history that of the program."""
    return os.pathsep.join([str(history.parents[1]), str(TENANT.parents[1])])


def add_revision(folder: Path, change: str | list[str]) -> str:
    """Add a revision to a history, without its baseline; answers its name."""
    return _add(folder, _HEADER + _EXECUTING, statements=[change] if isinstance(change, str) else change)


def _add(folder: Path, template: str, **values: object) -> str:
    revision = next_revision(folder)
    text = template.format(revision=revision, before=revisions(folder)[-1], **values)
    (folder / "versions" / f"{revision}_change.py").write_text(text, encoding="utf-8")
    return revision
