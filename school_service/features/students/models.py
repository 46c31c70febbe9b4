"""Students."""

from __future__ import annotations

from datetime import date, datetime
from uuid import UUID

from sqlalchemy import CheckConstraint, Date, ForeignKey, Integer, String, func
from sqlalchemy.orm import Mapped, mapped_column

from school_service.core.columns import EMAIL_LENGTH, NAME_LENGTH, created_at, primary_key
from school_service.core.database import db
from school_service.core.enumeration import Enumeration
from school_service.core.search import search_index

ACTIVE, GRADUATED, WITHDRAWN = STATUSES = Enumeration("StudentStatus", "ACTIVE", "GRADUATED", "WITHDRAWN")


class Student(db.Model):
    """A student; first name, last name and gender are those of the user account that every student has."""

    __tablename__ = "students"
    __table_args__ = (CheckConstraint("status IN ('ACTIVE', 'GRADUATED', 'WITHDRAWN')", name="status"),)

    id: Mapped[UUID] = primary_key()
    number: Mapped[int] = mapped_column(Integer, unique=True)
    user_id: Mapped[UUID] = mapped_column(ForeignKey("users.id"), unique=True)
    admission_number: Mapped[str] = mapped_column(String(NAME_LENGTH), unique=True)
    middle_name: Mapped[str | None] = mapped_column(String(NAME_LENGTH))
    dob: Mapped[date | None] = mapped_column(Date)
    status: Mapped[str] = mapped_column(String(20), default=ACTIVE, index=True)
    guardian_full_name: Mapped[str | None] = mapped_column(String(NAME_LENGTH))
    guardian_relationship: Mapped[str | None] = mapped_column(String(NAME_LENGTH))
    guardian_phone_number: Mapped[str | None] = mapped_column(String(NAME_LENGTH))
    guardian_email_address: Mapped[str | None] = mapped_column(String(EMAIL_LENGTH))
    created_at: Mapped[datetime] = created_at()

    def __str__(self) -> str:
        return student_name(self.admission_number, self.id)


_columns = Student.__table__.c
SEARCHED = _columns.admission_number + " " + func.coalesce(_columns.middle_name, "")
"""What is searched of a student's own row; the other names are the user account's."""
search_index("ix_students_search", SEARCHED)


def student_name(admission_number: str, student_id: object) -> str:
    """Name a student in a message, by admission number and id."""
    return f"{admission_number} ({student_id})"
