"""Graduates."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from sqlalchemy import ForeignKey, Integer, String
from sqlalchemy.orm import Mapped, mapped_column

from school_service.core.columns import NAME_LENGTH, created_at, primary_key
from school_service.core.database import db


class Graduate(db.Model):
    """A student who graduated, from which class; `number` counts the school's graduates without gaps."""

    __tablename__ = "graduates"

    id: Mapped[UUID] = primary_key()
    number: Mapped[int] = mapped_column(Integer, unique=True)
    student_id: Mapped[UUID] = mapped_column(ForeignKey("students.id"), unique=True)
    # A classroom's name, a space and a session's name; empty where the student was never enrolled.
    graduation_class: Mapped[str] = mapped_column(String(2 * NAME_LENGTH + 1))
    created_at: Mapped[datetime] = created_at()
