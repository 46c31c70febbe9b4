"""User accounts."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from sqlalchemy import CheckConstraint, DateTime, ForeignKey, Integer, String, Text
from sqlalchemy.orm import Mapped, mapped_column

from school_service.core.columns import NAME_LENGTH, created_at, primary_key
from school_service.core.database import db

CREATED = 0
"""The session number of an account that nobody has signed in to, and that has been given no permission."""


class User(db.Model):
    """An account. A deleted one stays stored, with the time of its deletion, and its username stays taken.

    An erased one is deleted too: it has neither a name nor a password any more, and does not come back.
    """

    __tablename__ = "users"
    __table_args__ = (CheckConstraint("erased_at IS NULL OR deleted_at IS NOT NULL", name="erased"),)

    id: Mapped[UUID] = primary_key()
    username: Mapped[str] = mapped_column(String(NAME_LENGTH), unique=True)
    password_hash: Mapped[str | None] = mapped_column(Text)
    first_name: Mapped[str] = mapped_column(String(NAME_LENGTH))
    last_name: Mapped[str] = mapped_column(String(NAME_LENGTH))
    gender: Mapped[str] = mapped_column(String(NAME_LENGTH))
    photo: Mapped[str | None] = mapped_column(Text)
    session_number: Mapped[int] = mapped_column(Integer, default=CREATED)
    created_at: Mapped[datetime] = created_at()
    deleted_at: Mapped[datetime | None] = mapped_column(DateTime(timezone=True))
    erased_at: Mapped[datetime | None] = mapped_column(DateTime(timezone=True))


class UserRole(db.Model):
    """That a user has a role, and since when."""

    __tablename__ = "user_roles"

    user_id: Mapped[UUID] = mapped_column(ForeignKey("users.id", ondelete="CASCADE"), primary_key=True)
    role_id: Mapped[UUID] = mapped_column(ForeignKey("roles.id"), primary_key=True, index=True)
    created_at: Mapped[datetime] = created_at()
