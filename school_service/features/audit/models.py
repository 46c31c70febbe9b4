"""Entries of the audit log."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import CheckConstraint, Index, String, UniqueConstraint, text
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import Mapped, mapped_column

from school_service.core.columns import NAME_LENGTH, Enumeration, created_at
from school_service.core.database import Record
from school_service.core.facts import STAYS, differing, stored

CREATE, UPDATE, DELETE = ACTIONS = Enumeration("AuditAction", "create", "update", "delete")
ACTOR_LENGTH = 255
ACTOR_NAME_LENGTH = 2 * NAME_LENGTH + 15
ENTITY_LENGTH = 40
ADDRESS_LENGTH = 64


class AuditEntry(Record):
    """A change: its author, moment, address and request; its record; the values before and after.

    Sign-ins and exports are entries too. The serving role may add entries, and can change none.
    """

    __tablename__ = "audit_entries"
    # The log is read newest first, all of it or by one filter: there is an index for each.
    __table_args__ = (
        CheckConstraint("action IN ('create', 'update', 'delete')", name="action"),
        Index(None, "at", "id"),
        Index(None, "entity", "at", "id"),
        Index(None, "entity_id", "at", "id"),
        Index(None, "actor", "at", "id"),
        stored(
            "actors, and people of the records",
            "changes: actor, record, time, network address, the values before and after",
            (
                "to find out what happened; where users have signed in within 90 days, so that "
                "strangers who guess at a password don't lock them out"
            ),
            "read:audit",
            STAYS,
            "",
        ),
    )

    at: Mapped[datetime] = created_at()
    actor: Mapped[str] = mapped_column(String(ACTOR_LENGTH))
    actor_name: Mapped[str] = mapped_column(String(ACTOR_NAME_LENGTH))
    action: Mapped[str] = mapped_column(String(20))
    entity: Mapped[str] = mapped_column(String(ENTITY_LENGTH))
    entity_id: Mapped[UUID | None]
    old: Mapped[dict[str, Any] | None] = mapped_column(JSONB(none_as_null=True))
    new: Mapped[dict[str, Any] | None] = mapped_column(JSONB(none_as_null=True))
    request_id: Mapped[str | None] = mapped_column(String(64))
    address: Mapped[str | None] = mapped_column(String(ADDRESS_LENGTH))
    change_set: Mapped[UUID | None] = mapped_column(index=True, info=differing(told=False))


class ChangeSet(Record):
    """The changes of one transaction: the entries of the audit log with its id. It may have none.

    Writers store it without a number; readers number those committed (`features.audit.numbering`). The serving role
    may set the number, and nothing else. With `resync`, of a migration, copies of the school are to be read anew.
    """

    __tablename__ = "change_sets"
    __table_args__ = (
        UniqueConstraint("number"),
        Index(None, "at", "id", postgresql_where=text("number IS NULL")),
        Index(None, "number", postgresql_where=text("resync")),
    )

    number: Mapped[int | None]
    at: Mapped[datetime] = created_at()
    resync: Mapped[bool] = mapped_column(default=False, server_default=text("false"))
