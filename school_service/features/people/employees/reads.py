"""Read models of employees, their bank accounts and next of kin."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from sqlalchemy import exists, func, select

from school_service.core.reach import Reach
from school_service.core.read_models import Query, read_model
from school_service.core.statements import lock_through
from school_service.features.people.contacts.service import or_null
from school_service.features.people.models import (
    IS_THERE,
    NOT_DELETED,
    BankAccount,
    Employee,
    FormTeacher,
    NextOfKin,
    User,
    UserRole,
)
from school_service.features.people.users.reads import photo_address
from school_service.features.reach import scopes
from school_service.features.school.models import Department, EmployeeCategory, Position

_first_role = (
    select(UserRole.role_id)
    .where(UserRole.user_id == User.id)
    .order_by(UserRole.created_at, UserRole.role_id)
    .limit(1)
    .correlate(User)
    .scalar_subquery()
)

TITLED_NAME = func.concat_ws(" ", func.nullif(Employee.title, ""), User.first_name, User.last_name)
"""An employee's name as others are told it, with the title: of joined Employee and User."""


@read_model
def employees(reach: Reach | None = None) -> Query:
    """Read model of EmployeeSchema, by name, without the deleted."""
    query = (
        select(
            Employee.id,
            User.first_name,
            Employee.middle_name,
            User.last_name,
            or_null(Employee.title),
            Employee.dob,
            Employee.join_date,
            User.gender,
            or_null(Employee.marital_status),
            Employee.department_id.label("department"),
            or_null(Employee.blood_group),
            Employee.lga_id.label("lga"),
            Employee.state_id.label("state"),
            Employee.nationality_id.label("nationality"),
            or_null(Employee.religion),
            Employee.position_id.label("position"),
            Employee.category_id.label("category"),
            or_null(Employee.status),
            BankAccount.id.label("bank_details"),
            NextOfKin.id.label("next_of_kin"),
            Employee.contact_id.label("contact"),
            User.username,
            _first_role.label("role"),
            Employee.user_id.label("user"),
        )
        .join(User, User.id == Employee.user_id)
        .join(BankAccount, BankAccount.employee_id == Employee.id)
        .join(NextOfKin, NextOfKin.employee_id == Employee.id)
        .where(NOT_DELETED)
        .order_by(User.name_sort_key, Employee.id)
    )
    return query if reach is None else query.where(scopes.is_employee(reach, Employee.id))


@read_model
def employee(employee_id: UUID, reach: Reach | None = None) -> Query:
    """Read model of EmployeeSchema, for one."""
    return employees.query(reach).where(Employee.id == employee_id)


@read_model
def bank_account(employee_id: UUID, reach: Reach | None = None) -> Query:
    """Read model of BankAccountSchema, for the employee's."""
    query = (
        select(
            BankAccount.id,
            or_null(BankAccount.bank_name),
            or_null(BankAccount.account_number),
            or_null(BankAccount.account_name),
            or_null(BankAccount.bank_sort_code),
            BankAccount.employee_id.label("employee"),
            or_null(BankAccount.account_type),
        )
        .join(Employee, Employee.id == BankAccount.employee_id)
        .where(Employee.id == employee_id, NOT_DELETED)
    )
    return query if reach is None else query.where(scopes.is_employee(reach, Employee.id))


@read_model
def next_of_kin(employee_id: UUID, reach: Reach | None = None) -> Query:
    """Read model of NextOfKinSchema, for the employee's."""
    query = (
        select(
            NextOfKin.id,
            or_null(NextOfKin.full_name),
            or_null(NextOfKin.relationship),
            or_null(NextOfKin.phone_number),
            or_null(NextOfKin.physical_address),
            NextOfKin.created_at,
        )
        .join(Employee, Employee.id == NextOfKin.employee_id)
        .where(Employee.id == employee_id, NOT_DELETED)
    )
    return query if reach is None else query.where(scopes.is_employee(reach, Employee.id))


account_lock = lock_through(Employee.user_id, User)
"""Locks the user account of an employee, whose row is locked before it."""


@read_model
def bank_account_lock(employee_id: UUID) -> Query:
    """Select the id of an employee's bank account, locked FOR NO KEY UPDATE."""
    return (
        select(BankAccount.id).where(BankAccount.employee_id == employee_id).with_for_update(key_share=True)
    )


@read_model
def next_of_kin_lock(employee_id: UUID) -> Query:
    """Select the id of an employee's next of kin, locked FOR NO KEY UPDATE."""
    return select(NextOfKin.id).where(NextOfKin.employee_id == employee_id).with_for_update(key_share=True)


@read_model
def form_teachers(batch_id: UUID, reach: Reach | None = None) -> Query:
    """Read model of FormTeacherSchema for a batch, the latest first.

    Without those with a deleted user account: they are shown again when it is restored.
    """
    query = (
        select(
            FormTeacher.batch_id,
            User.first_name,
            User.last_name,
            photo_address().label("image_url"),
            FormTeacher.employee_id.label("teacher_id"),
        )
        .join(Employee, Employee.id == FormTeacher.employee_id)
        .join(User, User.id == Employee.user_id)
        .where(FormTeacher.batch_id == batch_id, IS_THERE)
        .order_by(FormTeacher.created_at.desc(), FormTeacher.employee_id.desc())
    )
    return query if reach is None else query.where(scopes.arms_in_reach(reach, FormTeacher.batch_id))


def form_teacher_of(batch_id: Any) -> Any:
    """The name of a batch's latest form teacher, with the title, for use within a statement."""
    return (
        select(TITLED_NAME)
        .select_from(FormTeacher)
        .join(Employee, Employee.id == FormTeacher.employee_id)
        .join(User, User.id == Employee.user_id)
        .where(FormTeacher.batch_id == batch_id)
        .order_by(FormTeacher.created_at.desc(), FormTeacher.employee_id.desc())
        .limit(1)
        .correlate_except(FormTeacher, Employee, User)
        .scalar_subquery()
    )


@read_model
def latest_form_teacher(batch_id: UUID, reach: Reach | None = None) -> Query:
    """Read model of FormTeacherSchema, for the latest of a batch."""
    return form_teachers.query(batch_id, reach).limit(1)


@read_model
def form_teacher(batch_id: UUID, employee_id: UUID) -> Query:
    """Read model of FormTeacherSchema, for one."""
    return form_teachers.query(batch_id).where(FormTeacher.employee_id == employee_id)


@read_model
def for_employee(department: UUID, category: UUID, position: UUID, stem: str) -> Query:
    """Select whether department, category and position exist, and the keys of usernames beginning with the stem.

    The stem has plain letters only.
    """
    usernames = select(func.array_agg(User.username_key)).where(User.username_key.startswith(stem))
    return select(
        exists().where(Department.id == department).label("department"),
        exists().where(EmployeeCategory.id == category).label("category"),
        exists().where(Position.id == position).label("position"),
        usernames.scalar_subquery().label("usernames"),
    )
