"""Employees, their bank accounts and next of kin."""

from __future__ import annotations

from datetime import date, datetime
from uuid import UUID

from sqlalchemy import CheckConstraint, Date, DateTime, ForeignKey, Integer, String
from sqlalchemy.orm import Mapped, mapped_column

from school_service.core.columns import NAME_LENGTH, TEXT_LENGTH, created_at, primary_key
from school_service.core.database import db


class Employee(db.Model):
    """A member of staff; first name, last name and gender are those of the user account that each has.

    State, local government area and nationality are of the reference data in the registry, which no foreign
    key reaches. A deleted employee stays stored, with the time of the deletion. Dates and origin are empty where the
    employee's data were erased, and nowhere else.
    """

    __tablename__ = "employees"
    __table_args__ = (
        CheckConstraint(
            "deleted_at IS NOT NULL OR (dob IS NOT NULL AND join_date IS NOT NULL AND lga_id IS NOT NULL"
            " AND state_id IS NOT NULL AND nationality_id IS NOT NULL)",
            name="particulars",
        ),
    )

    id: Mapped[UUID] = primary_key()
    user_id: Mapped[UUID] = mapped_column(ForeignKey("users.id"), unique=True)
    contact_id: Mapped[UUID] = mapped_column(ForeignKey("contacts.id"), unique=True)
    department_id: Mapped[UUID] = mapped_column(ForeignKey("departments.id"), index=True)
    category_id: Mapped[UUID] = mapped_column(ForeignKey("employee_categories.id"), index=True)
    position_id: Mapped[UUID] = mapped_column(ForeignKey("positions.id"), index=True)
    middle_name: Mapped[str] = mapped_column(String(NAME_LENGTH))
    title: Mapped[str] = mapped_column(String(NAME_LENGTH))
    dob: Mapped[date | None] = mapped_column(Date)
    join_date: Mapped[date | None] = mapped_column(Date)
    marital_status: Mapped[str] = mapped_column(String(NAME_LENGTH))
    blood_group: Mapped[str] = mapped_column(String(NAME_LENGTH))
    lga_id: Mapped[UUID | None]
    state_id: Mapped[UUID | None]
    nationality_id: Mapped[UUID | None]
    religion: Mapped[str] = mapped_column(String(NAME_LENGTH))
    status: Mapped[str] = mapped_column(String(NAME_LENGTH))
    created_at: Mapped[datetime] = created_at()
    deleted_at: Mapped[datetime | None] = mapped_column(DateTime(timezone=True))


NOT_DELETED = Employee.deleted_at.is_(None)


class BankAccount(db.Model):
    """The account that an employee is paid into.

    `employee_ref` and `employee_no` are stored as the client's own system gave them, and link nothing.
    """

    __tablename__ = "bank_accounts"

    id: Mapped[UUID] = primary_key()
    employee_id: Mapped[UUID] = mapped_column(ForeignKey("employees.id"), unique=True)
    bank_name: Mapped[str] = mapped_column(String(NAME_LENGTH))
    account_name: Mapped[str] = mapped_column(String(NAME_LENGTH))
    account_number: Mapped[str] = mapped_column(String(NAME_LENGTH))
    bank_sort_code: Mapped[str] = mapped_column(String(NAME_LENGTH))
    account_type: Mapped[str] = mapped_column(String(NAME_LENGTH))
    employee_no: Mapped[str] = mapped_column(String(NAME_LENGTH))
    employee_ref: Mapped[int] = mapped_column(Integer)


class NextOfKin(db.Model):
    """Whom to tell when something happens to an employee; `employee_ref` as in BankAccount."""

    __tablename__ = "next_of_kin"

    id: Mapped[UUID] = primary_key()
    employee_id: Mapped[UUID] = mapped_column(ForeignKey("employees.id"), unique=True)
    full_name: Mapped[str] = mapped_column(String(NAME_LENGTH))
    relationship: Mapped[str] = mapped_column(String(NAME_LENGTH))
    phone_number: Mapped[str] = mapped_column(String(NAME_LENGTH))
    physical_address: Mapped[str] = mapped_column(String(TEXT_LENGTH))
    employee_ref: Mapped[int] = mapped_column(Integer)
    created_at: Mapped[datetime] = created_at()


class FormTeacher(db.Model):
    """That an employee looks after a batch, and since when."""

    __tablename__ = "form_teachers"

    batch_id: Mapped[UUID] = mapped_column(ForeignKey("batches.id"), primary_key=True)
    employee_id: Mapped[UUID] = mapped_column(ForeignKey("employees.id"), primary_key=True, index=True)
    created_at: Mapped[datetime] = created_at()
