"""Verifying an installation, as after a recovery: the role, owner, grants, revision and rows of every school.

Faults are reported, and nothing is changed. `verify` needs the login that provisions.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, text
from sqlalchemy.exc import DBAPIError

from migrations.tenant import APPEND_ONLY
from tenants.backups.archive import Manifest, open_archive
from tenants.backups.backup_all import newest_backups
from tenants.backups.encryption import Identity
from tenants.backups.revision_tables import odd_parts
from tenants.connections.engines import quote_identifier, quote_literal
from tenants.driver_errors import first_line, sqlstate
from tenants.exceptions import BackupRefused
from tenants.migrations.migration_sql import head, revisions
from tenants.progress import Progress, no_progress
from tenants.provisioning.ownership import is_old_owner, schema_owner
from tenants.registry.installation import check_installed
from tenants.registry.schools import School, list_schools
from tenants.relations import RELATIONS_OF_SCHEMA
from tenants.tenancy import Tenancy
from tenants.wording import counted

_RIGHTS = frozenset({"SELECT", "INSERT", "UPDATE", "DELETE"})
_ADDING = frozenset({"SELECT", "INSERT"})
MOST_SAID = 10  # tables of a school that are named of one kind of fault

_LOGINS = text("SELECT rolname FROM pg_roles WHERE rolcanlogin AND rolname = ANY (:logins)")
_ROLE = text(
    "SELECT rolcanlogin, rolinherit, rolsuper, pg_has_role(:login, oid, 'SET') AS serves"
    " FROM pg_roles WHERE rolname = :role"
)
_SCHEMAS = text("SELECT nspname FROM pg_namespace WHERE nspname ~ '^school_[0-9a-f]{32}$'")
_USAGE = text("SELECT has_schema_privilege(:role, :schema, 'USAGE')")
_TABLES = text(
    f"SELECT c.relname, pg_get_userbyid(c.relowner) FROM {RELATIONS_OF_SCHEMA} WHERE c.relkind = 'r'"  # noqa: S608
)
# Who has which rights on a school's tables, beside their owner; 0 is everybody.
_GRANTS = text(
    f"""
    SELECT c.relname, CASE granted.grantee WHEN 0 THEN 'PUBLIC' ELSE pg_get_userbyid(granted.grantee) END,
        array_agg(granted.privilege_type)
    FROM {RELATIONS_OF_SCHEMA}, aclexplode(c.relacl) granted
    WHERE c.relkind = 'r' AND granted.grantee <> c.relowner
    GROUP BY 1, 2
    """  # noqa: S608 -- a text of our own
)


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

    `folder` is the folder of `tenants backup --all`: the rows of each school are compared with the manifest of its
    newest backup, opened with the private keys `identities`. Backups are of earlier moments: other rows now are a note.
    Faults are a table with rows in the backup and none now, and an audit log, which only grows, with fewer.
    """
    found = Verification()
    with tenancy.admin.connect() as connection:
        check_installed(connection)
        schools = list_schools(connection)
        logins = set(connection.execute(_LOGINS, {"logins": list(tenancy.placement.all_logins)}).scalars())
        schemas = set(connection.execute(_SCHEMAS).scalars())
    found.faults += [
        f"the login {login} is missing, or may not sign in: run school-service tenants init"
        for login in tenancy.placement.all_logins
        if login not in logins
    ]
    known = {school.schema for school in schools}
    found.faults += [
        f"the schema {schema} is of no school of the registry" for schema in sorted(schemas - known)
    ]
    backups = {} if folder is None else newest_backups(folder)
    ids = {school.id for school in schools}
    found.notes += [
        f"{path} is of a school that the registry does not have: it was deleted, or is lost"
        for school_id, path in sorted(backups.items())
        if school_id not in ids
    ]
    with progress(len(schools)) as advance:
        for school in schools:
            one = VerifiedSchool(school)
            found.schools.append(one)
            if school.deletion == "begun":
                one.notes.append("it is being deleted")
            else:
                _verify(tenancy, one, backups.get(school.id), identities, compare=folder is not None)
            advance(1)
    return found


def _verify(
    tenancy: Tenancy,
    one: VerifiedSchool,
    backup: Path | None,
    identities: Sequence[Identity],
    *,
    compare: bool,
) -> None:
    with tenancy.placement.admin_of(tenancy.admin, one.school.id) as engine, engine.connect() as connection:
        owner = schema_owner(connection, one.school.schema)
        if owner is None:
            one.faults.append(f"the schema {one.school.schema} is missing")
            return
        one.faults += _faults_of_role(tenancy, connection, one.school)
        one.faults += _faults_of_owner(tenancy, connection, one.school, owner)
        one.faults += _faults_of_grants(connection, one.school)
        one.faults += _faults_of_revision(tenancy, connection, one)
        try:
            one.tables = _count_rows(tenancy, connection, one.school.schema, owner)
        except DBAPIError as error:
            if sqlstate(error) is None:
                raise
            one.faults.append(f"its rows can't be counted: {first_line(error.orig)}")
            return
    if not compare:
        return
    if backup is None:
        one.notes.append("it has no backup in this folder")
        return
    one.backup = backup
    try:
        with open_archive(backup, identities) as archive:
            _compare(one, archive.manifest)
    except BackupRefused as error:
        one.faults.append(f"its newest backup: {error}")


