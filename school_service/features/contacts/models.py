"""Contacts."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from sqlalchemy import ForeignKey, String, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from school_service.core.columns import EMAIL_LENGTH, NAME_LENGTH, TEXT_LENGTH, created_at, primary_key
from school_service.core.database import db


class Contact(db.Model):
    """An e-mail address, phone number and postal address of the owner of a user account."""

    __tablename__ = "contacts"
    __table_args__ = (UniqueConstraint("owner_id", "email_address"),)

    id: Mapped[UUID] = primary_key()
    owner_id: Mapped[UUID] = mapped_column(ForeignKey("users.id"))
    email_address: Mapped[str] = mapped_column(String(EMAIL_LENGTH))
    phone_number: Mapped[str] = mapped_column(String(NAME_LENGTH))
    physical_address: Mapped[str] = mapped_column(String(TEXT_LENGTH))
    created_at: Mapped[datetime] = created_at()
