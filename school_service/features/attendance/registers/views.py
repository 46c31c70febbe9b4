"""Registers over HTTP."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from flask.views import MethodView

from school_service.core.permissions import Permission
from school_service.core.reach import related
from school_service.features.attendance.registers import reads, service
from school_service.features.attendance.registers.schemas import (
    CorrectionsSchema,
    NewRegisterSchema,
    RegisterKeySchema,
    RegisterSchema,
)
from school_service.features.attendance.settings.service import lock_days
from school_service.web.app_state import current_principal
from school_service.web.blueprint import Blueprint

blp = Blueprint("registers", __name__, description="Attendance: registers of days and of lessons.")


@blp.route("/registers")
class Registers(MethodView):
    """A register, by its key."""

    @blp.requires(Permission.ATTENDANCE_READ, own=related("TF"))
    @blp.arguments(RegisterKeySchema, location="query")
    @blp.returns(RegisterSchema, if_empty=service.check_register)
    def get(self, key: dict[str, Any]) -> Any:
        """Show a register, taken or not, with everyone in it by name. A subject teacher reaches their lessons."""
        return service.register(**key)

    @blp.requires(Permission.ATTENDANCE_WRITE, own=related("TF"))
    @blp.arguments(NewRegisterSchema)
    @blp.answers(409)
    @blp.returns(RegisterSchema)
    def put(self, body: dict[str, Any]) -> Any:
        """Mark a register, all or none; the same again changes nothing.

        A mark that differs from one that has changed since `version` is refused (409): `errors.json.marks` has each,
        as it is stored and as it was given; `force` takes them.
        """
        return service.mark_register(**body, principal=current_principal())


@blp.route("/registers/corrections")
class Corrections(MethodView):
    """The office's corrections in a register."""

    @blp.requires(Permission.ATTENDANCE_CORRECTIONS_WRITE)
    @blp.arguments(CorrectionsSchema)
    @blp.answers(409)
    @blp.returns(RegisterSchema)
    def put(self, body: dict[str, Any]) -> Any:
        """Correct marks in a register, or take corrections back, all or none; the teacher's marks stay beside them.

        A register that nobody took yet is made, and the correction waits for it.
        """
        return service.correct_register(**body)


@blp.route("/registers/<uuid:id>")
class Register(MethodView):
    """A register, by its id."""

    @blp.requires(Permission.ATTENDANCE_READ, own=related("TF"))
    @blp.returns(RegisterSchema)
    def get(self, id: UUID) -> Any:
        """Show a register that is there, with everyone in it by name. A subject teacher reaches their lessons."""
        return reads.register_by_id(id)

    @blp.requires(Permission.ATTENDANCE_DELETE)
    @blp.returns_deleted()
    @blp.if_match(reads.register_by_id, lock_days, service.DELETION.row_lock)
    def delete(self, id: UUID) -> Any:
        """Delete a register with all its marks and corrections: nobody has taken it then."""
        return service.delete_register(register_id=id, principal=current_principal())
