"""Scratch schemas, whose catalogues are compared."""

from __future__ import annotations

from collections.abc import Callable
from uuid import uuid4

import pytest
from sqlalchemy import Connection

from tenants.connections.engines import execute_script
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
