"""Term calendars."""

from __future__ import annotations

from datetime import date
from uuid import UUID

from sqlalchemy import CheckConstraint, Date, ForeignKey, SmallInteger, String
from sqlalchemy.orm import Mapped, mapped_column

from school_service.core.database import db

MAX_TIMES_OPENED = 400
NOTICE_LENGTH = 500


class TermCalendar(db.Model):
    """When a term begins and ends, how many times school opened in it, and what its cards tell parents."""

    __tablename__ = "term_calendars"
    __table_args__ = (
        CheckConstraint("start_date <= end_date", name="dates"),
        CheckConstraint("times_opened BETWEEN 0 AND 400", name="times_opened"),
    )

    term_id: Mapped[UUID] = mapped_column(ForeignKey("terms.id"), primary_key=True)
    start_date: Mapped[date | None] = mapped_column(Date)
    end_date: Mapped[date | None] = mapped_column(Date)
    times_opened: Mapped[int | None] = mapped_column(SmallInteger)
    next_term_begins: Mapped[date | None] = mapped_column(Date)
    notice: Mapped[str | None] = mapped_column(String(NOTICE_LENGTH))
