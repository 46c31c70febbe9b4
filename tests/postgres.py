"""The PostgreSQL that the tests run on: TEST_DATABASE_URL, or one started from a wheel for this run alone.

Or a cluster of Citus: TEST_CITUS_URL is the address of its coordinator, of a superuser who may sign in at every node,
and of a database in which Citus knows its nodes. Each installation has a database of its own on all of them.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from uuid import uuid4

import pytest
from sqlalchemy import URL, create_engine, make_url, text
from sqlalchemy.exc import OperationalError

from school_service.cli.data_folder import DataFolderError, data_folder

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
    setting = "TEST_CITUS_URL" if on_citus() else "TEST_DATABASE_URL"
    address = os.environ.get(setting)
    if address:
        url = make_url(address)
        try:
            with _admin(url) as connection:
                if (
                    on_citus()
                    and connection.execute(text("SELECT to_regclass('pg_dist_node')")).scalar() is None
                ):
                    raise NoServer(f"TEST_CITUS_URL can't be used: {url.database} has no extension citus.")
        except OperationalError as error:
            raise NoServer(f"{setting} can't be used: {str(error.orig).splitlines()[0]}") from None
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


def on_citus() -> bool:
    """Tell whether the tests run on a cluster of Citus."""
    return bool(os.environ.get("TEST_CITUS_URL"))


on_citus_alone = pytest.mark.skipif(
    not on_citus(), reason="needs a cluster of Citus: its coordinator's address as TEST_CITUS_URL"
)
on_postgresql_alone = pytest.mark.skipif(on_citus(), reason="is of PostgreSQL alone, and not of Citus")
with_one_server = pytest.mark.skipif(
    on_citus(), reason="a PgBouncer would have to stand before each node of Citus"
)


def at_schools(url: URL) -> URL:
    """Turn the address of a database of the tests into the address of the server with its schools.

    On Citus all of them are on the first worker, unless a test says otherwise.
    """
    if not on_citus():
        return url
    worker = nodes_of(make_url(os.environ["TEST_CITUS_URL"]))[1]
    return url.set(host=worker.host, port=worker.port)


def addresses(admin: URL, serving: URL) -> dict[str, str]:
    """Give the settings that name a database of the tests."""
    settings = {
        "DATABASE_URL": serving.render_as_string(hide_password=False),
        "ADMIN_DATABASE_URL": admin.render_as_string(hide_password=False),
    }
    return {**settings, "TENANT_DISTRIBUTED": "on"} if on_citus() else settings


def nodes_of(server: URL) -> list[URL]:
    """List the servers that the tests' databases are on, the coordinator first; one where there is no Citus."""
    if not on_citus():
        return [server]
    with _admin(server) as connection:
        workers = connection.execute(
            text("SELECT nodename, nodeport FROM pg_dist_node WHERE groupid <> 0 ORDER BY groupid")
        )
        return [server, *(server.set(host=host, port=port) for host, port in workers)]


@contextmanager
def test_database(server: URL, *, locale: str = "") -> Iterator[tuple[URL, URL]]:  # noqa: PT028 -- no test
    """Make a database and a serving login for this run; yield the addresses of admin and serving login.

    `locale` are options of CREATE DATABASE that choose another than the server's.
    """
    name = f"school_tests_{uuid4().hex[:12]}"
    nodes = nodes_of(server)
    admin = server.set(database=name)
    try:
        for node in nodes:
            with _admin(node) as connection:
                # Copied as files, as there is nothing to be lost that the server's log would have to hold.
                connection.execute(text(f"CREATE DATABASE {name} {locale} STRATEGY FILE_COPY"))
        if on_citus():
            _join([node.set(database=name) for node in nodes])
        yield admin, admin.set(username=f"{name}_serving", password="a password")
    finally:
        _drop(nodes, admin, name)


def _join(nodes: list[URL]) -> None:
    """Make nodes of Citus of databases: the first is its coordinator, the second has the schools.

    So requests of two schools are undone together by a test's one transaction; a test that needs another node says so.
    """
    for node in nodes:
        with _admin(node) as connection:
            connection.execute(text("CREATE EXTENSION citus"))
    with _admin(nodes[0]) as connection:
        for place, node in enumerate(nodes):
            address = {"host": node.host, "port": node.port or 5432}
            join = "citus_add_node" if place else "citus_set_coordinator_host"
            connection.execute(text(f"SELECT {join}(:host, :port)"), address)
            if place != 1:
                closing = "SELECT citus_set_node_property(:host, :port, 'shouldhaveshards', false)"
                connection.execute(text(closing), address)


def _drop(nodes: list[URL], admin: URL, name: str) -> None:
    with _admin(admin) as connection:
        has_registry = connection.execute(text("SELECT to_regclass('registry.schools') IS NOT NULL")).scalar()
        schools = (
            connection.execute(text("SELECT 'school_' || replace(id::text, '-', '') FROM registry.schools"))
            if has_registry
            else ()
        )
        roles = [row[0] for row in schools]
    with ExitStack() as stack:
        connections = [stack.enter_context(_admin(node)) for node in nodes]
        for connection in connections:
            connection.execute(text(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)"))
        for connection in connections:
            if on_citus():
                # Each node by itself: the cluster's own database need not hand it on.
                connection.execute(text("SET citus.enable_ddl_propagation TO off"))
            logins = connection.execute(
                text("SELECT rolname FROM pg_roles WHERE starts_with(rolname, :name)"),
                {"name": f"{name}_serving"},
            )
            for role in [*roles, *logins.scalars()]:
                connection.execute(text(f'DROP ROLE IF EXISTS "{role}"'))


@contextmanager
def _admin(url: URL) -> Iterator:
    engine = create_engine(
        url.set(drivername="postgresql+psycopg2"), isolation_level="AUTOCOMMIT", use_native_hstore=False
    )
    try:
        with engine.connect() as connection:
            yield connection
    finally:
        engine.dispose()
