"""Form teachers over HTTP."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from flask.views import MethodView

from school_service.core.permissions import Permission
from school_service.features.teachers import reads, service
from school_service.features.teachers.schemas import FormTeacherSchema, TeacherOfBatchSchema
from school_service.web.blueprint import Blueprint

blp = Blueprint(
    "teachers",
    __name__,
    description="Form teachers: the employees who look after a batch. A cohort's id is its first batch.",
    school_required=False,
)


@blp.route("/teachers/<uuid:cohortId>")
class LatestFormTeacher(MethodView):
    """The form teacher of a batch."""

    @blp.requires(Permission.TEACHERS_READ)
    @blp.returns(FormTeacherSchema)
    def get(self, cohortId: UUID) -> Any:  # noqa: N803
        """Show the form teacher of a batch who was added last."""
        return reads.form_teacher(cohortId)


@blp.route("/teachers/<uuid:id>/add_to_batch")
class NewFormTeacher(MethodView):
    """Adding a form teacher to a batch."""

    @blp.requires(Permission.TEACHERS_WRITE)
    @blp.arguments(TeacherOfBatchSchema)
    @blp.returns(FormTeacherSchema)
    def patch(self, wanted: dict[str, Any], id: UUID) -> Any:
        """Make an employee a form teacher of a batch; again changes nothing."""
        service.add_to_batch(batch_id=id, teacher_id=wanted["teacher_id"])
        return reads.form_teacher(id, wanted["teacher_id"])


@blp.route("/teachers/<uuid:id>/teachers/<uuid:teacherId>")
class FormTeacherOfBatch(MethodView):
    """A form teacher of a batch."""

    @blp.requires(Permission.TEACHERS_DELETE)
    @blp.returns_deleted()
    def delete(self, id: UUID, teacherId: UUID) -> Any:  # noqa: N803
        """Take a form teacher from a batch."""
        return service.remove_from_batch(batch_id=id, teacher_id=teacherId)
