"""Attendance settings over HTTP."""

from __future__ import annotations

from typing import Any

from flask.views import MethodView
from marshmallow import fields, validate

from school_service.core.permissions import Permission
from school_service.core.reach import EVERYTHING
from school_service.features.attendance.models import (
    FAMILY_READINGS,
    MOST_LOCK_DAYS,
    REGISTER_PARTS,
    ROLL_UPS,
)
from school_service.features.attendance.settings import service
from school_service.features.school.settings.service import lock_settings
from school_service.web.blueprint import Blueprint
from school_service.web.fields import Choice, ListOf, StrictInteger
from school_service.web.schemas import RecordSchema, Schema

_WORDS = {
    "parts": "DAY: a class is called once a day. HALF_DAYS: in the morning and in the afternoon, each by itself.",
    "weekdays": "On which school is open; 1 is Monday.",
    "roll_up": "What cards say of attendance. TYPED: what is typed in. REGISTERS: what the registers come to.",
    "lock_after": "Days after which the office alone changes a register; null: never.",
    "chronic_percent": "Of the times opened, in percent: from this share of times absent on, absence is chronic.",
    "families_read": "What students and guardians read: all marks, sums alone, or nothing.",
}


def _about(name: str) -> dict[str, Any]:
    return {"description": _WORDS[name]}


class AttendanceSettingsSchema(RecordSchema):
    """How the school keeps registers."""

    parts = fields.String(validate=validate.OneOf(REGISTER_PARTS), metadata=_about("parts"))
    weekdays = fields.List(fields.Integer(), metadata=_about("weekdays"))
    roll_up = fields.String(validate=validate.OneOf(ROLL_UPS), metadata=_about("roll_up"))
    lock_after = fields.Integer(allow_none=True, metadata=_about("lock_after"))
    chronic_percent = fields.Integer(metadata=_about("chronic_percent"))
    families_read = fields.String(validate=validate.OneOf(FAMILY_READINGS), metadata=_about("families_read"))


class AttendanceSettingsChangesSchema(Schema):
    """The settings to change: any of these."""

    parts = Choice(REGISTER_PARTS, required=False, metadata=_about("parts"))
    weekdays = ListOf(
        StrictInteger(1, 7),
        required=False,
        validate=validate.Length(min=1, max=7),
        metadata=_about("weekdays"),
    )
    roll_up = Choice(ROLL_UPS, required=False, metadata=_about("roll_up"))
    lock_after = StrictInteger(
        0, MOST_LOCK_DAYS, required=False, allow_none=True, metadata=_about("lock_after")
    )
    chronic_percent = StrictInteger(1, 100, required=False, metadata=_about("chronic_percent"))
    families_read = Choice(FAMILY_READINGS, required=False, metadata=_about("families_read"))


blp = Blueprint("attendance-settings", __name__, description="How the school keeps registers.")


@blp.route("/attendance-settings")
class AttendanceSettings(MethodView):
    """How the school keeps registers."""

    @blp.requires(Permission.SETTINGS_READ, own=EVERYTHING)
    @blp.returns(AttendanceSettingsSchema)
    def get(self) -> Any:
        """Show how the school keeps registers."""
        return service.attendance_settings()

    @blp.requires(Permission.SETTINGS_WRITE)
    @blp.arguments(AttendanceSettingsChangesSchema)
    @blp.answers(409)
    @blp.returns(AttendanceSettingsSchema)
    @blp.if_match(service.attendance_settings, service.lock_days, lock_settings)
    def patch(self, changes: dict[str, Any]) -> Any:
        """Change how the school keeps registers; what is marked stays as it is."""
        return service.change_attendance_settings(**changes)
