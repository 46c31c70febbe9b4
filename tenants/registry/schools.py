"""The registry: the list of schools, and of the clients permitted to enter them.

Lives in the schema `registry`, is read by the serving login role and written by the operator alone. Its statements
stand by themselves and are never joined with a school's tables.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import (
    ARRAY,
    Boolean,
    CheckConstraint,
    Column,
    Connection,
    DateTime,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    Select,
    String,
    Table,
    Text,
    Uuid,
    func,
    select,
    update,
)
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.exc import DBAPIError, IntegrityError

from tenants.driver_errors import constraint_names, sqlstate
from tenants.exceptions import AlreadyExists, NotInstalled, SchoolDeleting, UnknownSchool
from tenants.placement import Placement

# No such table, schema, function or column; permission denied.
_LACKING = {"42P01", "3F000", "42883", "42703", "42501"}

NAMING_CONVENTION = {
    "ix": "ix_%(table_name)s_%(column_0_N_name)s",
    "uq": "uq_%(table_name)s_%(column_0_N_name)s",
    "ck": "ck_%(table_name)s_%(constraint_name)s",
    "fk": "fk_%(table_name)s_%(column_0_N_name)s",
    "pk": "pk_%(table_name)s",
}

SHORT_NAME = re.compile("[a-z0-9][a-z0-9-]{1,38}[a-z0-9]")
"""A school's name in the mouths of people; no two have the same."""

metadata = MetaData(schema="registry", naming_convention=NAMING_CONVENTION)

schools = Table(
    "schools",
    metadata,
    Column("id", Uuid, primary_key=True),
    Column("name", String(120), nullable=False),
    Column("status", String(20), nullable=False),
    Column("revision", String(40), nullable=False),
    Column("address", Text),
    Column("phone_number", String(120)),
    Column("email_address", String(254)),
    Column("motto", Text),
    Column("logo_url", Text),
    Column("created_at", DateTime(timezone=True), nullable=False),
    Column("deletion", String(20)),
    Column("backup", Text),
    Column("website", Text),
    # By which people name the school when they sign in.
    Column("short_name", String(40), unique=True),
    CheckConstraint(f"short_name ~ '^{SHORT_NAME.pattern}$'", name="short_name"),
    CheckConstraint("status IN ('active', 'suspended')", name="status"),
    CheckConstraint("deletion IN ('closed', 'begun')", name="deletion"),
)

UNIQUE_SHORT_NAME = "uq_schools_short_name"
SHORT_NAME_TAKEN = "Another school has this short name."

clients = Table(
    "clients",
    metadata,
    Column("id", String(120), primary_key=True),
    Column("secret_hash", String(64)),
    Column("all_schools", Boolean, nullable=False),
    Column("all_permissions", Boolean, nullable=False),
    Column("permissions", ARRAY(Text), nullable=False),
    Column("created_at", DateTime(timezone=True), nullable=False),
    Column("revoked_at", DateTime(timezone=True)),
    # Rises when a revoked id is granted anew, or its tokens are ended: tokens issued before are refused.
    Column("session_number", Integer, nullable=False, server_default="0"),
    # Whether the addresses are believed that it tells of its end users.
    Column("tells_addresses", Boolean, nullable=False, server_default="false"),
    # By which people sign in: it has addresses to which they are led back. A public one has no secret.
    Column("redirect_uris", ARRAY(Text), nullable=False, server_default="{}"),
    Column("post_logout_uris", ARRAY(Text), nullable=False, server_default="{}"),
    Column("name", String(120)),
    Column("is_public", Boolean, nullable=False, server_default="false"),
    # The most permissions of a person's token by it; null: all of their roles, none: nothing but signing in.
    Column("user_permissions", ARRAY(Text)),
    Column("idle_days", Integer, nullable=False, server_default="14"),
    Column("session_days", Integer, nullable=False, server_default="90"),
    CheckConstraint("idle_days BETWEEN 1 AND 365", name="idle_days"),
    CheckConstraint("session_days BETWEEN 1 AND 365", name="session_days"),
)
IN_FORCE = clients.c.revoked_at.is_(None)
"""Tells whether a client is not revoked."""

