"""School days as the interface shows them."""

from __future__ import annotations

from typing import Any

import marshmallow as ma
from marshmallow import fields

from school_service.features.attendance.models import DAY_NAME_LENGTH, DAY_PARTS, DAY_STATUSES, HALVES
from school_service.features.school.models import TERMS
from school_service.web.fields import Choice, IsoDate, ListOf, Nested, Text
from school_service.web.schemas import RecordSchema, Schema, described, record_of, text_of

MOST_DAYS = 400


class AttendanceTermSchema(RecordSchema):
    """The term of a day."""

    id = fields.UUID()
    term = text_of(TERMS)


class SchoolDaySchema(RecordSchema):
    """A day of a term: on a weekday of school, or an exceptional one."""

    date = fields.Date()
    term = record_of(AttendanceTermSchema, "Null for a day that is in none.", allow_none=True)
    parts = described(
        fields.List,
        "In which school is open, and classes are called; empty on a closed day.",
        text_of(DAY_PARTS),
    )
    name = described(fields.String, "Such as the name of a holiday.", allow_none=True)


class SchoolDayFilterSchema(Schema):
    """The days to show: 400 at most."""

    first = described(IsoDate, "The first day.", data_key="from")
    last = described(IsoDate, "The last day.", data_key="to")

    @ma.validates_schema
    def _check_range(self, days: dict[str, Any], **_options: Any) -> None:
        check_range(days["first"], days["last"], MOST_DAYS)


def check_range(first: Any, last: Any, most: int) -> None:
    """Refuse a range of days ending before it begins, or longer than `most`. Raises ValidationError."""
    if last < first:
        raise ma.ValidationError("must not be before from", "to")
    if (last - first).days >= most:
        raise ma.ValidationError(f"is more than {most} days", "to")


class NewSchoolDaySchema(Schema):
    """The status of a day, or of one half of it."""

    date = IsoDate()
    status = described(Choice, "USUAL takes the exception back: then the weekday decides.", DAY_STATUSES)
    part = described(
        Choice, "Of one half alone, in a school that has half days.", HALVES, required=False, allow_none=True
    )
    name = Text(DAY_NAME_LENGTH, required=False, allow_none=True)


class SchoolDaysSchema(Schema):
    """Days to set; all others stay."""

    days = ListOf(Nested(NewSchoolDaySchema), least=1, most=MOST_DAYS)
