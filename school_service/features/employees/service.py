"""Employees, each with a user account, which has first name, last name and gender; and form teachers."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from typing import Any
from uuid import UUID

from sqlalchemy import delete
from sqlalchemy.dialects.postgresql import insert

from school_service.auth.principal import Principal
from school_service.core.database import db
from school_service.core.errors import Invalid, NotFound
from school_service.core.records import add, find, get, get_referenced, not_found
from school_service.features.audit.service import Change, audit_change, audit_changes
from school_service.features.cohorts.models import Batch
from school_service.features.contacts.service import create_contact
from school_service.features.employees.models import BankAccount, Employee, FormTeacher, NextOfKin
from school_service.features.geography.service import check_origin
from school_service.features.settings.models import Department, EmployeeCategory, Position
from school_service.features.users.models import User
from school_service.features.users.service import create_named_user, delete_user
from tenants.clock import now

ENTITY = "employee"
FORM_TEACHER = "form-teacher"
"""What the audit log calls it that an employee is a form teacher; the id is the batch's."""


def create_employee(
    *,
    first_name: str,
    last_name: str,
    gender: str,
    dob: date,
    join_date: date,
    department: UUID,
    category: UUID,
    position: UUID,
    lga: UUID,
    state: UUID,
    nationality: UUID,
    bank_details: Mapping[str, Any],
    next_of_kin: Mapping[str, Any],
    contact: Mapping[str, Any],
    **particulars: str,
) -> Employee:
    """Add an employee with a user account, named after them, a bank account, a next of kin and a contact.

    The account has no roles and no password. `particulars` are the members that are stored as they are given.
    Raises Invalid for an unknown id, a local government area that is not in the state, and who was born after
    joining.
    """
    if dob > join_date:
        raise Invalid.field("dob", "is after join_date")
    # First, while this transaction has locked nothing: nobody waits for it while the registry is queried.
    check_origin(lga=lga, state=state, nationality=nationality)
    department_id = get_referenced(Department, department, "department").id
    category_id = get_referenced(EmployeeCategory, category, "category").id
    position_id = get_referenced(Position, position, "position").id
    user = create_named_user(first_name=first_name, last_name=last_name, gender=gender)
    employee = add(
        Employee(
            user_id=user.id,
            contact_id=create_contact(owner=user.id, **contact).id,
            department_id=department_id,
            category_id=category_id,
            position_id=position_id,
            lga_id=lga,
            state_id=state,
            nationality_id=nationality,
            dob=dob,
            join_date=join_date,
            **particulars,
        )
    )
    account = add(BankAccount(employee_id=employee.id, **bank_details))
    relative = add(NextOfKin(employee_id=employee.id, **next_of_kin))
    # Whose they are, and nothing of what they say.
    audit_change("bank-account", account.id, new={"employee": employee.id})
    audit_change("next-of-kin", relative.id, new={"employee": employee.id})
    audit_change(ENTITY, employee.id, new=_audited(employee, user))
    return employee


def find_employee(employee_id: UUID, *, for_update: bool = False, for_share: bool = False) -> Employee | None:
    """Find an employee, unless they are deleted; `for_update` and `for_share` as in `get`."""
    employee = find(Employee, employee_id, for_update=for_update, for_share=for_share)
    return None if employee is None or employee.deleted_at is not None else employee


def delete_employee(*, employee_id: UUID, principal: Principal) -> UUID:
    """Delete an employee softly, and the user account with them; they teach no batch any more.

    Raises NotFound, Forbidden where the principal lacks a permission that the user has, and Conflict where nobody
    would be left who has every permission.
    """
    employee = find_employee(employee_id, for_update=True)
    if employee is None:
        raise not_found(Employee)
    user = get(User, employee.user_id, for_update=True)
    employee.deleted_at = now()
    if user.deleted_at is None:
        delete_user(user_id=user.id, principal=principal)
    _end_teaching(FormTeacher.employee_id == employee.id)
    audit_change(ENTITY, employee.id, old=_audited(employee, user))
    return employee.id


def add_form_teacher(*, batch_id: UUID, teacher_id: UUID) -> None:
    """Make an employee a form teacher of a batch; again changes nothing, and they don't become the latest.

    Raises NotFound for an unknown batch, Invalid for an unknown employee and one whose account is deleted.
    """
    batch = get(Batch, batch_id)
    # FOR SHARE, so that neither is deleted before this is done: who is deleted teaches nobody.
    teacher = find_employee(teacher_id, for_share=True)
    if teacher is None:
        raise Invalid.field("teacher_id", "no such employee")
    if get(User, teacher.user_id, for_share=True).deleted_at is not None:
        raise Invalid.field("teacher_id", "the employee's user account is deleted")
    row = insert(FormTeacher).values(batch_id=batch.id, employee_id=teacher.id, created_at=now())
    made = row.on_conflict_do_nothing().returning(FormTeacher.employee_id)
    if db.session.execute(made).one_or_none():
        audit_change(FORM_TEACHER, batch.id, new={"teacher": teacher.id})


def remove_form_teacher(*, batch_id: UUID, teacher_id: UUID) -> UUID:
    """Let an employee be a form teacher of a batch no more; raises NotFound where they are none."""
    if not _end_teaching(FormTeacher.batch_id == batch_id, FormTeacher.employee_id == teacher_id):
        raise NotFound("The employee is no form teacher of this batch.")
    return teacher_id


def _end_teaching(*conditions: Any) -> bool:
    """Remove form teachers of batches, and tell whether there were any."""
    columns = (FormTeacher.batch_id, FormTeacher.employee_id)
    removed = db.session.execute(delete(FormTeacher).where(*conditions).returning(*columns)).all()
    audit_changes(FORM_TEACHER, [Change(row.batch_id, {"teacher": row.employee_id}, None) for row in removed])
    return bool(removed)


def _audited(employee: Employee, user: User) -> dict[str, str]:
    """What the audit log says of an employee."""
    return {
        "first_name": user.first_name,
        "middle_name": employee.middle_name,
        "last_name": user.last_name,
    }
