"""Academic sessions and terms."""

from __future__ import annotations

from datetime import date
from uuid import UUID

from sqlalchemy import Boolean, CheckConstraint, Date, ForeignKey, Index, String, UniqueConstraint, text
from sqlalchemy.orm import Mapped, mapped_column

from school_service.core.columns import NAME_LENGTH, primary_key
from school_service.core.database import db
from school_service.core.enumeration import Enumeration

TERMS = Enumeration("TermName", "FIRST", "SECOND", "THIRD")


class AcademicSession(db.Model):
    """An academic session, such as 2025/2026; at most one is current."""

    __tablename__ = "sessions"
    __table_args__ = (CheckConstraint("start_date <= end_date", name="dates"),)

    id: Mapped[UUID] = primary_key()
    name: Mapped[str] = mapped_column(String(NAME_LENGTH), unique=True)
    start_date: Mapped[date] = mapped_column(Date)
    end_date: Mapped[date] = mapped_column(Date)
    current: Mapped[bool] = mapped_column(Boolean)


Index("uq_sessions_current", AcademicSession.current, unique=True, postgresql_where=text("current"))


class Term(db.Model):
    """One of the three terms of a session."""

    __tablename__ = "terms"
    __table_args__ = (
        UniqueConstraint("session_id", "term"),
        # What belongs to a term belongs to its session: other tables refer to both together.
        UniqueConstraint("id", "session_id"),
        CheckConstraint("term IN ('FIRST', 'SECOND', 'THIRD')", name="term"),
    )

    id: Mapped[UUID] = primary_key()
    session_id: Mapped[UUID] = mapped_column(ForeignKey("sessions.id"))
    term: Mapped[str] = mapped_column(String(20))
    display_name: Mapped[str] = mapped_column(String(NAME_LENGTH))
