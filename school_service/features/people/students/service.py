"""Students, each with a user account for first name, last name and gender."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any
from uuid import UUID

from sqlalchemy import exists

from school_service.auth.principal import Principal
from school_service.core.counters import STUDENTS as STUDENT_NUMBERS
from school_service.core.counters import next_numbers, numbers_taken
from school_service.core.database import db
from school_service.core.deletion import Deletion, deleting
from school_service.core.errors import Invalid, Locked
from school_service.core.read_models import fetch_document
from school_service.core.records import check_of_filters, get
from school_service.core.statements import Executable, execute, new_row
from school_service.features.audit.service import Change, audit_change, audit_changes
from school_service.features.people.access import require_to_change
from school_service.features.people.gains.service import gain_of_accounts
from school_service.features.people.guardians.of_students import Finding, remove_guardians, write_primary
from school_service.features.people.guardians.people import ERASED_STUDENT, require_results
from school_service.features.people.guardians.reads import lock as lock_guardians
from school_service.features.people.models import (
    ACTIVE,
    GRADUATED,
    STUDENTS,
    Role,
    Student,
    StudentGuardian,
    User,
    UserRole,
)
from school_service.features.people.roles.administrators import require_administrator
from school_service.features.people.roles.service import give_to_new
from school_service.features.people.students import leaving, reads
from school_service.features.people.users.service import AUDITED as AUDITED_OF_USER
from school_service.features.people.users.service import ENTITY as USER
from school_service.features.people.users.service import hash_first, new_user
from school_service.features.school.models import Batch, Cohort
from tenants.clock import now

ENTITY, CONTACT = "student", "contact"
AUDITED = frozenset({"admission_number", "status", *AUDITED_OF_USER})
"""The members of a student and their account in the audit log. Of other members it has the names of changed ones."""


@dataclass(frozen=True, slots=True)
class CreatedStudent:
    """The id of a new student, and the credentials others made for the guardian's account, if there is one."""

    id: UUID
    told: dict[str, Any] | None


def create_student(
    *,
    first_name: str,
    last_name: str,
    admission_number: str,
    middle_name: str | None = None,
    gender: str | None = None,
    dob: date | None = None,
    admitted_on: date | None = None,
    former_school: str | None = None,
    left_on: date | None = None,
    leaving_reason: str | None = None,
    guardian: Mapping[str, str | None] | None = None,
    username: str | None = None,
    password: str | None = None,
) -> CreatedStudent:
    """Add a student and a user account, named by the admission number unless a username is given.

    The guardian may be an existing person, such as a brother's or sister's. A taken admission number or username is a
    conflict, and so is a guardian with as many children as may be. Raises Invalid for a password refused by the policy,
    Forbidden if there is a password, or the guardian has an account, and the caller may not read results, Busy.
    """
    if password is not None:
        require_results("Giving a student a password")
    password_hash = hash_first(password, username=username or admission_number)
    if password is not None:
        # Asked again, since hashing has begun another transaction.
        require_results("Giving a student a password")
    # The number is the first to be stored, here and in imports: it locks the counter, the others wait for it, and none
    # deadlock.
    finding = Finding.of([guardian], numbers_taken(STUDENT_NUMBERS, 1)) if guardian else None
    number = finding.students if finding else next_numbers(STUDENT_NUMBERS)[0]
    user = new_user(
        username=username or admission_number,
        first_name=first_name,
        last_name=last_name,
        gender=gender or "",
        password_hash=password_hash,
    )
    student = new_row(
        Student,
        number=number,
        user_id=user.id,
        admission_number=admission_number,
        middle_name=middle_name or None,
        dob=dob,
        admitted_on=admitted_on,
        former_school=former_school,
        left_on=left_on,
        leaving_reason=leaving_reason,
    )
    guardians: list[Executable] = []
    if finding:
        finding.add(student.id, 0)
        finding.refuse()
        guardians = finding.store()
    told = None
    writes = user, student, *guardians, give_to_new([user.id], STUDENTS, now())
    if finding and finding.accounts:
        told = gain_of_accounts(*finding.accounts).write(*writes)
    else:
        execute(*writes)
    audit_change(ENTITY, student.id, new={"user": user.id, "admission_number": admission_number})
    return CreatedStudent(student.id, told)


