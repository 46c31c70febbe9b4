"""The stored data of a person, over HTTP: told to them (GDPR, article 15; NDPA, section 34), and erased."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from flask.views import MethodView

from school_service.core.permissions import Permission
from school_service.features.people.access import needed_to_read
from school_service.features.personal_data import reads, service
from school_service.features.personal_data.schemas import (
    EmployeeDataSchema,
    GuardianDataSchema,
    StudentDataSchema,
    tables_of,
)
from school_service.web.app_state import current_principal
from school_service.web.blueprint import Blueprint
from school_service.web.operations import Run

blp = Blueprint(
    "personal-data", __name__, description="All that is stored of a person: to tell them, and to erase it."
)


@blp.route("/students/<uuid:id>/data")
class DataOfStudent(MethodView):
    """All stored data of a student."""

    @blp.requires(*needed_to_read(*tables_of(StudentDataSchema)), run=Run.AUDITED)
    @blp.returns(StudentDataSchema, tagged=False, if_empty=service.check_student)
    def get(self, id: UUID) -> Any:
        """Show all stored data of a student, with the audit log's entries on their records.

        It needs the permission of each area of the answer. Their own acts are listed by `GET /audit?actor=` with the id
        of their account.
        """
        service.record_copy(of="student", record_id=id)
        return reads.student_data(id)

    @blp.requires(Permission.STUDENTS_WRITE, Permission.USERS_WRITE)
    @blp.returns_deleted()
    def delete(self, id: UUID) -> Any:
        """Erase a student who is in no cohort: names, dates, guardian, contacts, account; results stay, without a name.

        Needs every permission that the student's account has, too. This can't be taken back; again changes nothing.
        Files of backups, and values in the audit log, are the operator's to erase: `docs/privacy.md` says how.
        """
        return service.erase_student(student_id=id, principal=current_principal())


@blp.route("/guardians/<uuid:id>/data")
class DataOfGuardian(MethodView):
    """All stored data of a guardian."""

    @blp.requires(*needed_to_read(*tables_of(GuardianDataSchema)), run=Run.AUDITED)
    @blp.returns(GuardianDataSchema, tagged=False, if_empty=service.check_guardian)
    def get(self, id: UUID) -> Any:
        """Show all stored data of a guardian: record, children, account, and the audit log's entries on them.

        Without author and reason of a stop of their access to a child. It needs the permission of each area of the
        answer. Their own acts are listed by `GET /audit?actor=` with the id of their account.
        """
        service.record_copy(of="guardian", record_id=id)
        return reads.guardian_data(id)

    @blp.requires(Permission.STUDENTS_WRITE, Permission.USERS_WRITE)
    @blp.returns_deleted()
    def delete(self, id: UUID) -> Any:
        """Erase a guardian none of whose children is enrolled: texts, children, and the account.

        The account of an employee, or of a student, stays theirs. Another's needs every permission that it has, too.
        This can't be taken back; again changes nothing. Files of backups are the operator's to erase:
        `docs/privacy.md` says how.
        """
        return service.erase_guardian(guardian_id=id, principal=current_principal())


@blp.route("/employees/<uuid:id>/data")
class DataOfEmployee(MethodView):
    """All stored data of an employee."""

    @blp.requires(*needed_to_read(*tables_of(EmployeeDataSchema)), run=Run.AUDITED)
    @blp.returns(EmployeeDataSchema, tagged=False, if_empty=service.check_employee)
    def get(self, id: UUID) -> Any:
        """Show all stored data of an employee, deleted or not, with the audit log's entries on their records.

        It needs the permission of each area of the answer. Their own acts are listed by `GET /audit?actor=` with the id
        of their account.
        """
        service.record_copy(of="employee", record_id=id)
        return reads.employee_data(id)

    @blp.requires(Permission.EMPLOYEES_WRITE, Permission.USERS_WRITE)
    @blp.returns_deleted()
    def delete(self, id: UUID) -> Any:
        """Erase an employee who is deleted: names, dates, origin, bank account, next of kin, contacts, account.

        Needs every permission that the employee's account has, too. This can't be taken back; again changes nothing.
        Files of backups, and values in the audit log, are the operator's to erase: `docs/privacy.md` says how.
        """
        return service.erase_employee(employee_id=id, principal=current_principal())
