"""The tables of scores: assessments and their submissions, gradebook entries, absences, and the bands of grades."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from uuid import UUID

from sqlalchemy import (
    ARRAY,
    Boolean,
    CheckConstraint,
    ColumnElement,
    Date,
    DateTime,
    ForeignKey,
    ForeignKeyConstraint,
    Index,
    Numeric,
    String,
    Table,
    UniqueConstraint,
    Uuid,
    func,
    literal_column,
    text,
)
from sqlalchemy.dialects.postgresql import ExcludeConstraint
from sqlalchemy.orm import Mapped, mapped_column

from school_service.core.columns import NAME_LENGTH, POINTS, TEXT_LENGTH, Enumeration, created_at, primary_key
from school_service.core.database import db
from school_service.core.deletion import goes_with
from school_service.features.audit.models import ACTOR_LENGTH, ACTOR_NAME_LENGTH
from tenants.clock import now

CATEGORIES = Enumeration(
    "AssessmentCategory", "CA1", "CA2", "CA3", "EXAM", "FIRST_TERM", "SECOND_TERM", "THIRD_TERM"
)
FILE_NAME_LENGTH = 255


class Submission(db.Model):
    """That the results of an arm in a cohort subject and term are handed in; reopening them deletes it.

    Cohort and session are the cohort subject's own. `submitted_by` is an actor as in the audit log.
    """

    __tablename__ = "submissions"
    __table_args__ = (
        UniqueConstraint("cohort_subject_id", "batch_id", "term_id"),
        ForeignKeyConstraint(
            ["cohort_subject_id", "cohort_id"], ["cohort_subjects.id", "cohort_subjects.cohort_id"]
        ),
        ForeignKeyConstraint(["batch_id", "cohort_id"], ["batches.id", "batches.cohort_id"]),
        ForeignKeyConstraint(["cohort_id", "session_id"], ["cohorts.id", "cohorts.session_id"]),
        ForeignKeyConstraint(["term_id", "session_id"], ["terms.id", "terms.session_id"]),
        Index(None, "cohort_subject_id", "cohort_id"),
        Index(None, "batch_id", "cohort_id"),
        Index(None, "cohort_id", "session_id"),
        Index(None, "term_id", "session_id"),
    )

    id: Mapped[UUID] = primary_key()
    cohort_subject_id: Mapped[UUID]
    batch_id: Mapped[UUID]
    cohort_id: Mapped[UUID]
    session_id: Mapped[UUID]
    term_id: Mapped[UUID]
    submitted_at: Mapped[datetime] = mapped_column(DateTime(timezone=True))
    submitted_by: Mapped[str] = mapped_column(String(ACTOR_LENGTH))
    submitted_by_name: Mapped[str] = mapped_column(String(ACTOR_NAME_LENGTH))


def _is_deleted(assessment: Table) -> ColumnElement[bool]:
    return assessment.c.deleted_at.is_not(None)


_DELETED_GO = goes_with(_is_deleted)
"""A deleted assessment without scores and absences is in nobody's way: it goes with what it was of."""


class Assessment(db.Model):
    """An exam, a test or a continuous assessment of a cohort subject, in a term of the cohort's session.

    Cohort and session are the cohort subject's own. They are here so that the term is always one of that session, and
    the cohort keeps its session, whoever writes at the same time. `submitted_batches` are the arms whose results of the
    subject and term are submitted: while there is any nothing of the assessment changes, nor do scores of students of
    these arms. Whoever writes them holds the row, and reads it there.
    """

    __tablename__ = "assessments"
    __table_args__ = (
        ForeignKeyConstraint(
            ["cohort_subject_id", "cohort_id"],
            ["cohort_subjects.id", "cohort_subjects.cohort_id"],
            info=_DELETED_GO,
        ),
        ForeignKeyConstraint(
            ["cohort_id", "session_id"], ["cohorts.id", "cohorts.session_id"], info=_DELETED_GO
        ),
        ForeignKeyConstraint(["term_id", "session_id"], ["terms.id", "terms.session_id"], info=_DELETED_GO),
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
    submitted_batches: Mapped[list[UUID]] = mapped_column(
        ARRAY(Uuid), default=list, server_default=text("'{}'")
    )


NOT_DELETED = Assessment.deleted_at.is_(None)


ABSENT, EXCUSED = ABSENCES = Enumeration("AbsenceStatus", "ABSENT", "EXCUSED")


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


THRESHOLD = Numeric(5, 2)


class GradeConfiguration(db.Model):
    """A band of percentages and the letter it is graded with, such as A1 from 75 to 100.

    Bands don't overlap, even where two transactions write at the same time; both thresholds are within. Between two
    bands the lower one counts: a grade is the band with the highest lower threshold that is not above the score.
    """

    __tablename__ = "grade_configurations"
    __table_args__ = (
        CheckConstraint(
            "0 <= lower_threshold AND lower_threshold <= upper_threshold AND upper_threshold <= 100",
            name="thresholds",
        ),
        ExcludeConstraint(
            (
                func.numrange(
                    literal_column("lower_threshold"),
                    literal_column("upper_threshold"),
                    literal_column("'[]'"),
                ),
                "&&",
            ),
            name="ex_grade_configurations_thresholds",
            using="gist",
        ),
    )

    id: Mapped[UUID] = primary_key()
    lower_threshold: Mapped[Decimal] = mapped_column(THRESHOLD)
    upper_threshold: Mapped[Decimal] = mapped_column(THRESHOLD)
    letter_grade: Mapped[str] = mapped_column(String(NAME_LENGTH))
    remarks: Mapped[str] = mapped_column(String(TEXT_LENGTH))

    def __str__(self) -> str:
        lower, upper = (f"{number.normalize():f}" for number in (self.lower_threshold, self.upper_threshold))
        return f"{self.letter_grade} ({lower} to {upper})"
