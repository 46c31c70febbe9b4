"""The registry: which schools there are, and who may enter them.

Lives in the schema `registry`, is read by the serving login role and written by the operator alone. Its
statements stand by themselves and are never joined with a school's tables.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from datetime import UTC, datetime
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
    MetaData,
    String,
    Table,
    Text,
    Uuid,
    select,
    update,
)
from sqlalchemy.exc import DBAPIError

from tenants.errors import UnknownSchool

# No such table, schema, function or column; permission denied.
_LACKING = {"42P01", "3F000", "42883", "42703", "42501"}

NAMING = {
    "ix": "ix_%(table_name)s_%(column_0_N_name)s",
    "uq": "uq_%(table_name)s_%(column_0_N_name)s",
    "ck": "ck_%(table_name)s_%(constraint_name)s",
    "fk": "fk_%(table_name)s_%(column_0_N_name)s",
    "pk": "pk_%(table_name)s",
}

metadata = MetaData(schema="registry", naming_convention=NAMING)

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
    CheckConstraint("status IN ('active', 'suspended')", name="status"),
)

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
)

client_schools = Table(
    "client_schools",
    metadata,
    Column("client_id", ForeignKey(clients.c.id, ondelete="CASCADE"), primary_key=True),
    Column("school_id", ForeignKey(schools.c.id, ondelete="CASCADE"), primary_key=True),
    Index("ix_client_schools_school_id", "school_id"),
)


@dataclass(frozen=True, slots=True)
class School:
    """A tenant: its identity in the registry and what is shown of it to its users."""

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

    @property
    def schema(self) -> str:
        """The name of the school's schema and of its role."""
        return schema_of(self.id)

    def as_record(self) -> dict[str, Any]:
        """The school as an operator sees it, ready for JSON."""
        return {
            **asdict(self),
            "id": str(self.id),
            "created_at": self.created_at.isoformat(),
            "schema": self.schema,
        }


def schema_of(school_id: UUID) -> str:
    """Name the schema, and the role, of a school: `school_` and the 32 hex digits of its id."""
    return f"school_{school_id.hex}"


def find_school(connection: Connection, school_id: UUID) -> School:
    """Find a school by id; raises UnknownSchool."""
    row = connection.execute(select(schools).where(schools.c.id == school_id)).one_or_none()
    if row is None:
        raise UnknownSchool(f"No school has the id {school_id}.")
    return School(**row._mapping)


def list_schools(connection: Connection) -> list[School]:
    """List every school, by name."""
    rows = connection.execute(select(schools).order_by(schools.c.name, schools.c.id))
    return [School(**row._mapping) for row in rows]


def change_school(connection: Connection, school_id: UUID, **values: Any) -> School:
    """Change status or name of a school, within the connection's transaction; raises UnknownSchool."""
    connection.execute(update(schools).where(schools.c.id == school_id).values(**values))
    return find_school(connection, school_id)


def lacks_registry(error: DBAPIError) -> bool:
    """Tell whether a statement failed because the registry is missing, too old, or closed to this login."""
    return getattr(error.orig, "pgcode", None) in _LACKING and "registry" in str(error.orig)


def now() -> datetime:
    """The present moment; bound from Python, never the database's `now()` (a rule of sharding)."""
    return datetime.now(UTC)
