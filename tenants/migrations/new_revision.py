"""Making the next migration of schools' schemas from the models' differences to the baseline.

Alembic compares the two, in a schema made for the length of a transaction. It sees tables, columns with their types and
defaults, foreign keys, UNIQUE constraints and indexes. It does not see the parts in `NOT_COMPARED`, and it takes a
renaming for a removal and an addition: its output is a draft to be read.
"""

from __future__ import annotations

import re
import subprocess
import sys
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from uuid import uuid4

from alembic.autogenerate import produce_migrations, render_python_code
from alembic.migration import MigrationContext
from alembic.operations.ops import (
    AlterColumnOp,
    DropColumnOp,
    DropTableOp,
    MigrateOperation,
    OpContainer,
    UpgradeOps,
)
from alembic.script import ScriptDirectory
from sqlalchemy import Column, Connection, MetaData

from tenants.connections.engines import execute_script
from tenants.exceptions import StaleBaseline
from tenants.migrations.migration_sql import (
    TENANT,
    baseline_file,
    revisions,
    update_baseline,
    upgrade_statements,
    write_baseline,
)

NOT_COMPARED = (
    "CHECK and EXCLUDE constraints of tables that are there",
    "the WHERE and the expressions of indexes that are there",
    "the rows that a migration adds or changes",
)
"""The parts left out by a comparison of models and baseline."""

_LINE_LENGTH = 110  # characters, as pyproject.toml has it
_SLUG_LENGTH = 40  # characters
# The names that a migration may use, and its import for each.
_IMPORTS = (("sa.", "import sqlalchemy as sa"), ("op.", "from alembic import op"))


@dataclass(frozen=True, slots=True)
class NewRevision:
    """A written revision: its name, its file, the baseline written anew.

    `empty` says that it changes nothing yet, `drops` that it drops tables or columns, `requires` that it makes a column
    of existing rows NOT NULL, `formatted` that ruff, a tool of developers, was there to format the file.
    """

    revision: str
    path: Path
    baseline: Path
    empty: bool
    drops: bool
    requires: bool
    formatted: bool


def generate_revision(
    connection: Connection, models: MetaData, message: str, *, folder: Path = TENANT, empty: bool = False
) -> NewRevision | None:
    """Write the next revision of a history, and its baseline anew; None, and no file, without a difference.

    `empty` writes a revision even without a difference, for statements written by hand. The connection's transaction is
    rolled back. Raises StaleBaseline if the baseline differs from the sum of the migrations; ValueError if the message
    has no letter or digit to name the file by.
    """
    slug = slug_of(message)
    if baseline_file(folder).read_text(encoding="utf-8") != write_baseline(folder):
        raise StaleBaseline(
            "baseline.sql is not what the migrations amount to. Run: school-service tenants baseline"
        )
    draft = _compare(connection, models, folder)
    if not draft.code and not empty:
        return None
    revision = next_revision(folder)
    scripts = ScriptDirectory(str(folder), file_template=f"%(rev)s_{slug}", messaging_opts={"quiet": True})
    script = scripts.generate_revision(
        revision, _sentence(message), upgrades=draft.code, imports=draft.imports
    )
    assert script is not None  # noqa: S101 -- for mypy
    path = Path(script.path)
    formatted = _format(path)
    return NewRevision(
        revision,
        path,
        update_baseline(folder),
        empty=not draft.code,
        drops=draft.drops,
        requires=draft.requires,
        formatted=formatted,
    )


def next_revision(folder: Path = TENANT) -> str:
    """Name the revision after the newest: its letter and number go on, as in t0003, t0004."""
    return revision_after(revisions(folder)[-1])


def revision_after(revision: str) -> str:
    """Name the revision after another."""
    return f"{revision[0]}{int(revision[1:]) + 1:04}"


def slug_of(message: str) -> str:
    """Write a message as a part of a module's name: its words in ASCII, as many as fit in 40 characters.

    Raises ValueError if it has none.
    """
    plain = unicodedata.normalize("NFKD", message).encode("ascii", "ignore").decode().lower()
    slug = ""
    for word in re.findall(r"[a-z0-9]++", plain):
        longer = f"{slug}_{word}" if slug else word[:_SLUG_LENGTH]
        if len(longer) > _SLUG_LENGTH:
            break
        slug = longer
    if not slug:
        raise ValueError("a message has a letter or digit, which the file is named by")
    return slug


def _sentence(message: str) -> str:
    """Write a message as the docstring of a module."""
    text = " ".join(message.split()).replace("\\", "\\\\").replace('"', '\\"')
    return text[0].upper() + text[1:] + ("" if text[-1] in ".!?" else ".")


@dataclass(frozen=True, slots=True)
class _Draft:
    code: str = ""
    imports: tuple[str, ...] = ()
    drops: bool = False
    requires: bool = False


def _compare(connection: Connection, models: MetaData, folder: Path) -> _Draft:
    """Write the code leading from the baseline to the models."""
    transaction = connection.begin()
    try:
        schema = f"scratch_{uuid4().hex}"
        execute_script(connection, f"CREATE SCHEMA {schema}; SET LOCAL search_path TO {schema}, pg_temp")
        # The statements of the baseline, as it is up to date.
        execute_script(connection, ";\n".join(upgrade_statements(None, folder=folder)))
        context = MigrationContext.configure(
            connection,
            opts={
                "target_metadata": models,
                "compare_type": True,
                "compare_server_default": True,
                "include_object": _can_be_compared,
            },
        )
        operations: Any = produce_migrations(context, models).upgrade_ops
        return _render(operations, context)
    finally:
        transaction.rollback()


def _can_be_compared(
    compared: Any, _name: str | None, kind: str, _reflected: bool, other: Any | None
) -> bool:
    """Leave out an existing index of expressions: PostgreSQL has written them anew, in words of its own."""
    of_columns = kind != "index" or all(isinstance(part, Column) for part in compared.expressions)
    return other is None or of_columns


def _render(operations: UpgradeOps, context: MigrationContext) -> _Draft:
    if operations.is_empty():
        return _Draft()
    # Alembic's own remarks are left out.
    lines = [
        line
        for line in render_python_code(operations, migration_context=context).splitlines()
        if not line.strip().startswith("# ###")
    ]
    code = "\n".join(lines).strip()
    imports = [text for name, text in _IMPORTS if re.search(rf"\b{re.escape(name)}", code)]
    if re.search(r"\bpostgresql\.", code):
        imports.append("from sqlalchemy.dialects import postgresql")
    single = list(_single_operations(operations))
    return _Draft(
        code,
        tuple(imports),
        drops=any(isinstance(operation, DropTableOp | DropColumnOp) for operation in single),
        requires=any(
            isinstance(operation, AlterColumnOp) and operation.modify_nullable is False
            for operation in single
        ),
    )


def _single_operations(container: OpContainer) -> Iterator[MigrateOperation]:
    """List the operations of a container, and of the containers in it."""
    for operation in container.ops:
        if isinstance(operation, OpContainer):
            yield from _single_operations(operation)
        else:
            yield operation


def _format(path: Path) -> bool:
    """Format a file with ruff if it is installed; tells whether it is."""
    if find_spec("ruff") is None:
        return False
    ruff = [sys.executable, "-m", "ruff"]
    subprocess.run(  # noqa: S603
        [*ruff, "format", "--quiet", "--line-length", str(_LINE_LENGTH), str(path)], check=True
    )
    return True
