"""Verifying an installation, as after a recovery: roles, owner, rights, schema, revision and rows of every school.

Faults are reported, and nothing is changed. `verify` needs the login that provisions.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, text
from sqlalchemy.exc import DBAPIError

from tenants.backups.archive import Manifest, open_archive
from tenants.backups.backup_all import newest_backups
from tenants.backups.encryption import Identity
from tenants.catalogue import catalogue_of_revision, differences, read_catalogue
from tenants.connections.engines import quote_identifier, quote_literal
from tenants.driver_errors import first_line, sqlstate
from tenants.exceptions import BackupRefused, ServerAway
from tenants.migrations.migration_sql import head, revisions, upgrade_statements
from tenants.placement import Reaching
from tenants.progress import Progress, no_progress
from tenants.provisioning.ownership import is_old_owner, schema_owner
from tenants.registry.installation import check_installed
from tenants.registry.schools import School, list_schools
from tenants.relations import RELATIONS_OF_SCHEMA
from tenants.role_faults import RoleFindings, find_right_faults, find_role_faults
from tenants.tenancy import NamedDeletions, Tenancy
from tenants.wording import MOST_SAID, counted, some

_SCHEMAS = text("SELECT nspname FROM pg_namespace WHERE nspname ~ '^school_[0-9a-f]{32}$'")
_TABLES = text(
    f"SELECT c.relname FROM {RELATIONS_OF_SCHEMA} WHERE c.relkind = 'r'"  # noqa: S608
)
_OWNERSHIP, _OPTIONS = ("owner of", "rights of"), "options of"
_DELETIONS = """
SELECT entity, count(*) FILTER (WHERE action = 'delete'), count(*) FILTER (WHERE action <> 'create')
FROM {}.audit_entries WHERE at >= :since GROUP BY entity
"""
# Clocks differ, and an entry has the moment at which its request began.
_MARGIN = timedelta(minutes=10)
_DELETED_FROM = re.compile(r"\bDELETE FROM (\w++)")


@dataclass
class VerifiedSchool:
    """The findings on a school: `faults` are wrong, `notes` may be as they should be.

    `tables` are the numbers of rows by table, `backup` is the file compared with them.
    """

    school: School
    tables: dict[str, int] = field(default_factory=dict)
    backup: Path | None = None
    faults: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def as_record(self) -> dict[str, Any]:
        """The findings as an operator is shown them, ready for JSON."""
        return {
            "id": str(self.school.id),
            "name": self.school.name,
            "revision": self.school.revision,
            "rows": sum(self.tables.values()),
            "backup": None if self.backup is None else str(self.backup),
            "state": "wrong" if self.faults else "good",
            "faults": self.faults,
            "notes": self.notes,
        }


@dataclass
class Verification:
    """The findings on an installation as a whole, and on each of its schools."""

    schools: list[VerifiedSchool] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def is_good(self) -> bool:
        """Whether nothing was found wrong."""
        return not self.faults and not any(one.faults for one in self.schools)

    def as_record(self) -> dict[str, Any]:
        """The findings as an operator is shown them, ready for JSON."""
        return {
            "good": self.is_good,
            "schools": [one.as_record() for one in self.schools],
            "faults": self.faults,
            "notes": self.notes,
        }


def verify(
    tenancy: Tenancy,
    *,
    folder: Path | None = None,
    identities: Sequence[Identity] = (),
    progress: Progress = no_progress,
) -> Verification:
    """Look at every school of an installation; raises NotInstalled.

    Roles, their memberships and rights are to be those of `tenants init` and `tenants create`, a school's schema is to
    be a new school's. `folder` is the folder of `tenants backup --all`: the rows of each school are compared with the
    manifest of its newest backup, opened with the private keys `identities`. Backups are of earlier moments: other rows
    now are a note. A fault is a table that has lost more rows than were deleted since by the audit log. Of several
    servers, one that is away is a fault of each of its schools.
    """
    found = Verification()
    with tenancy.admin.connect() as connection:
        check_installed(connection)
        found.schools = [VerifiedSchool(school) for school in list_schools(connection)]
        reaching = Reaching(tenancy.placement.servers_of_schools(connection))
        schemas = set(connection.execute(_SCHEMAS).scalars())
        known = {one.school.schema for one in found.schools}
        _add(found, find_role_faults(tenancy, connection, _by_schema(found)))
        _add(found, find_right_faults(tenancy, connection, known))
    found.faults += [
        f"the schema {schema} is of no school of the registry" for schema in sorted(schemas - known)
    ]
    backups = {} if folder is None else newest_backups(folder)
    ids = {one.school.id for one in found.schools}
    found.notes += [
        f"{path} is of a school that the registry does not have: it was deleted, or is lost"
        for school_id, path in sorted(backups.items())
        if school_id not in ids
    ]
    servers = {tenancy.admin.url}
    with progress(len(found.schools)) as advance:
        for one in found.schools:
            if one.school.deletion == "begun":
                one.notes.append("it is being deleted")
            else:
                manifest = None
                if folder is not None:
                    manifest = _manifest(one, backups.get(one.school.id), identities)
                try:
                    with (
                        reaching.school(one.school.schema),
                        tenancy.placement.admin_of(tenancy.admin, one.school.id) as engine,
                        engine.connect() as connection,
                    ):
                        if engine.url not in servers:
                            servers.add(engine.url)
                            _add(found, find_role_faults(tenancy, connection, _by_schema(found)))
                        _verify(tenancy, connection, one, manifest)
                except ServerAway as error:
                    one.faults.append(str(error))
            advance(1)
    return found


def _by_schema(found: Verification) -> dict[str, School]:
    return {one.school.schema: one.school for one in found.schools}


def _add(found: Verification, more: RoleFindings) -> None:
    """Add what is found of roles; what another server has, too, is said once."""
    for one in found.schools:
        if one.school.deletion != "begun":
            _say(one.faults, more.of_schools.get(one.school.schema, ()))
    _say(found.faults, more.faults)
    _say(found.notes, more.notes)


def _say(said: list[str], more: Iterable[str]) -> None:
    said += [text for text in more if text not in said]


def _manifest(one: VerifiedSchool, backup: Path | None, identities: Sequence[Identity]) -> Manifest | None:
    """Read the manifest of a school's newest backup."""
    if backup is None:
        one.notes.append("it has no backup in this folder")
        return None
    one.backup = backup
    try:
        with open_archive(backup, identities) as archive:
            manifest = archive.manifest
    except BackupRefused as error:
        one.faults.append(f"its newest backup: {error}")
        return None
    if manifest.school_id != one.school.id:
        one.faults.append(f"its newest backup is of another school, {manifest.school_id}")
        return None
    return manifest


