"""Attendance settings: how registers are kept from now on, and changes of the settings."""

from __future__ import annotations

from typing import Any

from sqlalchemy import exists, select

from school_service.core.database import request_context
from school_service.core.errors import InUse, Invalid
from school_service.core.read_models import BoundQuery, Query, read_model
from school_service.core.statements import fetch_one, in_one_round_trip, put_row, table_lock
from school_service.features.attendance import calendar
from school_service.features.attendance.models import (
    IS_DAY,
    AttendanceSettings,
    Register,
    SchoolDay,
)
from school_service.features.audit.service import audit_member_changes
from school_service.features.reach import scopes
from school_service.features.school.models import AcademicSession
from school_service.features.school.settings.service import lock_settings

ENTITY = "attendance-settings"

share_days = table_lock(SchoolDay, shared=True)
"""Makes the lock of everyone marking a register: many may do so at once."""

lock_days = table_lock(SchoolDay)
"""Makes the lock against everyone marking a register: it waits for them, and they for it.

A change of days or settings takes it: no register is then made by the old ones. Taking a register away takes it, too:
the register is then there for everyone waiting for it.
"""


@read_model
def attendance_settings() -> Query:
    """Read model of AttendanceSettingsSchema: the school's own, or the defaults."""
    return calendar.settings()


@read_model
def _stored() -> Query:
    """Select the settings, and whether the current term, by today in the current session, has a day register."""
    chosen = calendar.settings().subquery("settings")
    current = calendar.term_of(AcademicSession.id, scopes.today())
    mixed = exists().where(AcademicSession.current, Register.term_id == current, IS_DAY)
    return select(chosen, mixed.label("mixed"))


def change_attendance_settings(**changes: Any) -> BoundQuery:
    """Change any member of the settings; weekdays are replaced as a whole.

    Returns the read model of the settings, stored and read in one round trip. Raises Invalid for a weekday given twice,
    and Conflict for a change of `parts` while the current term has a register of a day.
    """
    read = attendance_settings()
    old = fetch_one(lock_days(), lock_settings(), _stored())
    mixed = old.pop("mixed")
    if "weekdays" in changes:
        if len(set(changes["weekdays"])) < len(changes["weekdays"]):
            raise Invalid.field("weekdays", "a day is there twice")
        changes["weekdays"] = sorted(changes["weekdays"])
    new = {**old, **changes}
    if new == old:
        return read
    if mixed and new["parts"] != old["parts"]:
        reason = "the current term has registers of days"
        raise InUse(f"Parts stay: {reason}, and its sums would mix both.", {"parts": [reason]})
    audit_member_changes(ENTITY, request_context().school_id, old, new)
    return in_one_round_trip(put_row(AttendanceSettings, "singleton", **new), read=read)
