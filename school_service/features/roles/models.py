"""Permissions and roles."""

from __future__ import annotations

from uuid import UUID

from sqlalchemy import ForeignKey, Integer, String, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from school_service.core.columns import NAME_LENGTH, primary_key
from school_service.core.database import db

ADMINISTRATOR = "Administrator"


class StoredPermission(db.Model):
    """A permission that a school has: an access to a section, those of `core.permissions` and its own."""

    __tablename__ = "permissions"
    __table_args__ = (UniqueConstraint("section", "access"),)

    id: Mapped[UUID] = primary_key()
    section: Mapped[str] = mapped_column(String(NAME_LENGTH))
    access: Mapped[str] = mapped_column(String(NAME_LENGTH))

    def __str__(self) -> str:
        return f"{self.access}:{self.section}"


class Role(db.Model):
    """A named bundle of permissions, given to users."""

    __tablename__ = "roles"

    id: Mapped[UUID] = primary_key()
    name: Mapped[str] = mapped_column(String(NAME_LENGTH), unique=True)
    avatar_number: Mapped[int] = mapped_column(Integer)


class RolePermission(db.Model):
    """That a role has a permission."""

    __tablename__ = "role_permissions"

    role_id: Mapped[UUID] = mapped_column(ForeignKey("roles.id", ondelete="CASCADE"), primary_key=True)
    permission_id: Mapped[UUID] = mapped_column(
        ForeignKey("permissions.id", ondelete="CASCADE"), primary_key=True, index=True
    )
