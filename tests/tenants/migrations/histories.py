"""Histories of a test's own: the program's, with further revisions."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from pathlib import Path
from uuid import uuid4

from tenants.migrations.migration_sql import TENANT, revisions, update_baseline
from tenants.migrations.new_revision import revision_after
from tenants.tenancy import Administrator, SeedRows

# Tables like the first revision's of the program, as far as tests of migrating look at them.
_FEW_TABLES = [
    """CREATE TABLE classrooms (
        id uuid NOT NULL, name varchar(120) NOT NULL, level varchar(60) NOT NULL,
        CONSTRAINT pk_classrooms PRIMARY KEY (id), CONSTRAINT uq_classrooms_name UNIQUE (name)
    )""",
    "CREATE TABLE subjects (id uuid NOT NULL, name varchar(120) NOT NULL, CONSTRAINT pk_subjects PRIMARY KEY (id))",
    "CREATE TABLE users (id uuid NOT NULL, username varchar(120) NOT NULL, CONSTRAINT pk_users PRIMARY KEY (id))",
    "CREATE TABLE audit_entries (id uuid NOT NULL, CONSTRAINT pk_audit_entries PRIMARY KEY (id))",
]
# Those, and further ones, as far as tests of all else look at them: with a log, foreign keys and a check.
LOG_AND_KEYS = [
    """ALTER TABLE audit_entries ADD at timestamptz NOT NULL, ADD actor text NOT NULL, ADD actor_name text NOT NULL,
        ADD action text NOT NULL, ADD entity text NOT NULL, ADD entity_id uuid, ADD old jsonb, ADD new jsonb""",
    "CREATE TABLE roles (id uuid NOT NULL, name varchar(120) NOT NULL, CONSTRAINT pk_roles PRIMARY KEY (id))",
    """CREATE TABLE user_roles (
        user_id uuid NOT NULL CONSTRAINT fk_user_roles_user_id REFERENCES users,
        role_id uuid NOT NULL CONSTRAINT fk_user_roles_role_id REFERENCES roles,
        CONSTRAINT pk_user_roles PRIMARY KEY (user_id, role_id)
    )""",
    """CREATE TABLE sessions (
        id uuid NOT NULL, name varchar(120) NOT NULL, start_date date NOT NULL, end_date date NOT NULL,
        CONSTRAINT pk_sessions PRIMARY KEY (id), CONSTRAINT ck_sessions_dates CHECK (start_date < end_date)
    )""",
]


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


def small_history(folder: Path) -> Path:
    """Copy the package `migrations` with two revisions and four tables for schools: they are made and migrated fast.

    For tests of how schools are migrated, with any migrations. No rows can be seeded.
    """
    history = _copied(folder, TENANT)
    for revision in (history / "versions").glob("t*.py"):
        revision.unlink()
    _add(history, [_executing(_FEW_TABLES), _executing(["CREATE INDEX ix_subjects_name ON subjects (name)"])])
    update_baseline(history)
    return history


def few_rows(administrator: Administrator) -> list[SeedRows]:
    """Give the first rows of a school with LOG_AND_KEYS: its first user, and that one's role."""
    user, role = uuid4(), uuid4()
    return [
        ("users", [{"id": user, "username": administrator.username}]),
        ("roles", [{"id": role, "name": "Administrator"}]),
        ("user_roles", [{"user_id": user, "role_id": role}]),
    ]


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


def script_of_program(history: Path) -> str:
    """Give the script that makes a program start with this history."""
    change = f"Tenancy.__init__.__kwdefaults__['history'] = Path({str(history)!r})"
    return f"from pathlib import Path; from tenants.tenancy import Tenancy; {change}"


def add_revisions(folder: Path, changes: Iterable[str | list[str]]) -> list[str]:
    """Add a revision to a history for each change, without its baseline; answers their names."""
    return _add(folder, [_executing([change] if isinstance(change, str) else change) for change in changes])


def _executing(statements: list[str]) -> str:
    return _EXECUTING.format(statements=statements)


def _add(folder: Path, scripts: Iterable[str]) -> list[str]:
    before = next(reversed(revisions(folder)), None)
    added = []
    for script in scripts:
        revision = revision_after(before) if before else "t0001"
        text = _HEADER.format(revision=revision, before=before) + script
        (folder / "versions" / f"{revision}_change.py").write_text(text, encoding="utf-8")
        added.append(revision)
        before = revision
    return added
