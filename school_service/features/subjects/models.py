"""Subjects."""

from __future__ import annotations

from uuid import UUID

from sqlalchemy import String
from sqlalchemy.orm import Mapped, mapped_column

from school_service.core.columns import NAME_LENGTH, primary_key
from school_service.core.database import db


class Subject(db.Model):
    """A subject of the school, such as Mathematics: a cohort subject is one of these taught to one cohort."""

    __tablename__ = "subjects"

    id: Mapped[UUID] = primary_key()
    name: Mapped[str] = mapped_column(String(NAME_LENGTH))
    code: Mapped[str] = mapped_column(String(NAME_LENGTH), unique=True)
