"""A PgBouncer in transaction mode before the tests' PostgreSQL, from the machine's own package."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import psycopg2
import pytest
from sqlalchemy import URL, make_url

ADMIN = "school_tests_bouncer"
PASSWORD = "a password"
PORT = 6432
PATIENCE = 180.0  # seconds that it may take to start, or to stop

# As docs/scaling.md recommends, but for sizes and paths.
CONFIGURATION = """
[databases]
{database} = host={host} port={port} dbname={database}

[pgbouncer]
pool_mode = transaction
default_pool_size = {pool_size}
max_client_conn = 200
auth_type = scram-sha-256
auth_file = {folder}/userlist.txt
admin_users = {admin}
listen_addr =
listen_port = {own_port}
unix_socket_dir = {folder}
logfile = {folder}/pgbouncer.log
pidfile = {folder}/pgbouncer.pid
"""


def program() -> str:
    """Find PgBouncer; skips the test where the machine has none."""
    path = shutil.which("pgbouncer", path=f"{os.environ.get('PATH', os.defpath)}:/usr/sbin")
    if path is None:
        pytest.skip("pgbouncer is not installed (Debian: apt-get install pgbouncer)")
    return path


@contextmanager
def pgbouncer(database: URL, logins: Sequence[str], pool_size: int) -> Iterator[URL]:
    """Start PgBouncer before a database; yield its address with the same login.

    Each of `logins` gets a pool of `pool_size` connections of the server's.
    """
    host = str(database.query.get("host") or database.host)

    def configuration(folder: Path) -> str:
        return CONFIGURATION.format(
            database=database.database,
            host=host,
            port=database.port or 5432,
            pool_size=pool_size,
            folder=folder,
            admin=ADMIN,
            own_port=PORT,
        )

    users = "".join(f'"{user}" "{PASSWORD}"\n' for user in (*logins, ADMIN))
    with configured_pgbouncer(configuration, users, host) as folder:
        yield database._replace(host=None, port=PORT, query={"host": str(folder)})


@contextmanager
def configured_pgbouncer(configuration: Callable[[Path], str], users: str, host: str) -> Iterator[Path]:
    """Start PgBouncer with the configuration for a folder, which has the list of users; yield the folder.

    It listens at a socket there, and ADMIN is among its `users` and its `admin_users`.
    """
    command = program()
    with tempfile.TemporaryDirectory(prefix="school-bouncer-") as name:
        folder = Path(name)
        file = folder / "pgbouncer.ini"
        file.write_text(configuration(folder))
        (folder / "userlist.txt").write_text(users)
        account = _account(host)
        if account is not None:
            for path in (folder, *folder.iterdir()):
                os.chown(path, account.pw_uid, account.pw_gid)
        identity = {} if account is None else {"user": account.pw_uid, "group": account.pw_gid}
        process = subprocess.Popen(
            [command, "--quiet", str(file)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            **identity,
        )
        try:
            address = make_url("postgresql://")._replace(port=PORT, query={"host": name})
            _wait(process, address, folder / "pgbouncer.log")
            yield folder
        finally:
            process.terminate()
            process.wait(PATIENCE)


def reconnect(address: URL) -> None:
    """Let PgBouncer use none of the server's connections again, with all that was left behind on them."""
    with _console(address) as cursor:
        cursor.execute("RECONNECT")


def is_bouncer(address: URL) -> bool:
    """Tell whether an address leads to a PgBouncer of the tests."""
    return address.port == PORT


@contextmanager
def _console(address: URL) -> Iterator[psycopg2.extensions.cursor]:
    url = address.set(drivername="postgresql", username=ADMIN, password=PASSWORD, database="pgbouncer")
    connection = psycopg2.connect(url.render_as_string(hide_password=False))
    connection.autocommit = True
    try:
        with connection.cursor() as cursor:
            yield cursor
    finally:
        connection.close()


def _wait(process: subprocess.Popen[bytes], address: URL, log: Path) -> None:
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            with _console(address):
                return
        except psycopg2.OperationalError:
            if process.poll() is not None or time.monotonic() > deadline:
                said = log.read_text() if log.exists() else "it says nothing"
                raise RuntimeError(f"PgBouncer does not answer: {said}") from None
        time.sleep(0.02)


def _account(host: str) -> pwd.struct_passwd | None:
    """Choose the account of PgBouncer, which refuses to run as root: one that may reach the server's socket."""
    if os.geteuid() != 0:
        return None
    if host.startswith("/"):
        owner = Path(host).stat().st_uid
        if owner != 0:
            return pwd.getpwuid(owner)
    return pwd.getpwnam("nobody")