def _verify(tenancy: Tenancy, connection: Connection, one: VerifiedSchool, manifest: Manifest | None) -> None:
    schema = one.school.schema
    owner = schema_owner(connection, schema)
    if owner is None:
        one.faults.append(f"the schema {schema} is missing")
        return
    is_old = is_old_owner(tenancy, schema, owner)
    if is_old:
        one.faults.append(
            f"requests can become {owner}, which owns the schema: run school-service tenants migrate"
        )
    elif owner != tenancy.owner:
        one.faults.append(f"{owner} owns the schema, not {tenancy.owner}")
    _compare_schema(tenancy, connection, one, is_old=is_old)
    try:
        _become_owner(tenancy, connection, owner)
        one.tables = _count_rows(connection, schema)
        if manifest is not None:
            _compare_rows(one, manifest, _named_since(tenancy, connection, one, manifest))
    except DBAPIError as error:
        if sqlstate(error) is None:
            raise
        one.faults.append(f"its rows can't be counted: {first_line(error.orig)}")


def _compare_schema(tenancy: Tenancy, connection: Connection, one: VerifiedSchool, *, is_old: bool) -> None:
    """Compare a school's schema with a new school's; of an old owner's without owners and rights."""
    revision = one.school.revision
    if revision not in revisions(tenancy.history):
        one.faults.append(
            f"this program does not know the revision {revision}: its newest is {head(tenancy.history)}"
        )
        return
    if revision != head(tenancy.history):
        one.notes.append(f"it is behind {head(tenancy.history)}: run school-service tenants migrate")
    found = read_catalogue(connection, one.school.schema, owner=tenancy.owner)
    odd = differences(catalogue_of_revision(tenancy, revision), found)
    # How its pages are filled and tidied up is a table's own affair.
    one.notes += [said for kind, said in odd if kind == _OPTIONS]
    faults = [said for kind, said in odd if kind != _OPTIONS and not (is_old and kind.startswith(_OWNERSHIP))]
    one.faults += faults[:MOST_SAID]
    if len(faults) > MOST_SAID:
        one.faults.append(f"{len(faults) - MOST_SAID} more differences from a new school's schema")


