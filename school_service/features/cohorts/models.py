"""Cohorts, batches and enrollments."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from sqlalchemy import (
    DateTime,
    ForeignKey,
    ForeignKeyConstraint,
    Index,
    Integer,
    String,
    UniqueConstraint,
    text,
)
from sqlalchemy.orm import Mapped, mapped_column

from school_service.core.columns import NAME_LENGTH, created_at, primary_key
from school_service.core.database import db

FIRST_BATCH = "A"


class Cohort(db.Model):
    """A classroom in one academic session, such as JSS 1 of 2025/2026."""

    __tablename__ = "cohorts"
    # What happened in a cohort happened in its session: other tables refer to both together, so that a cohort
    # with a history can't be moved to another session.
    __table_args__ = (UniqueConstraint("classroom_id", "session_id"), UniqueConstraint("id", "session_id"))

    id: Mapped[UUID] = primary_key()
    classroom_id: Mapped[UUID] = mapped_column(ForeignKey("classrooms.id"))
    session_id: Mapped[UUID] = mapped_column(ForeignKey("sessions.id"), index=True)


class Batch(db.Model):
    """An arm of a cohort, such as A; the first arm of a cohort has the cohort's id."""

    __tablename__ = "batches"
    __table_args__ = (UniqueConstraint("cohort_id", "name"), UniqueConstraint("id", "cohort_id"))

    id: Mapped[UUID] = primary_key()
    number: Mapped[int] = mapped_column(Integer, unique=True)
    cohort_id: Mapped[UUID] = mapped_column(ForeignKey("cohorts.id"))
    name: Mapped[str] = mapped_column(String(NAME_LENGTH))


class Enrollment(db.Model):
    """That a student is in a batch, since when and, once it has ended, until when.

    Cohort and session are the batch's own. The session is here so that a student can be in one batch of it
    at most, whoever writes at the same time.
    """

    __tablename__ = "enrollments"
    __table_args__ = (
        ForeignKeyConstraint(["batch_id", "cohort_id"], ["batches.id", "batches.cohort_id"]),
        ForeignKeyConstraint(["cohort_id", "session_id"], ["cohorts.id", "cohorts.session_id"]),
        Index(None, "student_id", "started_at"),
        Index(None, "batch_id", "cohort_id"),
        Index(None, "cohort_id", "session_id"),
    )

    id: Mapped[UUID] = primary_key()
    student_id: Mapped[UUID] = mapped_column(ForeignKey("students.id"))
    batch_id: Mapped[UUID]
    cohort_id: Mapped[UUID]
    session_id: Mapped[UUID]
    started_at: Mapped[datetime] = created_at()
    ended_at: Mapped[datetime | None] = mapped_column(DateTime(timezone=True))


CURRENT = Enrollment.ended_at.is_(None)

Index(
    "uq_enrollments_student_id_session_id",
    Enrollment.student_id,
    Enrollment.session_id,
    unique=True,
    postgresql_where=text("ended_at IS NULL"),
)
