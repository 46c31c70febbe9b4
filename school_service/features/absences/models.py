"""Absences."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from sqlalchemy import CheckConstraint, ForeignKey, String
from sqlalchemy.orm import Mapped, mapped_column

from school_service.core.columns import TEXT_LENGTH, created_at
from school_service.core.database import db
from school_service.core.enumeration import Enumeration

ABSENT, EXCUSED = STATUSES = Enumeration("AbsenceStatus", "ABSENT", "EXCUSED")


class Absence(db.Model):
    """That a student was away from an assessment: ABSENT counts 0, EXCUSED counts nowhere.

    A student has an absence or a score in an assessment, or neither, never both.
    """

    __tablename__ = "absences"
    __table_args__ = (CheckConstraint("status IN ('ABSENT', 'EXCUSED')", name="status"),)

    assessment_id: Mapped[UUID] = mapped_column(ForeignKey("assessments.id"), primary_key=True)
    student_id: Mapped[UUID] = mapped_column(ForeignKey("students.id"), primary_key=True, index=True)
    status: Mapped[str] = mapped_column(String(20))
    note: Mapped[str | None] = mapped_column(String(TEXT_LENGTH))
    created_at: Mapped[datetime] = created_at()