def _become_owner(tenancy: Tenancy, connection: Connection, owner: str) -> None:
    if tenancy.becomes_roles:
        connection.exec_driver_sql(f"SET LOCAL ROLE {quote_identifier(owner)}")


def _count_rows(connection: Connection, schema: str) -> dict[str, int]:
    tables = connection.execute(_TABLES, {"schema": quote_identifier(schema)}).scalars().all()
    if not tables:
        return {}
    query = " UNION ALL ".join(
        f"SELECT {quote_literal(table)}, count(*) FROM {quote_identifier(schema)}.{quote_identifier(table)}"  # noqa: S608
        for table in sorted(tables)
    )
    rows = connection.exec_driver_sql(query, execution_options={"no_parameters": True})
    return {row[0]: row[1] for row in rows}


def named_rows(
    deletions: Mapping[str, NamedDeletions], entries: Iterable[tuple[str, int, int]]
) -> dict[str, int | None]:
    """Count by table the rows whose deletion entries name; None: any number, as an entry stands for several.

    An entry is given as its entity, with how many there are of deletions, and of changes and deletions.
    """
    deleted, changed = Counter[str](), set()
    for entity, number, any_change in entries:
        deleted[entity] = number
        changed |= {entity} if any_change else set()
    return {
        table: None if changed & {*names.some} else sum(deleted[entity] for entity in names.each)
        for table, names in deletions.items()
    }


def _named_since(
    tenancy: Tenancy, connection: Connection, one: VerifiedSchool, manifest: Manifest
) -> dict[str, int | None]:
    """Count by table the rows whose deletion is named since a backup, by the audit log; None: any number.

    Of a table that is not given, rows expire, or a migration has deleted some.
    """
    revision = one.school.revision
    statement = _DELETIONS.format(quote_identifier(one.school.schema))
    entries = connection.execute(text(statement), {"since": manifest.created_at - _MARGIN})
    named = named_rows(tenancy.deletions, [(each[0], each[1], each[2]) for each in entries])
    known = {*revisions(tenancy.history)}
    if manifest.revision < revision and {manifest.revision, revision} <= known:
        migrating = "\n".join(upgrade_statements(manifest.revision, revision, tenancy.history))
        for table in _DELETED_FROM.findall(migrating):
            named.pop(table, None)
    return named


def _compare_rows(one: VerifiedSchool, manifest: Manifest, named: Mapping[str, int | None]) -> None:
    """Compare a school's rows with those of a backup of it."""
    if manifest.revision > one.school.revision:
        one.faults.append(
            f"it is at an earlier revision than its newest backup, which is at {manifest.revision}"
        )
    changed = []
    for table, was in sorted(manifest.tables.items()):
        rows, deletions = one.tables.get(table), named.get(table)
        if rows is None:
            # Another revision may do without the table; one that it should have was missed above.
            continue
        if deletions is not None and was.rows - rows > deletions:
            one.faults.append(
                f"{table} has {counted(rows, 'row')}, and had {was.rows} in its newest backup: "
                f"{was.rows - rows - deletions} less than the audit log accounts for"
            )
        elif rows != was.rows:
            changed.append(f"{table} {rows - was.rows:+}")
    if changed:
        one.notes.append(f"rows since its newest backup: {some(changed)}")
