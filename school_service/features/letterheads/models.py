"""Letterheads and their pictures."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from sqlalchemy import (
    Boolean,
    CheckConstraint,
    ForeignKey,
    LargeBinary,
    SmallInteger,
    String,
    UniqueConstraint,
)
from sqlalchemy.orm import Mapped, mapped_column

from school_service.core.columns import EMAIL_LENGTH, NAME_LENGTH, TEXT_LENGTH, created_at, primary_key
from school_service.core.database import db
from school_service.core.enumeration import Enumeration

PNG, JPEG = "image/png", "image/jpeg"
LOGO, SIGNATURE = PICTURES = Enumeration("LetterheadPicture", "logo", "signature")
MOTTO_LENGTH = 250
WEBSITE_LENGTH = 254
MOST_BYTES = 512 * 1024  # of a picture
LEAST_PIXELS, MOST_PIXELS = 16, 2000  # a side


class Picture(db.Model):
    """A picture that is printed, known by the SHA-256 of its bytes, in hexadecimal: it never changes.

    It is there for as long as the letterhead or a publication names it; `width` and `height` are pixels.
    """

    __tablename__ = "pictures"
    __table_args__ = (
        CheckConstraint("media_type IN ('image/png', 'image/jpeg')", name="media_type"),
        CheckConstraint("width BETWEEN 16 AND 2000 AND height BETWEEN 16 AND 2000", name="size"),
    )

    id: Mapped[UUID] = primary_key()
    sha256: Mapped[str] = mapped_column(String(64), unique=True)
    media_type: Mapped[str] = mapped_column(String(20))
    width: Mapped[int] = mapped_column(SmallInteger)
    height: Mapped[int] = mapped_column(SmallInteger)
    image: Mapped[bytes] = mapped_column(LargeBinary)
    created_at: Mapped[datetime] = created_at()


class Letterhead(db.Model):
    """What stands on paper instead of the registry's details of the school; null where the registry's hold."""

    __tablename__ = "letterheads"
    __table_args__ = (UniqueConstraint("singleton"), CheckConstraint("singleton", name="singleton"))

    id: Mapped[UUID] = primary_key()
    singleton: Mapped[bool] = mapped_column(Boolean, default=True)
    name: Mapped[str | None] = mapped_column(String(NAME_LENGTH))
    address: Mapped[str | None] = mapped_column(String(TEXT_LENGTH))
    phone_number: Mapped[str | None] = mapped_column(String(NAME_LENGTH))
    email_address: Mapped[str | None] = mapped_column(String(EMAIL_LENGTH))
    website: Mapped[str | None] = mapped_column(String(WEBSITE_LENGTH))
    motto: Mapped[str | None] = mapped_column(String(MOTTO_LENGTH))
    principal_name: Mapped[str | None] = mapped_column(String(NAME_LENGTH))
    principal_title: Mapped[str | None] = mapped_column(String(NAME_LENGTH))
    logo_id: Mapped[UUID | None] = mapped_column(ForeignKey("pictures.id"), index=True)
    signature_id: Mapped[UUID | None] = mapped_column(ForeignKey("pictures.id"), index=True)
