"""The tables of classes: the subjects of a cohort, and their students."""

from __future__ import annotations

from datetime import date, datetime
from uuid import UUID

from sqlalchemy import (
    CheckConstraint,
    ColumnElement,
    ForeignKey,
    Index,
    Table,
    UniqueConstraint,
    select,
    text,
)
from sqlalchemy.orm import Mapped, mapped_column

from school_service.core.columns import Enumeration, created_at, refers_to
from school_service.core.database import Record, db
from school_service.core.deletion import goes_with
from school_service.core.facts import BY_SERVICE, STAYS, stored


class CohortSubject(Record):
    """A subject taught to a cohort: to all its students, or as an elective to those choosing it."""

    __tablename__ = "cohort_subjects"
    __table_args__ = (
        UniqueConstraint("cohort_id", "subject_id", info={"members": ("cohort_id", "subject_id")}),
        UniqueConstraint("id", "cohort_id"),
    )

    cohort_id: Mapped[UUID] = mapped_column(ForeignKey("cohorts.id"))
    subject_id: Mapped[UUID] = mapped_column(ForeignKey("subjects.id"), index=True)
    elective: Mapped[bool]


def _is_compulsory(taken: Table) -> ColumnElement[bool]:
    """Tell of a row of subject_enrollments whether nobody chose it: all of the cohort take the subject."""
    elective = select(CohortSubject.elective).where(CohortSubject.id == taken.c.cohort_subject_id)
    return ~elective.scalar_subquery()


class SubjectEnrollment(db.Model):
    """A student's present part in a cohort subject; scores refer to assessments, and outlive it."""

    __tablename__ = "subject_enrollments"
    __table_args__ = stored(
        "students",
        "classes and subjects, with when they began and ended",
        "class lists",
        "read:cohorts, read:students",
        STAYS,
        "TFSG",
    )

    cohort_subject_id: Mapped[UUID] = mapped_column(
        ForeignKey("cohort_subjects.id", info=goes_with(_is_compulsory)), primary_key=True
    )
    student_id: Mapped[UUID] = mapped_column(ForeignKey("students.id"), primary_key=True, index=True)
    created_at: Mapped[datetime] = created_at()


UNCOPIED = Enumeration("UncopiedTeacherCode", "NO_COHORT", "NO_SUBJECT", "NO_ARM", "LEFT", "ENDED")
"""Reasons against copying an assignment into another session: a record lacking there, or the employee deleted."""


class SubjectTeacher(Record):
    """The assignment of an employee to teach a cohort subject, to one batch or, with null, to all of its cohort's.

    Both dates are inclusive, and may be null: then there is no bound.
    """

    __tablename__ = "subject_teachers"
    __table_args__ = (
        *refers_to("cohort_subjects", "cohort_subject_id", "cohort_id"),
        *refers_to("batches", "batch_id", "cohort_id"),
        CheckConstraint("starts_on <= ends_on", name="dates"),
        stored(
            "employees",
            "subjects they teach, to which classes, since when and until when",
            "to know their teachers",
            "read:teachers",
            BY_SERVICE,
            "TFSG",
        ),
    )

    cohort_subject_id: Mapped[UUID]
    cohort_id: Mapped[UUID]
    batch_id: Mapped[UUID | None]
    employee_id: Mapped[UUID] = mapped_column(ForeignKey("employees.id"), index=True)
    starts_on: Mapped[date | None]
    ends_on: Mapped[date | None]
    created_at: Mapped[datetime] = created_at()


Index(
    "uq_subject_teachers_cohort_subject_id_employee_id_batch_id",
    SubjectTeacher.cohort_subject_id,
    SubjectTeacher.employee_id,
    SubjectTeacher.batch_id,
    unique=True,
    postgresql_where=text("batch_id IS NOT NULL"),
)
Index(
    "uq_subject_teachers_cohort_subject_id_employee_id",
    SubjectTeacher.cohort_subject_id,
    SubjectTeacher.employee_id,
    unique=True,
    postgresql_where=text("batch_id IS NULL"),
)
