"""Attendance codes over HTTP."""

from __future__ import annotations

from typing import Any

from flask.views import MethodView
from marshmallow import fields

from school_service.core.permissions import Permission
from school_service.core.reach import EVERYTHING
from school_service.features.attendance.codes import service
from school_service.features.attendance.models import CODE_LENGTH, CODE_NAME_LENGTH, KINDS, MOST_CODES
from school_service.web.blueprint import Blueprint
from school_service.web.fields import Choice, Text
from school_service.web.schemas import RecordSchema, Schema, described, text_of

_KIND = "PRESENT and LATE count as present, ABSENT and EXCUSED as absent."


class AttendanceCodeSchema(RecordSchema):
    """The meaning of a mark, and its kind."""

    code = fields.String()
    name = fields.String()
    kind = text_of(KINDS, _KIND)


class NewAttendanceCodeSchema(Schema):
    """A code, in its place of the list."""

    code = described(Text, "Letters and digits; each once, in any case.", CODE_LENGTH)
    name = Text(CODE_NAME_LENGTH)
    kind = described(Choice, _KIND, KINDS)


blp = Blueprint("attendance-codes", __name__, description="The codes of marks in registers.")


@blp.route("/attendance-codes")
class AttendanceCodes(MethodView):
    """The codes of the school."""

    @blp.requires(Permission.SETTINGS_READ, own=EVERYTHING)
    @blp.returns_list(AttendanceCodeSchema)
    def get(self) -> Any:
        """List the codes in their order: P, L, A and E until the school sets its own."""
        return service.attendance_codes()

    @blp.requires(Permission.SETTINGS_WRITE)
    @blp.takes_list(NewAttendanceCodeSchema, most=MOST_CODES)
    @blp.returns_list(AttendanceCodeSchema)
    def put(self, codes: list[dict[str, Any]]) -> Any:
        """Replace the codes; one of them is PRESENT and one ABSENT. Marks keep their kind."""
        return service.set_codes(codes)
