"""Employees: each with a user account, which holds first name, last name and gender."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from typing import Any
from uuid import UUID

from sqlalchemy import Uuid, column, delete, table

from school_service.core.database import db
from school_service.core.errors import Invalid
from school_service.core.records import add, find, get, get_referenced, not_found
from school_service.features.audit.service import audit_change
from school_service.features.contacts.service import create_contact
from school_service.features.employees.models import BankAccount, Employee, NextOfKin
from school_service.features.geography.service import check_origin
from school_service.features.settings.models import Department, EmployeeCategory, Position
from school_service.features.users.models import User
from school_service.features.users.service import create_named_user, delete_user
from tenants.clock import now

ENTITY = "employee"

# Form teachers stand a tier above employees; all that a deleted employee takes from them is found by name.
_form_teachers = table("form_teachers", column("employee_id", Uuid))


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

    The account has no roles and no password. `particulars` are the members that are kept as they are given.
    Raises Invalid for an unknown id, a local government area that is not in the state, and who was born after
    joining.
    """
    if dob > join_date:
        raise Invalid.field("dob", "is after join_date")
    # First, and outside of the school: nobody waits for what this transaction holds while the registry is asked.
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
    add(BankAccount(employee_id=employee.id, **bank_details))
    add(NextOfKin(employee_id=employee.id, **next_of_kin))
    audit_change(ENTITY, employee.id, new=_audited(employee, user))
    return employee


def find_employee(employee_id: UUID, *, for_update: bool = False, for_share: bool = False) -> Employee | None:
    """Find an employee, unless they are deleted; `lock` and `share` as in `get`."""
    employee = find(Employee, employee_id, for_update=for_update, for_share=for_share)
    return None if employee is None or employee.deleted_at is not None else employee


def delete_employee(*, employee_id: UUID) -> UUID:
    """Delete an employee softly, and the user account with them; they teach no batch any more. Raises NotFound."""
    employee = find_employee(employee_id, for_update=True)
    if employee is None:
        raise not_found(Employee)
    user = get(User, employee.user_id, for_update=True)
    employee.deleted_at = now()
    if user.deleted_at is None:
        delete_user(user_id=user.id)
    db.session.execute(delete(_form_teachers).where(_form_teachers.c.employee_id == employee.id))
    audit_change(ENTITY, employee.id, old=_audited(employee, user))
    return employee.id


def _audited(employee: Employee, user: User) -> dict[str, str]:
    """What the audit log holds of an employee."""
    return {
        "first_name": user.first_name,
        "middle_name": employee.middle_name,
        "last_name": user.last_name,
    }
