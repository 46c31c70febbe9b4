"""The tables of classes: the subjects of a cohort, and who takes them."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from sqlalchemy import Boolean, ColumnElement, ForeignKey, Table, UniqueConstraint, select
from sqlalchemy.orm import Mapped, mapped_column

from school_service.core.columns import created_at, primary_key
from school_service.core.database import db
from school_service.core.deletion import goes_with


class CohortSubject(db.Model):
    """A subject taught to a cohort: to all its students, or as an elective to those who chose it."""

    __tablename__ = "cohort_subjects"
    __table_args__ = (UniqueConstraint("cohort_id", "subject_id"), UniqueConstraint("id", "cohort_id"))

    id: Mapped[UUID] = primary_key()
    cohort_id: Mapped[UUID] = mapped_column(ForeignKey("cohorts.id"))
    subject_id: Mapped[UUID] = mapped_column(ForeignKey("subjects.id"), index=True)
    elective: Mapped[bool] = mapped_column(Boolean)


def _is_compulsory(taken: Table) -> ColumnElement[bool]:
    """Tell of a row of subject_enrollments whether nobody chose it: all of the cohort take the subject."""
    elective = select(CohortSubject.elective).where(CohortSubject.id == taken.c.cohort_subject_id)
    return ~elective.scalar_subquery()


class SubjectEnrollment(db.Model):
    """That a student takes a cohort subject now; scores refer to assessments, and outlive it."""

    __tablename__ = "subject_enrollments"

    cohort_subject_id: Mapped[UUID] = mapped_column(
        ForeignKey("cohort_subjects.id", info=goes_with(_is_compulsory)), primary_key=True
    )
    student_id: Mapped[UUID] = mapped_column(ForeignKey("students.id"), primary_key=True, index=True)
    created_at: Mapped[datetime] = created_at()