def change_student(*, student_id: UUID, principal: Principal, **changes: Any) -> dict[str, Any] | None:
    """Change any of a student's members but username and password; first name, last name and gender are the account's.

    A change of these needs every permission of the user; the username stays as it is. The primary guardian is replaced
    as a whole, None takes them away; if an account gets a child, the credentials others made for it are returned. The
    date of leaving is the last day in the class, too. A taken admission number is a conflict. Raises NotFound, Invalid
    for dates in the wrong order, and for those of leaving of an ACTIVE student, Forbidden, also if an account would get
    a child, and Conflict if the status of a graduate is to change, if the student's data were erased, and for a
    guardian stopped here or with as many children as may be.
    """
    student = get(Student, student_id, for_update=True)
    if "status" in changes and student.status == GRADUATED:
        raise Locked("The student has graduated: the status can't be changed.")
    writes = _leave(student, changes)
    told = write_primary(student.id, changes.pop("guardian")) if "guardian" in changes else None
    user = get(User, student.user_id, for_update=True)
    if user.erased_at is not None:
        raise Locked(ERASED_STUDENT)
    if "gender" in changes:
        changes["gender"] = changes["gender"] or ""
    if "middle_name" in changes:
        changes["middle_name"] = changes["middle_name"] or None
    of_user = {name: changes.pop(name) for name in _OF_USER & changes.keys()}
    if any(getattr(user, name) != value for name, value in of_user.items()):
        require_to_change(principal, user.id, "Changing the name or gender of this student")
    _change(user, of_user, USER)
    _change(student, changes, ENTITY)
    db.session.flush()
    if writes:
        execute(*writes)
    return told


def _leave(student: Student, changes: dict[str, Any]) -> Sequence[Executable]:
    """Judge the dates of a student, and empty those of leaving for an ACTIVE one; returns the writes in the class."""
    if changes.get("status", student.status) == ACTIVE:
        given = [name for name in leaving.OF_LEAVING if changes.get(name) is not None]
        if given:
            raise Invalid.field(given[0], leaving.OF_LEAVERS)
        changes |= dict.fromkeys(leaving.OF_LEAVING) if "status" in changes else {}
    admitted_on, left_on = (changes.get(name, getattr(student, name)) for name in ("admitted_on", "left_on"))
    leaving.refuse_order(admitted_on, left_on, field="left_on" if changes.get("left_on") else "admitted_on")
    if left_on == student.left_on:
        return ()
    writes: list[Executable] = [leaving.forget_last_days([student.id])]
    if left_on is not None:
        opened = fetch_document(leaving.open_enrollments(student.id))["enrollments"]
        leaving.refuse_last_day(opened, left_on)
        writes += leaving.last_days({student.id: left_on}, {student.id: opened})
    return writes


def _change(record: Student | User, changes: Mapping[str, Any], entity: str) -> None:
    """Change members of a record; the audit log has the values of AUDITED, and of others the names of changed ones."""
    old = {name: getattr(record, name) for name in changes}
    changed = {name: value for name, value in changes.items() if value != old[name]}
    for name, value in changed.items():
        setattr(record, name, value)
    if changed:
        shown = AUDITED & changed.keys()
        hidden = sorted(changed.keys() - shown)
        audit_change(
            entity,
            record.id,
            old={name: old[name] for name in shown},
            new={name: changed[name] for name in shown} | ({"changed": hidden} if hidden else {}),
        )


def delete_student(*, student_id: UUID, principal: Principal) -> UUID:
    """Delete a student without a history, with the account and its contacts.

    Guardians without an account and without another child go, too. Admission number and username are free again; the
    student's number is not given anew. Raises NotFound, Forbidden if the principal lacks a permission of the account,
    and Conflict for a student with a history, such as an enrollment, and if nobody would be left with every permission.
    """
    # The guardians between the student and the account, as all do who lock them.
    record = DELETION.lock(student_id, DELETION.row_lock(student_id), lock_guardians(student_id))
    record.refuse_if_in_use()
    user_id, contacts = UUID(str(record.values["user"])), record.values.pop("contacts")
    account, has_roles = json.loads(record.values.pop("account")), record.values.pop("has_roles")
    held = require_to_change(principal, user_id, "Deleting this student") if has_roles else None
    has_guardians = record.values.pop("has_guardians")
    audit_change(ENTITY, student_id, old=record.values)
    audit_change(USER, user_id, old=account)
    audit_changes(CONTACT, [Change(UUID(contact), {"owner": user_id}, None) for contact in contacts])
    if has_guardians:
        remove_guardians(student_id)
    record.delete(*deleting(User, user_id))
    if held and held.all_of_them:
        require_administrator("Deleting this student")
    return student_id


check_student_filter = check_of_filters(batch=Batch, cohort=Cohort)


DELETION = Deletion(
    Student,
    {
        "user": Student.user_id,
        "admission_number": Student.admission_number,
        "status": Student.status,
        "account": reads.account_as_json(AUDITED_OF_USER),
        "contacts": reads.ids_of_contacts(),
        # Those that are given to all students hold nothing that another would lack.
        "has_roles": exists()
        .where(UserRole.user_id == Student.user_id, UserRole.role_id == Role.id, Role.given_to.is_(None))
        .correlate(Student),
        "has_guardians": exists().where(StudentGuardian.student_id == Student.id).correlate(Student),
    },
    account=Student.user_id,
)
_OF_USER = frozenset({"first_name", "last_name", "gender"})
