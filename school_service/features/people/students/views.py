"""Students over HTTP."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from flask.views import MethodView

from school_service.core.permissions import Permission
from school_service.core.reach import related
from school_service.core.statements import answered_beside, row_lock, table_lock
from school_service.features.people.guardians.reads import lock as lock_guardians
from school_service.features.people.models import Guardian, Student
from school_service.features.people.students import reads, service
from school_service.features.people.students.schemas import (
    NewStudentSchema,
    StudentChangesSchema,
    StudentFilterSchema,
    StudentSchema,
    WrittenStudentSchema,
)
from school_service.web.app_state import current_principal
from school_service.web.blueprint import Blueprint

blp = Blueprint("students", __name__, description="Students, each with a user account.")


@blp.route("/students")
class Students(MethodView):
    """The school's students."""

    @blp.requires(Permission.STUDENTS_READ, own=related("TFSG"))
    @blp.returns_page(StudentSchema, if_empty=service.check_student_filter)
    @blp.arguments(StudentFilterSchema, location="query")
    def get(self, filters: dict[str, Any]) -> Any:
        """List the students by name: all, or those fitting a text, a status, and a present class."""
        return reads.students(**filters | {"search": filters.get("search") or None})

    @blp.requires(Permission.STUDENTS_WRITE)
    @blp.arguments(NewStudentSchema)
    @blp.returns(WrittenStudentSchema)
    def post(self, student: dict[str, Any]) -> Any:
        """Create a student, with a user account.

        With a password it needs `read:results` too, and with a guardian who has an account.
        """
        created = service.create_student(**student)
        return answered_beside(reads.student(created.id), created.told)


@blp.route("/students/<uuid:id>")
class OneStudent(MethodView):
    """A student."""

    @blp.requires(Permission.STUDENTS_READ, own=related("TFSG"))
    @blp.returns(StudentSchema)
    def get(self, id: UUID) -> Any:
        """Show a student."""
        return reads.student(id)

    @blp.requires(Permission.STUDENTS_WRITE)
    @blp.arguments(StudentChangesSchema(partial=True))
    @blp.returns(WrittenStudentSchema)
    @blp.if_match(reads.student, row_lock(Student), table_lock(Guardian), lock_guardians, reads.account_lock)
    def patch(self, changes: dict[str, Any], id: UUID) -> Any:
        """Change the given members of a student; the status of a graduate stays.

        Names and gender are those of the user account: a change of them needs every permission that the user has.
        """
        told = service.change_student(student_id=id, principal=current_principal(), **changes)
        return answered_beside(reads.student(id), told)

    @blp.requires(Permission.STUDENTS_DELETE)
    @blp.returns_deleted()
    @blp.if_match(reads.student, service.DELETION.row_lock, lock_guardians, reads.account_lock)
    def delete(self, id: UUID) -> Any:
        """Delete a student without a history, with the account and its contacts; withdraw others instead."""
        return service.delete_student(student_id=id, principal=current_principal())
