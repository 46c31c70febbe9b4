"""Registers as the interface shows them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import marshmallow as ma
from marshmallow import fields, validate

from school_service.features.attendance.models import (
    CODE_LENGTH,
    DAY_PARTS,
    KINDS,
    MOST_PERIODS,
    NOTE_LENGTH,
    PARTS,
    REASON_LENGTH,
    REGISTER_STATES,
)
from school_service.features.attendance.school_days.schemas import AttendanceTermSchema
from school_service.features.people.students.schemas import NamedStudentSchema
from school_service.web.fields import (
    MAX_IDS,
    Choice,
    Id,
    Input,
    IsoDate,
    ListOf,
    Nested,
    QueryInteger,
    StrictBoolean,
    StrictInteger,
    Text,
)
from school_service.web.schemas import RecordSchema, Schema, described, list_of, record_of, text_of
from tenants.names import is_too_long

_BATCH = "A batch; a cohort's id is its first batch."
_PART = "Of a register of a day: a part that the school has, DAY or MORNING and AFTERNOON."
_SUBJECT = "Of a lesson: a subject of the batch's cohort. It has a `period` and no `part`."
_PERIOD = "Of a lesson: which of the day it is."
_EARLIEST = datetime(2000, 1, 1, tzinfo=UTC)
_MOMENT_LENGTH = 40  # characters: 2025-10-06T08:05:00.123456+01:00 has 32
_TIME_OF_DAY = validate.Regexp(r"^([01][0-9]|2[0-3]):[0-5][0-9]$", error="Not a time HH:MM.")


class AttendanceStudentSchema(NamedStudentSchema):
    """A student, as registers name them."""


class CorrectionSchema(RecordSchema):
    """The office's correction beside the teacher's mark; it counts."""

    code = fields.String()
    kind = text_of(KINDS)
    reason = described(fields.String, "Null once the student is erased.", allow_none=True)
    by = fields.String()
    at = fields.AwareDateTime()


class MarkSchema(RecordSchema):
    """A student in a register; without a mark of the teacher's, code and kind are null."""

    student = fields.Nested(AttendanceStudentSchema)
    code = fields.String(allow_none=True)
    kind = text_of(KINDS, "The kind of the code when it was given.", allow_none=True)
    note = fields.String(allow_none=True)
    arrived = described(fields.String, "HH:MM, of a student who came late.", allow_none=True)
    correction = fields.Nested(CorrectionSchema, allow_none=True)
    counts = text_of(KINDS, "The kind that counts: the correction's, else the mark's.", allow_none=True)


class RegisterSchema(RecordSchema):
    """A class at one time, taken or not, with everyone in it by name.

    In it are all students in the batch now and not withdrawn, of a lesson those of them with the subject, and all
    students with a mark in it.
    """

    id = described(fields.UUID, "Null where it is not there yet.", allow_none=True)
    batch = fields.UUID()
    batch_name = fields.String()
    cohort_subject = fields.UUID(allow_none=True)
    subject = fields.String(allow_none=True)
    date = fields.Date()
    term = record_of(AttendanceTermSchema, "Null for a day that is in none.", allow_none=True)
    part = text_of(PARTS)
    period = fields.Integer(allow_none=True)
    state = text_of(REGISTER_STATES)
    version = described(
        fields.Integer, "Rises by 1 with each change of a mark or of the state; 0 before the first."
    )
    taken_at = described(fields.AwareDateTime, "When the teacher marked, by their device.", allow_none=True)
    changed_at = fields.AwareDateTime(allow_none=True)
    changed_by_name = fields.String(allow_none=True)
    marks = list_of(MarkSchema)
    enrolled = described(fields.Integer, "Students in the class now.")
    present = described(fields.Integer, "With students who came late.")
    late = fields.Integer()
    absent = described(fields.Integer, "With excused students.")
    excused = fields.Integer()
    unmarked = described(fields.Integer, "Students without a mark or a correction.")


class RegisterKeySchema(Schema):
    """The key of a register: batch, date and part, or batch, date, cohort subject and period."""

    batch = described(Id, _BATCH)
    day = described(IsoDate, "The day.", data_key="date")
    part = described(Choice, _PART, DAY_PARTS, required=False)
    cohort_subject = described(Id, _SUBJECT, required=False)
    period = described(QueryInteger, _PERIOD, 1, MOST_PERIODS, required=False)


class _BodyKeySchema(Schema):
    batch = described(Id, _BATCH)
    day = IsoDate(data_key="date")
    part = described(Choice, _PART, DAY_PARTS, required=False)
    cohort_subject = described(Id, _SUBJECT, required=False)
    period = described(StrictInteger, _PERIOD, 1, MOST_PERIODS, required=False)


class Moment(Input, fields.AwareDateTime):
    """A moment of ISO 8601 with its offset from UTC, of this century."""

    def _deserialize(self, value: Any, *arguments: Any, **options: Any) -> Any:
        if not isinstance(value, str) or is_too_long(value, _MOMENT_LENGTH):
            raise self.make_error("invalid", input=value, obj_type=self.OBJ_TYPE)
        moment = super()._deserialize(value, *arguments, **options)
        if moment < _EARLIEST:
            raise self.make_error("invalid", input=value, obj_type=self.OBJ_TYPE)
        return moment


class NewMarkSchema(Schema):
    """The mark of a student: a member left out stays, null clears it."""

    student = described(Id, "In the register.")
    code = described(
        Text,
        "One of the school's, in any case. Null takes the mark away.",
        CODE_LENGTH,
        required=False,
        allow_none=True,
    )
    note = Text(NOTE_LENGTH, any_characters=True, required=False, allow_none=True)
    arrived = Text(
        5,
        pattern=_TIME_OF_DAY,
        required=False,
        allow_none=True,
        metadata={"format": "hh:mm", "description": "HH:MM, of a student who came late."},
    )


class NewRegisterSchema(_BodyKeySchema):
    """Marks to store in a register; the marks of others stay."""

    version = described(
        StrictInteger,
        "The version of the register as it was read, by default 0: none. A mark that differs from "
        "one changed since is refused (409).",
        0,
        required=False,
    )
    default = described(
        Text, "The code of everyone in the class who is not named and has none.", CODE_LENGTH, required=False
    )
    marks = ListOf(Nested(NewMarkSchema), most=MAX_IDS, required=False)
    submit = described(
        StrictBoolean,
        "Hand the register in: it counts from then on. Everybody is marked then.",
        required=False,
    )
    taken_at = described(
        Moment, "When the teacher marked, at most 5 minutes ahead; it decides nothing.", required=False
    )
    force = described(StrictBoolean, "Replace marks that somebody changed since, too.", required=False)


class NewCorrectionSchema(Schema):
    """The correction of a student's mark."""

    student = described(Id, "In the register.")
    code = described(
        Text,
        "One of the school's, in any case. Null takes the correction back.",
        CODE_LENGTH,
        allow_none=True,
    )
    reason = described(
        Text, "Why; needed with a code.", REASON_LENGTH, any_characters=True, required=False, allow_none=True
    )

    @ma.validates_schema
    def _check_reason(self, correction: dict[str, Any], **_options: Any) -> None:
        if correction.get("code") is not None and correction.get("reason") is None:
            raise ma.ValidationError("Missing data for required field.", "reason")


class CorrectionsSchema(_BodyKeySchema):
    """Corrections to make or to take back; other students' stay."""

    corrections = ListOf(Nested(NewCorrectionSchema), least=1, most=MAX_IDS)
