"""Departments, employee categories, positions and grade configurations."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from uuid import UUID

from sqlalchemy import CheckConstraint, DateTime, Numeric, String, func, literal_column
from sqlalchemy.dialects.postgresql import ExcludeConstraint
from sqlalchemy.orm import Mapped, mapped_column

from school_service.core.columns import NAME_LENGTH, TEXT_LENGTH, created_at, primary_key
from school_service.core.database import db

THRESHOLD = Numeric(5, 2)


class Department(db.Model):
    """A part of the school that employees belong to, such as Sciences."""

    __tablename__ = "departments"

    id: Mapped[UUID] = primary_key()
    name: Mapped[str] = mapped_column(String(NAME_LENGTH), unique=True)
    created_at: Mapped[datetime] = created_at()


class EmployeeCategory(db.Model):
    """A kind of employee, such as Teaching."""

    __tablename__ = "employee_categories"

    id: Mapped[UUID] = primary_key()
    name: Mapped[str] = mapped_column(String(NAME_LENGTH), unique=True)


class Position(db.Model):
    """A post that an employee holds, such as Principal."""

    __tablename__ = "positions"

    id: Mapped[UUID] = primary_key()
    name: Mapped[str] = mapped_column(String(NAME_LENGTH), unique=True)


NamedSetting = Department | EmployeeCategory | Position
"""A setting that is known by its name alone."""


class SchoolSettings(db.Model):
    """What a school has switched on; one row, which every school has from its creation.

    `must_change_password_since`: since when those whose password others gave have to change it; null: they need not.
    """

    __tablename__ = "school_settings"

    id: Mapped[UUID] = primary_key()
    must_change_password_since: Mapped[datetime | None] = mapped_column(DateTime(timezone=True))


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
