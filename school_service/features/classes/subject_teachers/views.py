"""Subject teachers over HTTP."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from flask.views import MethodView

from school_service.core.permissions import Permission
from school_service.core.reach import related
from school_service.core.statements import row_lock
from school_service.features.classes.subject_teachers import leaving, reads, service
from school_service.features.classes.subject_teachers.schemas import (
    AssignmentCopyOptionsSchema,
    CopiedSchema,
    CopySchema,
    LeavingSchema,
    SubjectTeacherFilterSchema,
    SubjectTeacherSchema,
    SubjectTeachersSchema,
)
from school_service.features.people.employees.reads import account_lock, employee
from school_service.features.people.models import Employee
from school_service.web.app_state import current_principal
from school_service.web.blueprint import Blueprint

blp = Blueprint("subject-teachers", __name__, description="The teachers of cohort subjects.")


@blp.route("/subject-teachers")
class SubjectTeachers(MethodView):
    """The teachers of subjects."""

    @blp.requires(Permission.TEACHERS_READ, own=related("TFSG"))
    @blp.returns_page(SubjectTeacherSchema, if_empty=service.check_subject_teacher_filter)
    @blp.arguments(SubjectTeacherFilterSchema, location="query")
    def get(self, filters: dict[str, Any]) -> Any:
        """List the subject teachers, by class, subject, arm and name."""
        return reads.subject_teachers(**filters)

    @blp.requires(Permission.TEACHERS_WRITE)
    @blp.arguments(SubjectTeachersSchema)
    @blp.returns_list(SubjectTeacherSchema)
    def put(self, body: dict[str, Any]) -> Any:
        """Let employees teach subjects, each to an arm or to all, all or none; answers those named.

        One that is there, of the same subject, employee and arm, gets these dates; left out, there are none.
        """
        return service.put_subject_teachers(**body)


@blp.route("/subject-teachers/<uuid:id>")
class OneSubjectTeacher(MethodView):
    """An assignment of an employee to a subject."""

    @blp.requires(Permission.TEACHERS_DELETE)
    @blp.returns_deleted()
    def delete(self, id: UUID) -> Any:
        """Let an employee teach a subject no more."""
        return service.delete_subject_teacher(assignment_id=id)


@blp.route("/subject-teachers/copy")
class CopyOfSubjectTeachers(MethodView):
    """Copying of assignments."""

    @blp.requires(Permission.TEACHERS_WRITE)
    @blp.arguments(AssignmentCopyOptionsSchema, location="query")
    @blp.arguments(CopySchema)
    @blp.returns(CopiedSchema)
    def post(self, options: dict[str, Any], sessions: dict[str, Any]) -> Any:
        """Copy the subject teachers of one session into another, without dates; assignments already there stay.

        Cohorts are matched by classroom, cohort subjects by subject, arms by name; answers the assignments without a
        match.
        """
        return service.copy_subject_teachers(**sessions, **options)


# An employee's other operations are in a wing that knows nothing of subjects.
@blp.route("/employees/<uuid:id>", tags=["employees"])
class LeavingEmployee(MethodView):
    """An employee who leaves."""

    @blp.requires(Permission.EMPLOYEES_DELETE)
    @blp.arguments(LeavingSchema, location="query")
    @blp.returns_deleted()
    @blp.if_match(employee, reads.lock_subjects_of, reads.lock_batches_of, row_lock(Employee), account_lock)
    def delete(self, options: dict[str, Any], id: UUID) -> Any:
        """Delete an employee and their user account; the records stay. Their subjects are handed over, or released.

        An employee with a subject or a form class in a session that is current, or ended at most 60 days ago, is 409,
        which counts and names these, unless `hand_over` or `release` is given. Assignments end today and are listed
        with `employee`; those of the heir begin today, beside the heir's own.
        """
        return leaving.delete_employee(employee_id=id, principal=current_principal(), **options)
