"""Employees over HTTP."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from flask.views import MethodView

from school_service.core.permissions import Permission
from school_service.features.employees import reads, service
from school_service.features.employees.schemas import (
    BankAccountSchema,
    EmployeeSchema,
    NewEmployeeSchema,
    NextOfKinSchema,
)
from school_service.web.blueprint import Blueprint

blp = Blueprint(
    "employees",
    __name__,
    description="Employees, each with a user account, a bank account, a next of kin and a contact.",
)


@blp.route("/employees")
class Employees(MethodView):
    """The school's employees."""

    @blp.requires(Permission.EMPLOYEES_READ)
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


@blp.route("/employees/<uuid:id>")
class OneEmployee(MethodView):
    """An employee."""

    @blp.requires(Permission.EMPLOYEES_READ)
    @blp.returns(EmployeeSchema)
    def get(self, id: UUID) -> Any:
        """Show an employee."""
        return reads.employee(id)

    @blp.requires(Permission.EMPLOYEES_DELETE)
    @blp.returns_deleted()
    def delete(self, id: UUID) -> Any:
        """Delete an employee and their user account; the records are kept, and they teach no batch any more."""
        return service.delete_employee(employee_id=id)


@blp.route("/employees/<uuid:id>/bank-account")
class BankAccountOfEmployee(MethodView):
    """The bank account of an employee."""

    @blp.requires(Permission.EMPLOYEES_READ)
    @blp.returns(BankAccountSchema)
    def get(self, id: UUID) -> Any:
        """Show the account that an employee is paid into."""
        return reads.bank_account(id)


@blp.route("/employees/<uuid:id>/nextofkin")
class NextOfKinOfEmployee(MethodView):
    """The next of kin of an employee."""

    @blp.requires(Permission.EMPLOYEES_READ)
    @blp.returns(NextOfKinSchema)
    def get(self, id: UUID) -> Any:
        """Show whom to tell when something happens to an employee."""
        return reads.next_of_kin(id)
