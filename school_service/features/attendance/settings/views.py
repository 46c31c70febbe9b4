"""Attendance settings over HTTP."""

from __future__ import annotations

from typing import Any

from flask.views import MethodView
from marshmallow import fields

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
from school_service.web.schemas import RecordSchema, Schema, described, text_of

_WORDS = {
    "parts": "DAY: a class is called once a day. HALF_DAYS: in the morning and in the afternoon, each by itself.",
    "weekdays": "On which school is open; 1 is Monday.",
    "roll_up": "The attendance on cards. TYPED: the numbers typed in. REGISTERS: the sums of the registers.",
    "lock_after": "Days after which the office alone changes a register; null: never.",
    "chronic_percent": "Of the times opened, in percent: from this share of times absent on, absence is chronic.",
    "families_read": "Attendance that students and guardians read: all marks, sums alone, or nothing.",
}


class AttendanceSettingsSchema(RecordSchema):
    """How the school keeps registers."""

    parts = text_of(REGISTER_PARTS, _WORDS["parts"])
    weekdays = described(fields.List, _WORDS["weekdays"], fields.Integer())
    roll_up = text_of(ROLL_UPS, _WORDS["roll_up"])
    lock_after = described(fields.Integer, _WORDS["lock_after"], allow_none=True)
    chronic_percent = described(fields.Integer, _WORDS["chronic_percent"])
    families_read = text_of(FAMILY_READINGS, _WORDS["families_read"])


class AttendanceSettingsChangesSchema(Schema):
    """The settings to change: any of these."""

    parts = described(Choice, _WORDS["parts"], REGISTER_PARTS, required=False)
    weekdays = described(ListOf, _WORDS["weekdays"], StrictInteger(1, 7), least=1, most=7, required=False)
    roll_up = described(Choice, _WORDS["roll_up"], ROLL_UPS, required=False)
    lock_after = described(
        StrictInteger, _WORDS["lock_after"], 0, MOST_LOCK_DAYS, required=False, allow_none=True
    )
    chronic_percent = described(StrictInteger, _WORDS["chronic_percent"], 1, 100, required=False)
    families_read = described(Choice, _WORDS["families_read"], FAMILY_READINGS, required=False)


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
        """Change how the school keeps registers; marks stay as they are."""
        return service.change_attendance_settings(**changes)
