"""Employees, each with a user account for first name, last name and gender; and form teachers."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from typing import Any
from uuid import UUID

from sqlalchemy import delete, select
from sqlalchemy.dialects.postgresql import insert

from school_service.auth.principal import Principal
from school_service.core.database import db
from school_service.core.errors import Invalid, NotFound, Unknown
from school_service.core.read_models import fetch_row
from school_service.core.records import change, find, get, get_referenced, not_found, unknown_reference
from school_service.core.statements import NewRow, execute, new_row
from school_service.features.audit.service import Change, audit_change, audit_changes
from school_service.features.people.access import require_to_change
from school_service.features.people.contacts.service import new_contact
from school_service.features.people.employees import reads
from school_service.features.people.models import (
    NOT_DELETED,
    BankAccount,
    Employee,
    FormTeacher,
    NextOfKin,
    User,
)
from school_service.features.people.usernames import stem_of
from school_service.features.people.users.service import (
    change_account,
    create_named_user,
    delete_user,
)
from school_service.features.school.geography.service import check_origin
from school_service.features.school.models import Batch, Department, EmployeeCategory, Position
from tenants.clock import now

ENTITY = "employee"
FORM_TEACHER = "form-teacher"
"""The audit log's name of an employee's work as form teacher; the id is the batch's."""
BANK_ACCOUNT = "bank-account"
NEXT_OF_KIN = "next-of-kin"
BORN_AFTER = "is after join_date"

_OF_USER = frozenset({"first_name", "last_name", "gender"})
_SETTINGS = {"department": Department, "category": EmployeeCategory, "position": Position}
_ORIGIN = ("lga", "state", "nationality")


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
) -> NewRow:
    """Add an employee with a user account, named after them, a bank account, a next of kin and a contact.

    The account has no roles and no password. `particulars` are the members stored as they are given. Raises Invalid for
    an unknown id, a local government area outside the state, and a birth after joining.
    """
    _check_dates(dob, join_date)
    # This comes first, while the transaction has locked nothing: the registry is queried, and nobody waits meanwhile.
    check_origin(lga=lga, state=state, nationality=nationality)
    stem = stem_of(first_name, last_name)
    row = fetch_row(reads.for_employee(department, category, position, stem)) or {}
    for name, model in _SETTINGS.items():
        if not row[name]:
            raise unknown_reference(model, name)
    user_id = create_named_user(
        first_name=first_name, last_name=last_name, gender=gender, taken=row["usernames"] or ()
    )
    owned = new_contact(owner=user_id, **contact)
    employee = new_row(
        Employee,
        user_id=user_id,
        contact_id=owned.id,
        department_id=department,
        category_id=category,
        position_id=position,
        lga_id=lga,
        state_id=state,
        nationality_id=nationality,
        dob=dob,
        join_date=join_date,
        **particulars,
    )
    account = new_row(BankAccount, employee_id=employee.id, **bank_details)
    relative = new_row(NextOfKin, employee_id=employee.id, **next_of_kin)
    execute(owned, employee, account, relative)
    # The log names the employee, and nothing that the records say.
    audit_change(BANK_ACCOUNT, account.id, new={"employee": employee.id})
    audit_change(NEXT_OF_KIN, relative.id, new={"employee": employee.id})
    names = {"first_name": first_name, "middle_name": particulars["middle_name"], "last_name": last_name}
    audit_change(ENTITY, employee.id, new=names)
    return employee


def change_employee(*, employee_id: UUID, principal: Principal, **changes: Any) -> UUID:
    """Change any of an employee's members; first name, last name and gender are those of the user account.

    A change of these needs every permission of the user; the username stays. Raises NotFound, Forbidden, and Invalid
    for an unknown id, a local government area outside the state, and a birth after joining.
    """
    employee = _get_employee(employee_id)
    if not changes.keys().isdisjoint(_ORIGIN):
        # Only this employee's row is locked while the registry is queried: nobody else has to wait.
        check_origin(**{name: changes.get(name, getattr(employee, f"{name}_id")) for name in _ORIGIN})
    _check_dates(changes.get("dob", employee.dob), changes.get("join_date", employee.join_date))
    for name, model in _SETTINGS.items():
        if name in changes:
            get_referenced(model, changes[name], name)
    _change_account(employee, {name: changes[name] for name in _OF_USER & changes.keys()}, principal)
    columns = {
        f"{name}_id" if name in {*_SETTINGS, *_ORIGIN} else name: value
        for name, value in changes.items()
        if name not in _OF_USER
    }
    _change_and_audit(ENTITY, employee, columns)
    return employee.id


def change_bank_account(*, employee_id: UUID, **changes: Any) -> UUID:
    """Change any member of an employee's bank account; returns the employee's id. Raises NotFound."""
    _change_and_audit(BANK_ACCOUNT, _lock_part(BankAccount, employee_id), changes)
    return employee_id


