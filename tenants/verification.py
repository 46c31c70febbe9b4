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
        return not self.faults and not any(verified.faults for verified in self.schools)

    def as_record(self) -> dict[str, Any]:
        """The findings as an operator is shown them, ready for JSON."""
        return {
            "good": self.is_good,
            "schools": [verified.as_record() for verified in self.schools],
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
    verification = Verification()
    with tenancy.admin.connect() as connection:
        check_installed(connection)
        verification.schools = [VerifiedSchool(school) for school in list_schools(connection)]
        reaching = Reaching(tenancy.placement.servers_of_schools(connection))
        schemas = set(connection.execute(_SCHEMAS).scalars())
        known = {verified.school.schema for verified in verification.schools}
        _add(verification, find_role_faults(tenancy, connection, _by_schema(verification)))
        _add(verification, find_right_faults(tenancy, connection, known))
    verification.faults += [
        f"the schema {schema} is of no school of the registry" for schema in sorted(schemas - known)
    ]
    backups = {} if folder is None else newest_backups(folder)
    ids = {verified.school.id for verified in verification.schools}
    verification.notes += [
        f"{path} is of a school that the registry does not have: it was deleted, or is lost"
        for school_id, path in sorted(backups.items())
        if school_id not in ids
    ]
    servers = {tenancy.admin.url}
    with progress(len(verification.schools)) as advance:
        for verified in verification.schools:
            if verified.school.deletion == "begun":
                verified.notes.append("it is being deleted")
            else:
                manifest = None
                if folder is not None:
                    manifest = _manifest(verified, backups.get(verified.school.id), identities)
                try:
                    with (
                        reaching.school(verified.school.schema),
                        tenancy.placement.admin_of(tenancy.admin, verified.school.id) as engine,
                        engine.connect() as connection,
                    ):
                        if engine.url not in servers:
                            servers.add(engine.url)
                            _add(
                                verification, find_role_faults(tenancy, connection, _by_schema(verification))
                            )
                        _verify(tenancy, connection, verified, manifest)
                except ServerAway as error:
                    verified.faults.append(str(error))
            advance(1)
    return verification


def _by_schema(verification: Verification) -> dict[str, School]:
    return {verified.school.schema: verified.school for verified in verification.schools}


def _add(verification: Verification, more: RoleFindings) -> None:
    """Add the findings on roles; those of another server, too, are added once."""
    for verified in verification.schools:
        if verified.school.deletion != "begun":
            _say(verified.faults, more.of_schools.get(verified.school.schema, ()))
    _say(verification.faults, more.faults)
    _say(verification.notes, more.notes)


def _say(said: list[str], more: Iterable[str]) -> None:
    said += [text for text in more if text not in said]


def _manifest(
    verified: VerifiedSchool, backup: Path | None, identities: Sequence[Identity]
) -> Manifest | None:
    """Read the manifest of a school's newest backup."""
    if backup is None:
        verified.notes.append("it has no backup in this folder")
        return None
    verified.backup = backup
    try:
        with open_archive(backup, identities) as archive:
            manifest = archive.manifest
    except BackupRefused as error:
        verified.faults.append(f"its newest backup: {error}")
        return None
    if manifest.school_id != verified.school.id:
        verified.faults.append(f"its newest backup is of another school, {manifest.school_id}")
        return None
    return manifest


def _verify(
    tenancy: Tenancy, connection: Connection, verified: VerifiedSchool, manifest: Manifest | None
) -> None:
    schema = verified.school.schema
    owner = schema_owner(connection, schema)
    if owner is None:
        verified.faults.append(f"the schema {schema} is missing")
        return
    is_old = is_old_owner(tenancy, schema, owner)
    if is_old:
        verified.faults.append(
            f"requests can become {owner}, which owns the schema: run school-service tenants migrate"
        )
    elif owner != tenancy.owner:
        verified.faults.append(f"{owner} owns the schema, not {tenancy.owner}")
    _compare_schema(tenancy, connection, verified, is_old=is_old)
    try:
        _become_owner(tenancy, connection, owner)
        verified.tables = _count_rows(connection, schema)
        if manifest is not None:
            _compare_rows(verified, manifest, _named_since(tenancy, connection, verified, manifest))
    except DBAPIError as error:
        if sqlstate(error) is None:
            raise
        verified.faults.append(f"its rows can't be counted: {first_line(error.orig)}")


def _compare_schema(
    tenancy: Tenancy, connection: Connection, verified: VerifiedSchool, *, is_old: bool
) -> None:
    """Compare a school's schema with a new school's; of an old owner's without owners and rights."""
    revision = verified.school.revision
    if revision not in revisions(tenancy.history):
        verified.faults.append(
            f"this program does not know the revision {revision}: its newest is {head(tenancy.history)}"
        )
        return
    if revision != head(tenancy.history):
        verified.notes.append(f"it is behind {head(tenancy.history)}: run school-service tenants migrate")
    catalogue = read_catalogue(connection, verified.school.schema, owner=tenancy.owner)
    odd = differences(catalogue_of_revision(tenancy, revision), catalogue)
    # How its pages are filled and tidied up is a table's own affair.
    verified.notes += [said for kind, said in odd if kind == _OPTIONS]
    faults = [said for kind, said in odd if kind != _OPTIONS and not (is_old and kind.startswith(_OWNERSHIP))]
    verified.faults += faults[:MOST_SAID]
    if len(faults) > MOST_SAID:
        verified.faults.append(f"{len(faults) - MOST_SAID} more differences from a new school's schema")


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
    tenancy: Tenancy, connection: Connection, verified: VerifiedSchool, manifest: Manifest
) -> dict[str, int | None]:
    """Count by table the rows whose deletion is named since a backup, by the audit log; None: any number.

    Of a table that is not given, rows expire, or a migration has deleted some.
    """
    revision = verified.school.revision
    statement = _DELETIONS.format(quote_identifier(verified.school.schema))
    entries = connection.execute(text(statement), {"since": manifest.created_at - _MARGIN})
    named = named_rows(tenancy.deletions, [(each[0], each[1], each[2]) for each in entries])
    if manifest.revision < revision and {manifest.revision, revision} <= {*revisions(tenancy.history)}:
        migrating = "\n".join(upgrade_statements(manifest.revision, revision, tenancy.history))
        for table in _DELETED_FROM.findall(migrating):
            named.pop(table, None)
    return named


def _compare_rows(verified: VerifiedSchool, manifest: Manifest, named: Mapping[str, int | None]) -> None:
    """Compare a school's rows with those of a backup of it."""
    if manifest.revision > verified.school.revision:
        verified.faults.append(
            f"it is at an earlier revision than its newest backup, which is at {manifest.revision}"
        )
    changed = []
    for table, was in sorted(manifest.tables.items()):
        rows, deletions = verified.tables.get(table), named.get(table)
        if rows is None:
            # Another revision may do without the table; one that it should have was missed above.
            continue
        if deletions is not None and was.rows - rows > deletions:
            verified.faults.append(
                f"{table} has {counted(rows, 'row')}, and had {was.rows} in its newest backup: "
                f"{was.rows - rows - deletions} less than the audit log accounts for"
            )
        elif rows != was.rows:
            changed.append(f"{table} {rows - was.rows:+}")
    if changed:
        verified.notes.append(f"rows since its newest backup: {some(changed)}")