def _faults_of_role(tenancy: Tenancy, connection: Connection, school: School) -> Iterator[str]:
    login = tenancy.placement.login_of(school.id)
    role = connection.execute(_ROLE, {"login": login, "role": school.schema}).one_or_none()
    if role is None:
        yield f"the role {school.schema} is missing: restore the server's roles (pg_dumpall --roles-only)"
        return
    if role.rolcanlogin and not tenancy.placement.roles_sign_in:
        yield f"the role {school.schema} may sign in"
    if role.rolsuper:
        yield f"the role {school.schema} is a superuser"
    if not role.serves:
        yield f"the login {login} is no member of the role {school.schema}: run school-service tenants init"


def _faults_of_owner(tenancy: Tenancy, connection: Connection, school: School, owner: str) -> Iterator[str]:
    if is_old_owner(tenancy, school.schema, owner):
        yield f"requests can become {owner}, which owns the schema: run school-service tenants migrate"
        return
    if owner != tenancy.owner:
        yield f"{owner} owns the schema, not {tenancy.owner}"
    others = [
        f"{table} ({its})"
        for table, its in connection.execute(_TABLES, {"schema": quote_identifier(school.schema)})
        if its != owner
    ]
    if others:
        yield f"tables have another owner than the schema: {_some(others)}"


def _faults_of_grants(connection: Connection, school: School) -> Iterator[str]:
    """See that the serving role has its rights on each table, no more than these, and nobody else any."""
    role = school.schema
    schema = quote_identifier(school.schema)
    of_role: dict[str, set[str]] = {}
    for table, grantee, rights in connection.execute(_GRANTS, {"schema": schema}):
        if grantee == role:
            of_role[table] = set(rights)
        else:
            yield f"{grantee} has rights on {table}: {', '.join(sorted(rights))}"
    lacking, beyond = [], []
    for table, _ in connection.execute(_TABLES, {"schema": schema}):
        wanted, has = _ADDING if table in APPEND_ONLY else _RIGHTS, of_role.get(table, set())
        lacking += [f"{table} ({', '.join(sorted(wanted - has))})"] * bool(wanted - has)
        beyond += [f"{table} ({', '.join(sorted(has - wanted))})"] * bool(has - wanted)
    if lacking:
        yield f"{role} lacks rights on {_some(lacking)}"
    if beyond:
        yield f"{role} has rights that it should not have on {_some(beyond)}"
    known = connection.execute(
        text("SELECT to_regrole(:role)"), {"role": quote_identifier(role)}
    ).scalar_one()
    if (
        known is not None
        and not connection.execute(_USAGE, {"role": role, "schema": school.schema}).scalar_one()
    ):
        yield f"{role} may not use the schema"


def _faults_of_revision(tenancy: Tenancy, connection: Connection, one: VerifiedSchool) -> Iterator[str]:
    revision = one.school.revision
    if revision not in revisions(tenancy.history):
        yield f"this program does not know the revision {revision}: its newest is {head(tenancy.history)}"
        return
    if revision != head(tenancy.history):
        one.notes.append(f"it is behind {head(tenancy.history)}: run school-service tenants migrate")
    odd = odd_parts(tenancy, connection, one.school.schema, revision)
    if odd:
        yield f"the schema is not that of its revision: {_some(odd)}"


def _count_rows(tenancy: Tenancy, connection: Connection, schema: str, owner: str) -> dict[str, int]:
    tables = [table for table, _ in connection.execute(_TABLES, {"schema": quote_identifier(schema)})]
    if not tables:
        return {}
    if tenancy.becomes_roles:
        connection.exec_driver_sql(f"SET LOCAL ROLE {quote_identifier(owner)}")
    query = " UNION ALL ".join(
        f"SELECT {quote_literal(table)}, count(*) FROM {quote_identifier(schema)}.{quote_identifier(table)}"  # noqa: S608
        for table in sorted(tables)
    )
    rows = connection.exec_driver_sql(query, execution_options={"no_parameters": True})
    return {row[0]: row[1] for row in rows}


def _compare(one: VerifiedSchool, manifest: Manifest) -> None:
    """Compare a school's rows with those of a backup of it."""
    if manifest.school_id != one.school.id:
        one.faults.append(f"its newest backup is of another school, {manifest.school_id}")
        return
    if manifest.revision > one.school.revision:
        one.faults.append(
            f"it is at an earlier revision than its newest backup, which is at {manifest.revision}"
        )
    changed = []
    for table, was in sorted(manifest.tables.items()):
        rows = one.tables.get(table)
        if rows is None:
            # Another revision may do without the table; one that it should have was missed above.
            continue
        if rows < was.rows and (rows == 0 or table in APPEND_ONLY):
            one.faults.append(f"{table} has {counted(rows, 'row')}, and had {was.rows} in its newest backup")
        elif rows != was.rows:
            changed.append(f"{table} {rows - was.rows:+}")
    if changed:
        one.notes.append(f"rows since its newest backup: {_some(changed)}")


def _some(parts: Sequence[str]) -> str:
    more = f" and {len(parts) - MOST_SAID} more" if len(parts) > MOST_SAID else ""
    return f"{', '.join(parts[:MOST_SAID])}{more}"
