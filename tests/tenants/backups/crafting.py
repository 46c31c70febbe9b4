"""Backups as an attacker makes them, and a record of the statements that a restore sends to PostgreSQL."""

from __future__ import annotations

import gzip
import hashlib
import json
import re
import subprocess
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from uuid import UUID

from psycopg2.extensions import cursor as Cursor  # noqa: N812
from sqlalchemy import URL, create_engine

from tenants.connections.engines import registry_url
from tenants.pg_programs import find_program
from tenants.registry.schools import School, schema_name
from tenants.tenancy import Tenancy
from tests.postgres import on_citus, test_database


def manifest_of(file: Path) -> dict:
    """Read a backup's manifest."""
    with zipfile.ZipFile(file) as archive:
        return json.loads(archive.read("manifest.json"))


def dump_of(file: Path) -> bytes:
    """Read the dump of a backup of the first format."""
    with zipfile.ZipFile(file) as archive:
        return archive.read("school.dump")


def script_of(file: Path) -> bytes:
    """Read the script of a backup."""
    with zipfile.ZipFile(file) as archive:
        return gzip.decompress(archive.read("school.sql.gz"))


def with_dump(file: Path, dump: bytes, to: Path) -> Path:
    """Write a backup of the first format with another dump, and the manifest that fits it."""
    return _with(file, "school.dump", dump, to)


def with_script(file: Path, script: bytes, to: Path) -> Path:
    """Write a backup with another script, and the manifest that fits it."""
    return _with(file, "school.sql.gz", gzip.compress(script, compresslevel=1), to)


def _with(file: Path, member: str, content: bytes, to: Path) -> Path:
    manifest = {
        **manifest_of(file),
        "size": len(content),
        "sha256": hashlib.sha256(content).hexdigest(),
    }
    with zipfile.ZipFile(to, "w") as archive:
        archive.writestr(member, content)
        archive.writestr("manifest.json", json.dumps(manifest))
    return to


def first_format(tenancy: Tenancy, school: School, file: Path, to: Path) -> Path:
    """Write a backup as the first releases made it, by pg_dump, of a school that `file` is a backup of."""
    dump = dumped(
        tenancy.admin_url,
        *(f"--schema={school.schema}", "--encoding=UTF8", "--no-privileges", "--no-comments"),
        *("--no-security-labels", "--no-publications"),
    )
    with_dump(file, dump, to)
    manifest = {**manifest_of(to), "format": 1, "pg_dump": find_program("pg_dump", 16).version}
    with zipfile.ZipFile(to, "w") as archive:
        archive.writestr("school.dump", dump)
        archive.writestr("manifest.json", json.dumps(manifest))
    return to


@contextmanager
def unpacked(server: URL, dump: bytes) -> Iterator[URL]:
    """Restore a dump with PostgreSQL's own program, which takes all that it holds, into a database of its own."""
    with test_database(server) as (admin, _):
        program("pg_restore", "--no-owner", f"--dbname={address(admin)}", stdin=dump, check=False)
        yield admin


@contextmanager
def copied(server: URL, original: URL, dump: bytes) -> Iterator[URL]:
    """Copy a database that a dump was unpacked into: a tenth of the cost of unpacking it again."""
    if on_citus():
        with unpacked(server, dump) as database:
            yield database
        return
    with test_database(server, locale=f"TEMPLATE {original.database}") as (admin, _):
        yield admin


def dumped(database: URL, *options: str) -> bytes:
    """Dump a database with PostgreSQL's own program, in the custom format."""
    return program("pg_dump", "--format=custom", "--no-owner", *options, f"--dbname={address(database)}")


def program(name: str, *arguments: str, stdin: bytes = b"", check: bool = True) -> bytes:
    """Run a program of PostgreSQL; answers its output."""
    path = find_program(name, 16).path
    return subprocess.run([path, *arguments], input=stdin, capture_output=True, check=check).stdout


def address(url: URL) -> str:
    """Write the address of a database for a program."""
    return url.set(drivername="postgresql").render_as_string(hide_password=False)


def patched(dump: bytes, old: str, new: str) -> bytes:
    """Put another text, filled up with blanks, in the place of one in a dump's table of contents."""
    assert len(new) <= len(old), (new, old)
    assert dump.count(old.encode()) >= 1, old
    return dump.replace(old.encode(), new.ljust(len(old)).encode())


@contextmanager
def recorded(tenancy: Tenancy) -> Iterator[tuple[Tenancy, list[str]]]:
    """Yield the same installation, and the list of the statements that its operator sends."""
    statements: list[str] = []

    class Recording(Cursor):
        def execute(self, sql, parameters=None):
            statements.append(sql)
            return super().execute(sql, parameters)

        def copy_expert(self, sql, file, size=8192):
            statements.append(sql)
            return super().copy_expert(sql, file, size)

    watched = replace(tenancy)
    watched.__dict__["admin"] = create_engine(
        registry_url(tenancy.admin_url), connect_args={"cursor_factory": Recording}, use_native_hstore=False
    )
    with watched.admin.connect():
        # Asks the server for its version, this once.
        statements.clear()
    try:
        yield watched, statements
    finally:
        watched.admin.dispose()


_ENTRY = re.compile(r'(INSERT INTO "school_X"\."audit_entries" \([^)]*\) VALUES).*', re.DOTALL)


def without_id(statements: list[str], school_id: UUID) -> list[str]:
    """Write statements as they are for any school, at any moment: without the values of the entry in its log."""
    return [
        _ENTRY.sub(r"\1", statement.replace(schema_name(school_id), "school_X").replace(str(school_id), "X"))
        for statement in statements
    ]