client_schools = Table(
    "client_schools",
    metadata,
    Column("client_id", ForeignKey(clients.c.id, ondelete="CASCADE"), primary_key=True),
    Column("school_id", ForeignKey(schools.c.id, ondelete="CASCADE"), primary_key=True),
    Index("ix_client_schools_school_id", "school_id"),
)

# At most one for a school, of its last attempt; a school that gets to the newest revision has none.
failed_migrations = Table(
    "failed_migrations",
    metadata,
    Column("school_id", ForeignKey(schools.c.id, ondelete="CASCADE"), primary_key=True),
    Column("revision", String(40), nullable=False),
    Column("sqlstate", String(5)),
    Column("error", Text, nullable=False),
    Column("failed_at", DateTime(timezone=True), nullable=False),
)

# At most one for a school, of the newest backup that was complete, and was read again.
backups = Table(
    "backups",
    metadata,
    Column("school_id", ForeignKey(schools.c.id, ondelete="CASCADE"), primary_key=True),
    Column("taken_at", DateTime(timezone=True), nullable=False),
    Column("sha256", String(64), nullable=False),
)

# One row, made with the registry: the id that tells this installation from every other, and which new passwords it
# takes where no setting says it (None: any).
PASSWORD_POLICIES = (ANY_PASSWORD, STRICT_PASSWORDS) = ("any", "strict")
"""The policies for new passwords."""

installation = Table(
    "installation",
    metadata,
    Column("id", Uuid, primary_key=True),
    Column("password_policy", Text),
    # The release that brought the registry to its revision.
    Column("release", Text),
    CheckConstraint(f"password_policy IN {PASSWORD_POLICIES}", name="password_policy"),
)


# Programs that serve the revision `served_by`, of a school or of the registry, serve `revision`, too.
also_served = Table(
    "also_served",
    metadata,
    Column("revision", String(40), primary_key=True),
    Column("served_by", String(40), primary_key=True),
)


@dataclass(frozen=True, slots=True)
class School:
    """A tenant: its identity in the registry and the details shown to its users.

    `deletion` is set while the school is being deleted: `closed`, as long as all of it is there; `begun`, once its
    tables are being dropped. `backup` names the file of the backup made before.
    """

    id: UUID
    name: str
    status: str
    revision: str
    address: str | None
    phone_number: str | None
    email_address: str | None
    motto: str | None
    logo_url: str | None
    created_at: datetime
    deletion: str | None = None
    backup: str | None = None
    website: str | None = None
    short_name: str | None = None

    @property
    def schema(self) -> str:
        """The name of the school's schema and of its role."""
        return schema_name(self.id)

    def as_record(self) -> dict[str, Any]:
        """The school as an operator sees it, ready for JSON."""
        return {
            **asdict(self),
            "id": str(self.id),
            "status": "deleting" if self.deletion else self.status,
            "created_at": self.created_at.isoformat(),
            "schema": self.schema,
        }


def schema_name(school_id: UUID) -> str:
    """Name the schema, and the role, of a school: `school_` and the 32 hex digits of its id."""
    return f"school_{school_id.hex}"


def school_id_of(schema: str) -> UUID:
    """Tell the id of the school from the name of its schema or role."""
    return UUID(schema.removeprefix("school_"))


def find_school(connection: Connection, school_id: UUID) -> School:
    """Find a school by id; raises UnknownSchool."""
    return _find(connection, school_id, select(schools).where(schools.c.id == school_id))


def _find(connection: Connection, school_id: UUID, query: Select[Any]) -> School:
    row = connection.execute(query).one_or_none()
    if row is None:
        raise UnknownSchool(f"No school has the id {school_id}.")
    return School(**row._mapping)


