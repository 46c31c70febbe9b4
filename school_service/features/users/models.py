"""User accounts."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import (
    CheckConstraint,
    ColumnElement,
    DateTime,
    ForeignKey,
    Integer,
    String,
    Text,
    UniqueConstraint,
    func,
    literal,
    select,
)
from sqlalchemy.orm import Mapped, mapped_column, validates

from school_service.core.columns import NAME_LENGTH, created_at, primary_key
from school_service.core.database import db
from school_service.core.search import search_index
from school_service.features.settings.models import SchoolSettings
from school_service.features.users.usernames import username_key
from tenants.clock import now

CREATED = 0
"""The session number of an account that nobody has signed in to, and that has been given no permission."""


def _key_of_username(context: Any) -> str:
    return username_key(context.get_current_parameters()["username"])


class User(db.Model):
    """An account. A deleted one stays stored, with the time of its deletion, and its username stays taken.

    An erased one is deleted too: it has neither a name nor a password any more, and does not come back.
    `username_key` makes usernames unique without regard to case; it is made whenever the username is set.
    `password_given_at` is the moment at which somebody else made the account or set its password; null since its user
    set one.
    """

    __tablename__ = "users"
    __table_args__ = (
        CheckConstraint("erased_at IS NULL OR deleted_at IS NOT NULL", name="erased"),
        UniqueConstraint("username_key", info={"field": "username"}),
    )

    id: Mapped[UUID] = primary_key()
    username: Mapped[str] = mapped_column(String(NAME_LENGTH), unique=True)
    username_key: Mapped[str] = mapped_column(Text, default=_key_of_username)
    password_hash: Mapped[str | None] = mapped_column(Text)
    password_given_at: Mapped[datetime | None] = mapped_column(DateTime(timezone=True), default=now)
    first_name: Mapped[str] = mapped_column(String(NAME_LENGTH))
    last_name: Mapped[str] = mapped_column(String(NAME_LENGTH))
    gender: Mapped[str] = mapped_column(String(NAME_LENGTH))
    photo: Mapped[str | None] = mapped_column(Text)
    session_number: Mapped[int] = mapped_column(Integer, default=CREATED)
    created_at: Mapped[datetime] = created_at()
    deleted_at: Mapped[datetime | None] = mapped_column(DateTime(timezone=True))
    erased_at: Mapped[datetime | None] = mapped_column(DateTime(timezone=True))

    @validates("username")
    def _set_key(self, _name: str, username: str) -> str:
        self.username_key = username_key(username)
        return username


_columns = User.__table__.c
SEARCHED = _columns.username + " " + _columns.first_name + " " + _columns.last_name
"""What is searched of a user."""
search_index("ix_users_search", SEARCHED)


def must_change_password() -> ColumnElement[bool]:
    """Tell of a row of users whether its password has to be changed: given by others since the school demands that."""
    since = select(SchoolSettings.must_change_password_since).scalar_subquery()
    return func.coalesce(User.password_given_at >= since, literal(False))


class UserRole(db.Model):
    """That a user has a role, and since when."""

    __tablename__ = "user_roles"

    user_id: Mapped[UUID] = mapped_column(ForeignKey("users.id", ondelete="CASCADE"), primary_key=True)
    role_id: Mapped[UUID] = mapped_column(ForeignKey("roles.id"), primary_key=True, index=True)
    created_at: Mapped[datetime] = created_at()
