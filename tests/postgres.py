"""The PostgreSQL that the tests run on: TEST_DATABASE_URL, or one started from a wheel for this run alone."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

from sqlalchemy import URL, create_engine, make_url, text
from sqlalchemy.exc import OperationalError

from school_service.data_folder import DataFolderError, data_folder

SETTINGS = {
    # Nothing of a test run has to survive a power cut.
    "fsync": "off",
    "synchronous_commit": "off",
    "full_page_writes": "off",
    "wal_level": "minimal",
    "max_wal_senders": "0",
    "max_wal_size": "'1GB'",
    "checkpoint_timeout": "'1h'",
    # Nor are there so many rows that it must be tidied up, which costs a process for each database.
    "autovacuum": "off",
    # Compiling a query takes longer than any query here.
    "jit": "off",
    # Each worker has an application, and tests of many requests at once.
    "max_connections": "400",
}

# A folder in memory. Each school is hundreds of files: on a disk their making and removing costs more than all else.
MEMORY = Path("/dev/shm")
SPACE = 4 * 2**30  # bytes that have to be free there; a run needs less than a quarter


class NoServer(Exception):
    """No PostgreSQL for the tests; the message says why, in one line."""


def folder_for_clusters() -> str | None:
    """Choose where temporary folders with a PostgreSQL lie: in memory where there is room; None: where all do."""
    try:
        return str(MEMORY) if shutil.disk_usage(MEMORY).free >= SPACE else None
    except OSError:
        return None


@contextmanager
def test_server() -> Iterator[URL]:
    """Yield the address of a superuser's login; raises NoServer where there is none."""
    address = os.environ.get("TEST_DATABASE_URL")
    if address:
        url = make_url(address)
        try:
            with _admin(url):
                pass
        except OperationalError as error:
            raise NoServer(f"TEST_DATABASE_URL can't be used: {str(error.orig).splitlines()[0]}") from None
        yield url
        return
    parent = folder_for_clusters()
    with tempfile.TemporaryDirectory(prefix="school-tests-", dir=parent, ignore_cleanup_errors=True) as name:
        path = Path(name)
        try:
            # Started twice: the settings take a restart.
            with (
                data_folder(path, create=True) as folder,
                _admin(make_url(folder.admin_database_url)) as connection,
            ):
                for setting, value in SETTINGS.items():
                    connection.execute(text(f"ALTER SYSTEM SET {setting} TO {value}"))
            folder_in_use = data_folder(path, create=False)
            folder = folder_in_use.__enter__()
        except DataFolderError as error:
            raise NoServer(str(error)) from None
        try:
            yield make_url(folder.admin_database_url)
        finally:
            folder_in_use.__exit__(None, None, None)


@contextmanager
def test_database(server: URL) -> Iterator[tuple[URL, URL]]:
    """Make a database and a serving login for this run; yield the addresses of admin and serving login."""
    name = f"school_tests_{uuid4().hex[:12]}"
    with _admin(server) as connection:
        # Copied as files, as there is nothing to be lost that the server's log would have to hold.
        connection.execute(text(f"CREATE DATABASE {name} STRATEGY FILE_COPY"))
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
