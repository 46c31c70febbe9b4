"""Gradebook entries."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from uuid import UUID

from sqlalchemy import CheckConstraint, DateTime, ForeignKey, Index, String, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from school_service.core.columns import POINTS, created_at, primary_key
from school_service.core.database import db
from school_service.features.assessments.models import FILE_NAME_LENGTH
from tenants.clock import now


class GradebookEntry(db.Model):
    """The score of a student in an assessment, and the batch they were in when it was entered.

    `sheet` is the name of the file that the score came in; None where it was entered by hand.
    """

    __tablename__ = "gradebook_entries"
    # Lists are in order of creation, all of them or one batch's: there is an index for each.
    __table_args__ = (
        UniqueConstraint("assessment_id", "student_id"),
        CheckConstraint("score >= 0", name="score"),
        Index(None, "created_at", "id"),
        Index(None, "batch_id", "created_at", "id"),
        # Sheets change many scores at once: with room on each page a changed row stays there, and no index is
        # touched.
        {"postgresql_with": {"fillfactor": 70}},
    )

    id: Mapped[UUID] = primary_key()
    assessment_id: Mapped[UUID] = mapped_column(ForeignKey("assessments.id"))
    student_id: Mapped[UUID] = mapped_column(ForeignKey("students.id"), index=True)
    batch_id: Mapped[UUID] = mapped_column(ForeignKey("batches.id"))
    score: Mapped[Decimal] = mapped_column(POINTS)
    sheet: Mapped[str | None] = mapped_column(String(FILE_NAME_LENGTH))
    created_at: Mapped[datetime] = created_at()
    updated_at: Mapped[datetime] = mapped_column(DateTime(timezone=True), default=now)