def find_open_school(connection: Connection, school_id: UUID, serves: Collection[str]) -> UUID | None:
    """Find the school with this id, or, if it can't be entered, another one; None if none can be entered.

    The other one is the next by id: it answers as a school with this id would. This takes long if its tables have not
    been read for some time. `serves`: the revisions of a school's schema that the caller can work with.
    """
    can_be_entered = (
        schools.c.status == "active",
        schools.c.deletion.is_(None),
        schools.c.revision.in_(serves),
    )
    first = select(schools.c.id).where(*can_be_entered).order_by(schools.c.id).limit(1)
    following = first.where(schools.c.id >= school_id)
    open_school: UUID | None = connection.execute(
        select(func.coalesce(following.scalar_subquery(), first.scalar_subquery()))
    ).scalar_one()
    return open_school


def lock_school(connection: Connection, school_id: UUID, *, shared: bool = False) -> School:
    """Find a school, and keep it from being changed, migrated or deleted until the transaction ends.

    `shared`: FOR SHARE, compatible with other sharers; else FOR NO KEY UPDATE. Raises UnknownSchool.
    """
    rows = schools_to_lock(connection)
    # Grants that refer to the school go on: they need its key alone.
    query = select(rows).where(rows.c.id == school_id).with_for_update(read=shared, key_share=not shared)
    return _find(connection, school_id, query)


def schools_to_lock(connection: Connection) -> Table:
    """Give the operator's table for locking the row of a school: `schools`, or its copy on this server.

    The connection has the placement of the schools as an execution option (`Tenancy.admin`).
    """
    placement: Placement | None = connection.get_execution_options().get("placement")
    return schools if placement is None else placement.schools_to_lock(connection, schools)


def record_backup(connection: Connection, school_id: UUID, taken_at: datetime, sha256: str) -> None:
    """Remember a school's backup as its newest, within the connection's transaction."""
    values = {"school_id": school_id, "taken_at": taken_at, "sha256": sha256}
    connection.execute(
        insert(backups)
        .values(values)
        .on_conflict_do_update(index_elements=[backups.c.school_id], set_=values)
    )


def installation_id(connection: Connection) -> UUID:
    """Read the id of the installation, the same for all its processes. Raises NotInstalled."""
    value: UUID = _of_installation(connection, installation.c.id)
    return value


def password_policy(connection: Connection) -> str:
    """Read the installation's policy for new passwords, for use without a setting. Raises NotInstalled."""
    policy: str | None = _of_installation(connection, installation.c.password_policy)
    return policy or ANY_PASSWORD


def _of_installation(connection: Connection, column: Any) -> Any:
    try:
        return connection.execute(select(column)).scalar_one()
    except DBAPIError as error:
        if lacks_registry(error):
            raise NotInstalled from None
        raise


def list_schools(connection: Connection) -> list[School]:
    """List every school, by name."""
    rows = connection.execute(select(schools).order_by(schools.c.name, schools.c.id))
    return [School(**row._mapping) for row in rows]


def change_school(connection: Connection, school_id: UUID, **values: Any) -> School:
    """Change status, name or details of a school, within the connection's transaction.

    Raises AlreadyExists if another school has the short name. Raises UnknownSchool, and SchoolDeleting if parts of it
    are gone already.
    """
    if lock_school(connection, school_id).deletion == "begun":
        raise SchoolDeleting(
            f"The school {school_id} is being deleted: parts of it are gone. Run delete again."
        )
    try:
        connection.execute(update(schools).where(schools.c.id == school_id).values(**values))
    except IntegrityError as error:
        if UNIQUE_SHORT_NAME not in constraint_names(error):
            raise
        raise AlreadyExists(SHORT_NAME_TAKEN) from None
    return find_school(connection, school_id)


def lacks_registry(error: DBAPIError) -> bool:
    """Tell whether a statement failed because the registry is missing, too old, or closed to this login."""
    return sqlstate(error) in _LACKING and "registry" in str(error.orig)
