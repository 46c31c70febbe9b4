"""Histories of a test's own: the program's, with further revisions."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable
from pathlib import Path

from tenants.migrations.migration_sql import TENANT, revisions, update_baseline
from tenants.migrations.new_revision import revision_after

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
    if changes:
        add_revisions(history, changes)
        update_baseline(history)
    return history


def history_with_script(folder: Path, script: str) -> Path:
    """Copy the package `migrations` into a folder, and add a revision of this Python text, imports and `upgrade`."""
    history = _copied(folder, TENANT)
    _add(history, [script])
    update_baseline(history)
    return history


def _copied(folder: Path, origin: Path) -> Path:
    package = folder / "migrations"
    shutil.copytree(origin.parent, package, ignore=shutil.ignore_patterns("__pycache__"))
    return package / origin.name


def path_of_program(history: Path) -> str:
    """Give the PYTHONPATH that makes a later history that of the program."""
    return os.pathsep.join([str(history.parents[1]), str(TENANT.parents[1])])


def add_revisions(folder: Path, changes: Iterable[str | list[str]]) -> list[str]:
    """Add a revision to a history for each change, without its baseline; answers their names."""
    templates = [
        _EXECUTING.format(statements=[change] if isinstance(change, str) else change) for change in changes
    ]
    return _add(folder, templates)


def _add(folder: Path, scripts: Iterable[str]) -> list[str]:
    before = revisions(folder)[-1]
    added = []
    for script in scripts:
        revision = revision_after(before)
        text = _HEADER.format(revision=revision, before=before) + script
        (folder / "versions" / f"{revision}_change.py").write_text(text, encoding="utf-8")
        added.append(revision)
        before = revision
    return added
