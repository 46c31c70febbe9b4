"""Scratch schemas, whose catalogues are compared."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from uuid import uuid4

import pytest
from alembic.script import Script
from sqlalchemy import Connection

from tenants.connections.engines import execute_script
from tenants.migrations import migration_rules, migration_sql
from tests.tenants.catalogue import Catalogue, read_catalogue


@pytest.fixture
def fill(connection: Connection) -> Callable[[Callable[[], object]], Catalogue]:
    """Makes a scratch schema, fills it, and answers its catalogue."""

    def filled(work: Callable[[], object]) -> Catalogue:
        schema = f"scratch_{uuid4().hex[:8]}"
        execute_script(connection, f"CREATE SCHEMA {schema}; SET LOCAL search_path TO {schema}")
        work()
        return read_catalogue(connection, schema)

    return filled


@pytest.fixture(scope="module")
def of_no_expansion() -> Iterator[None]:
    """Judge added revisions as a release that does not expand would, whether this one does or not."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("migrations.tenant.SERVED_BY_EARLIER", ())
        yield


@pytest.fixture(scope="package", autouse=True)
def _statements_written_once() -> Iterator[None]:
    """Write the statements of a migration once for all tests: copies of a history have the same migrations."""
    write = migration_sql.script_statements
    written: dict[bytes, list[str]] = {}

    def remembered(step: Script) -> list[str]:
        text = Path(step.path).read_bytes()
        if text not in written:
            written[text] = write(step)
        return [*written[text]]

    with pytest.MonkeyPatch.context() as patch:
        for module in (migration_sql, migration_rules):
            patch.setattr(module, "script_statements", remembered)
        yield