def change_next_of_kin(*, employee_id: UUID, **changes: Any) -> UUID:
    """Change any member of an employee's next of kin; returns the employee's id. Raises NotFound."""
    _change_and_audit(NEXT_OF_KIN, _lock_part(NextOfKin, employee_id), changes)
    return employee_id


def find_employee(employee_id: UUID, *, for_update: bool = False, for_share: bool = False) -> Employee | None:
    """Find an employee, or None for an unknown or deleted one.

    `for_update` locks the row FOR NO KEY UPDATE, `for_share` FOR SHARE.
    """
    employee = find(Employee, employee_id, for_update=for_update, for_share=for_share)
    return None if employee is None or employee.deleted_at is not None else employee


def delete_employee(*, employee_id: UUID, principal: Principal) -> UUID:
    """Delete an employee softly, and the user account with them; they look after no batch any more.

    Raises NotFound, Forbidden if the principal lacks a permission of the user, and Conflict if nobody would be left
    with every permission.
    """
    employee = _get_employee(employee_id)
    user = get(User, employee.user_id, for_update=True)
    employee.deleted_at = now()
    if user.deleted_at is None:
        delete_user(user_id=user.id, principal=principal)
    _end_teaching(FormTeacher.employee_id == employee.id)
    audit_change(ENTITY, employee.id, old=_audited(employee, user))
    return employee.id


def add_form_teacher(*, batch_id: UUID, teacher_id: UUID) -> None:
    """Make an employee a form teacher of a batch; for a form teacher of it already, nothing changes.

    Raises NotFound for an unknown batch, Invalid for an unknown employee and one with a deleted account.
    """
    # Locked FOR SHARE, so that none is deleted meanwhile: a deleted employee teaches nobody.
    batch = get(Batch, batch_id, for_share=True)
    teacher = find_employee(teacher_id, for_share=True)
    if teacher is None:
        raise Invalid.field("teacher_id", Unknown("no such employee"))
    if get(User, teacher.user_id, for_share=True).deleted_at is not None:
        raise Invalid.field("teacher_id", "the employee's user account is deleted")
    row = insert(FormTeacher).values(batch_id=batch.id, employee_id=teacher.id, created_at=now())
    made = row.on_conflict_do_nothing().returning(FormTeacher.employee_id)
    if db.session.execute(made).one_or_none():
        audit_change(FORM_TEACHER, batch.id, new={"teacher": teacher.id})


def remove_form_teacher(*, batch_id: UUID, teacher_id: UUID) -> UUID:
    """Remove a form teacher from a batch; raises NotFound if the employee is none of it."""
    if not _end_teaching(FormTeacher.batch_id == batch_id, FormTeacher.employee_id == teacher_id):
        raise NotFound("The employee is no form teacher of this batch.")
    return teacher_id


def _end_teaching(*conditions: Any) -> bool:
    """Remove form teachers of batches, and tell whether there were any."""
    columns = (FormTeacher.batch_id, FormTeacher.employee_id)
    removed = db.session.execute(delete(FormTeacher).where(*conditions).returning(*columns)).all()
    audit_changes(FORM_TEACHER, [Change(row.batch_id, {"teacher": row.employee_id}, None) for row in removed])
    return bool(removed)


def _get_employee(employee_id: UUID) -> Employee:
    employee = find_employee(employee_id, for_update=True)
    if employee is None:
        raise not_found(Employee)
    return employee


def _lock_part(model: type[Any], employee_id: UUID) -> Any:
    """Lock the one record of this model for an employee, unless they are deleted; raises NotFound."""
    part = db.session.scalars(
        select(model)
        .join(Employee, Employee.id == model.employee_id)
        .where(Employee.id == employee_id, NOT_DELETED)
        .with_for_update(key_share=True, of=model)
    ).one_or_none()
    if part is None:
        raise not_found(Employee)
    return part


def _change_account(employee: Employee, names: Mapping[str, str], principal: Principal) -> None:
    if not names:
        return
    user = get(User, employee.user_id, for_update=True)
    if any(getattr(user, name) != value for name, value in names.items()):
        require_to_change(principal, user.id, "Changing the name or gender of this employee")
    change_account(user, names)


def _change_and_audit(entity: str, record: Any, changes: Mapping[str, Any]) -> None:
    _old, new = change(record, changes)
    if new:
        # The log names the members without values: the serving login could not remove values from it.
        audit_change(
            entity, record.id, old={}, new={"changed": sorted(name.removesuffix("_id") for name in new)}
        )


def _check_dates(dob: date | None, join_date: date | None) -> None:
    if dob and join_date and dob > join_date:
        raise Invalid.field("dob", BORN_AFTER)


def _audited(employee: Employee, user: User) -> dict[str, str]:
    """Name the values of an employee for the audit log."""
    return {
        "first_name": user.first_name,
        "middle_name": employee.middle_name,
        "last_name": user.last_name,
    }
