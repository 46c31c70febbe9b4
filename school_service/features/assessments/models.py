"""Assessments, and the submissions that hold them."""

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
    UniqueConstraint,
)
from sqlalchemy.orm import Mapped, mapped_column

from school_service.core.columns import NAME_LENGTH, POINTS, TEXT_LENGTH, created_at, primary_key
from school_service.core.database import db
from school_service.core.enumeration import Enumeration
from school_service.features.audit.models import ACTOR_LENGTH, ACTOR_NAME_LENGTH

CATEGORIES = Enumeration(
    "AssessmentCategory", "CA1", "CA2", "CA3", "EXAM", "FIRST_TERM", "SECOND_TERM", "THIRD_TERM"
)
FILE_NAME_LENGTH = 255


class Submission(db.Model):
    """That the results of a cohort subject in a term are handed in; reopening them deletes it.

    Cohort and session are the cohort subject's own. `submitted_by` is an actor as in the audit log.
    """

    __tablename__ = "submissions"
    __table_args__ = (
        UniqueConstraint("cohort_subject_id", "term_id"),
        # What is submitted are the assessments of this subject and term: they refer to all three together.
        UniqueConstraint("id", "cohort_subject_id", "term_id"),
        ForeignKeyConstraint(
            ["cohort_subject_id", "cohort_id"], ["cohort_subjects.id", "cohort_subjects.cohort_id"]
        ),
        ForeignKeyConstraint(["cohort_id", "session_id"], ["cohorts.id", "cohorts.session_id"]),
        ForeignKeyConstraint(["term_id", "session_id"], ["terms.id", "terms.session_id"]),
        Index(None, "cohort_subject_id", "cohort_id"),
        Index(None, "cohort_id", "session_id"),
        Index(None, "term_id", "session_id"),
    )

    id: Mapped[UUID] = primary_key()
    cohort_subject_id: Mapped[UUID]
    cohort_id: Mapped[UUID]
    session_id: Mapped[UUID]
    term_id: Mapped[UUID]
    submitted_at: Mapped[datetime] = mapped_column(DateTime(timezone=True))
    submitted_by: Mapped[str] = mapped_column(String(ACTOR_LENGTH))
    submitted_by_name: Mapped[str] = mapped_column(String(ACTOR_NAME_LENGTH))


class Assessment(db.Model):
    """An exam, a test or a continuous assessment of a cohort subject, in a term of the cohort's session.

    Cohort and session are the cohort subject's own. They are here so that the term is always one of that
    session, and the cohort keeps its session, whoever writes at the same time. While `submission_id` is set, nothing
    of the assessment changes, nor its scores: whoever writes them holds the row, and reads it there.
    """

    __tablename__ = "assessments"
    __table_args__ = (
        ForeignKeyConstraint(
            ["cohort_subject_id", "cohort_id"], ["cohort_subjects.id", "cohort_subjects.cohort_id"]
        ),
        ForeignKeyConstraint(["cohort_id", "session_id"], ["cohorts.id", "cohorts.session_id"]),
        ForeignKeyConstraint(["term_id", "session_id"], ["terms.id", "terms.session_id"]),
        ForeignKeyConstraint(
            ["submission_id", "cohort_subject_id", "term_id"],
            ["submissions.id", "submissions.cohort_subject_id", "submissions.term_id"],
        ),
        CheckConstraint(
            "category IN ('CA1', 'CA2', 'CA3', 'EXAM', 'FIRST_TERM', 'SECOND_TERM', 'THIRD_TERM')",
            name="category",
        ),
        CheckConstraint("total_points > 0", name="total_points"),
        Index(None, "cohort_subject_id", "cohort_id"),
        Index(None, "cohort_id", "session_id"),
        Index(None, "term_id", "session_id"),
        Index(None, "submission_id", "cohort_subject_id", "term_id"),
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
    submission_id: Mapped[UUID | None]


NOT_DELETED = Assessment.deleted_at.is_(None)
