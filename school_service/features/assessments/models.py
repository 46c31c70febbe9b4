"""Assessments."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from uuid import UUID

from sqlalchemy import (
    Boolean,
    CheckConstraint,
    Date,
    DateTime,
    ForeignKeyConstraint,
    Index,
    String,
)
from sqlalchemy.orm import Mapped, mapped_column

from school_service.core.columns import NAME_LENGTH, POINTS, TEXT_LENGTH, created_at, primary_key
from school_service.core.database import db
from school_service.core.enumeration import Enumeration

CATEGORIES = Enumeration(
    "AssessmentCategory", "CA1", "CA2", "CA3", "EXAM", "FIRST_TERM", "SECOND_TERM", "THIRD_TERM"
)
FILE_NAME_LENGTH = 255


class Assessment(db.Model):
    """An exam, a test or a continuous assessment of a cohort subject, in a term of the cohort's session.

    Cohort and session are the cohort subject's own. They are here so that the term is always one of that
    session, and the cohort keeps its session, whoever writes at the same time.
    """

    __tablename__ = "assessments"
    __table_args__ = (
        ForeignKeyConstraint(
            ["cohort_subject_id", "cohort_id"], ["cohort_subjects.id", "cohort_subjects.cohort_id"]
        ),
        ForeignKeyConstraint(["cohort_id", "session_id"], ["cohorts.id", "cohorts.session_id"]),
        ForeignKeyConstraint(["term_id", "session_id"], ["terms.id", "terms.session_id"]),
        CheckConstraint(
            "category IN ('CA1', 'CA2', 'CA3', 'EXAM', 'FIRST_TERM', 'SECOND_TERM', 'THIRD_TERM')",
            name="category",
        ),
        CheckConstraint("total_points > 0", name="total_points"),
        Index(None, "cohort_subject_id", "cohort_id"),
        Index(None, "cohort_id", "session_id"),
        Index(None, "term_id", "session_id"),
    )

    id: Mapped[UUID] = primary_key()
    cohort_subject_id: Mapped[UUID]
    cohort_id: Mapped[UUID]
    session_id: Mapped[UUID]
    term_id: Mapped[UUID]
    name: Mapped[str] = mapped_column(String(NAME_LENGTH))
    abbreviation: Mapped[str] = mapped_column(String(NAME_LENGTH))
    due_date: Mapped[date] = mapped_column(Date)
    total_points: Mapped[Decimal] = mapped_column(POINTS)
    description: Mapped[str] = mapped_column(String(TEXT_LENGTH))
    category: Mapped[str] = mapped_column(String(20))
    file_name: Mapped[str] = mapped_column(String(FILE_NAME_LENGTH))
    include_in_final: Mapped[bool] = mapped_column(Boolean)
    publish_scores: Mapped[bool] = mapped_column(Boolean)
    created_at: Mapped[datetime] = created_at()
    deleted_at: Mapped[datetime | None] = mapped_column(DateTime(timezone=True))


NOT_DELETED = Assessment.deleted_at.is_(None)
