"""Employees and form teachers over HTTP."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from flask.views import MethodView
from werkzeug.datastructures import FileStorage

from school_service.core.permissions import Permission
from school_service.core.reach import related
from school_service.core.statements import row_lock
from school_service.features.people.employees import reads, service, sheet
from school_service.features.people.employees.schemas import (
    BankAccountChangesSchema,
    BankAccountSchema,
    EmployeeChangesSchema,
    EmployeeSchema,
    FormTeacherSchema,
    NewEmployeeSchema,
    NextOfKinChangesSchema,
    NextOfKinSchema,
    TeacherOfBatchSchema,
    validate_imported,
)
from school_service.features.people.models import Employee
from school_service.web.app_state import current_principal
from school_service.web.blueprint import Blueprint
from school_service.web.schemas import ImportedRowsSchema, ImportOptionsSchema

blp = Blueprint(
    "employees",
    __name__,
    description="Employees, each with a user account, a bank account, a next of kin and a contact.",
)
teachers = Blueprint(
    "form-teachers",
    __name__,
    description="Form teachers: the employees who look after a batch. A cohort's id is its first batch.",
    school_required=False,
)


@blp.route("/employees")
class Employees(MethodView):
    """The school's employees."""

    @blp.requires(Permission.EMPLOYEES_READ, own=related("M"))
    @blp.returns_list(EmployeeSchema)
    def get(self) -> Any:
        """List the employees by name."""
        return reads.employees()

    @blp.requires(Permission.EMPLOYEES_WRITE)
    @blp.arguments(NewEmployeeSchema)
    @blp.returns(EmployeeSchema)
    def post(self, employee: dict[str, Any]) -> Any:
        """Create an employee, with a user account to which nobody can sign in until a password is set."""
        return reads.employee(service.create_employee(**employee).id)


@blp.route("/employees/import-template")
class EmployeeTemplate(MethodView):
    """The workbook to fill in for an import."""

    @blp.requires(Permission.EMPLOYEES_READ)
    @blp.returns_file()
    def get(self) -> Any:
        """Download the workbook of employees to fill in; its sheet Help explains each column."""
        return sheet.template()


@blp.route("/employees/import-sheet")
class EmployeeImport(MethodView):
    """The import of employees."""

    @blp.requires(Permission.EMPLOYEES_WRITE)
    @blp.arguments(ImportOptionsSchema, location="query")
    @blp.takes_file("sheet")
    @blp.returns(ImportedRowsSchema)
    def post(self, options: dict[str, Any], file: FileStorage) -> Any:
        """Create the employees of a workbook (.xlsx) like the template: all of its rows, or none.

        Needed are names, gender and category; the members left blank are null, until `PATCH` fills them. The accounts
        have no password and no role. A .csv file will do. Bad rows are 422: `errors.rows` names row, column, code
        (`required`, `invalid`, `unknown`, `duplicate` in the sheet, `taken` in the school) and message, of at most 200
        rows. Two of the same names need dates of birth that differ. A sheet has at most 20,000 rows.
        """
        return sheet.EmployeeUpload(validate=validate_imported, **options).run(file.stream)


@blp.route("/employees/<uuid:id>")
class OneEmployee(MethodView):
    """An employee."""

    @blp.requires(Permission.EMPLOYEES_READ, own=related("M"))
    @blp.returns(EmployeeSchema)
    def get(self, id: UUID) -> Any:
        """Show an employee."""
        return reads.employee(id)

    @blp.requires(Permission.EMPLOYEES_WRITE)
    @blp.arguments(EmployeeChangesSchema(partial=True))
    @blp.returns(EmployeeSchema)
    @blp.if_match(reads.employee, row_lock(Employee), reads.account_lock)
    def patch(self, changes: dict[str, Any], id: UUID) -> Any:
        """Change the given members of an employee; the username stays.

        Another name or gender, which are the user account's too, needs every permission that the user has.
        """
        return reads.employee(
            service.change_employee(employee_id=id, **changes, principal=current_principal())
        )


@blp.route("/employees/<uuid:id>/bank-account")
class BankAccountOfEmployee(MethodView):
    """The bank account of an employee."""

    @blp.requires(Permission.EMPLOYEES_READ, own=related("M"))
    @blp.returns(BankAccountSchema)
    def get(self, id: UUID) -> Any:
        """Show the account that an employee is paid into."""
        return reads.bank_account(id)

    @blp.requires(Permission.EMPLOYEES_WRITE)
    @blp.arguments(BankAccountChangesSchema(partial=True))
    @blp.returns(BankAccountSchema)
    @blp.if_match(reads.bank_account, reads.bank_account_lock)
    def patch(self, changes: dict[str, Any], id: UUID) -> Any:
        """Change the given members of the account that an employee is paid into."""
        return reads.bank_account(service.change_bank_account(employee_id=id, **changes))


@blp.route("/employees/<uuid:id>/nextofkin")
class NextOfKinOfEmployee(MethodView):
    """The next of kin of an employee."""

    @blp.requires(Permission.EMPLOYEES_READ, own=related("M"))
    @blp.returns(NextOfKinSchema)
    def get(self, id: UUID) -> Any:
        """Show the next of kin of an employee."""
        return reads.next_of_kin(id)

    @blp.requires(Permission.EMPLOYEES_WRITE)
    @blp.arguments(NextOfKinChangesSchema(partial=True))
    @blp.returns(NextOfKinSchema)
    @blp.if_match(reads.next_of_kin, reads.next_of_kin_lock)
    def patch(self, changes: dict[str, Any], id: UUID) -> Any:
        """Change the given members of an employee's next of kin."""
        return reads.next_of_kin(service.change_next_of_kin(employee_id=id, **changes))


@teachers.route("/teachers/<uuid:cohortId>")
class LatestFormTeacher(MethodView):
    """The form teacher of a batch."""

    @teachers.requires(Permission.TEACHERS_READ, own=related("TFSG"))
    @teachers.returns(FormTeacherSchema)
    def get(self, cohortId: UUID) -> Any:  # noqa: N803
        """Show the form teacher of a batch who was added last."""
        return reads.latest_form_teacher(cohortId)


@teachers.route("/teachers/<uuid:id>/add_to_batch")
class NewFormTeacher(MethodView):
    """Adding a form teacher to a batch."""

    @teachers.requires(Permission.TEACHERS_WRITE)
    @teachers.arguments(TeacherOfBatchSchema)
    @teachers.returns(FormTeacherSchema)
    def patch(self, teacher: dict[str, Any], id: UUID) -> Any:
        """Make an employee a form teacher of a batch; again changes nothing."""
        service.add_form_teacher(batch_id=id, **teacher)
        return reads.form_teacher(id, teacher["teacher_id"])


@teachers.route("/teachers/<uuid:id>/teachers/<uuid:teacherId>")
class FormTeacherOfBatch(MethodView):
    """A form teacher of a batch."""

    @teachers.requires(Permission.TEACHERS_DELETE)
    @teachers.returns_deleted()
    def delete(self, id: UUID, teacherId: UUID) -> Any:  # noqa: N803
        """Take a form teacher from a batch."""
        return service.remove_form_teacher(batch_id=id, teacher_id=teacherId)
