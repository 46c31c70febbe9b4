"""Classrooms."""

from __future__ import annotations

from uuid import UUID

from sqlalchemy import String
from sqlalchemy.orm import Mapped, mapped_column

from school_service.core.columns import NAME_LENGTH, primary_key
from school_service.core.database import db


class Classroom(db.Model):
    """A room of the school's structure, such as JSS 1: a cohort is one of these in one session."""

    __tablename__ = "classrooms"

    id: Mapped[UUID] = primary_key()
    name: Mapped[str] = mapped_column(String(NAME_LENGTH), unique=True)
    level: Mapped[str] = mapped_column(String(NAME_LENGTH))
