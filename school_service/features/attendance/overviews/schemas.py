"""Sums and absences from registers, as the interface shows them."""

from __future__ import annotations

from typing import Any

import marshmallow as ma
from marshmallow import fields

from school_service.features.attendance.models import ABSENT, DAY_PARTS, EXCUSED, KINDS, REGISTER_STATES
from school_service.features.attendance.registers.schemas import AttendanceStudentSchema
from school_service.features.attendance.school_days.schemas import check_range
from school_service.features.school.sessions.schemas import term_text
from school_service.web.fields import Id, IsoDate, QueryInteger
from school_service.web.schemas import RecordSchema, Schema, described, list_of, text_of, texts

MOST_DAYS = 31

_OPENED = "Times that a class was called with the student in it, and the register submitted."
_PERCENT = "Present, of the times opened, with two places; null of none."


class MissingRegisterSchema(RecordSchema):
    """A register of a day, not submitted yet."""

    date = fields.Date()
    part = text_of(DAY_PARTS)
    batch = fields.UUID()
    batch_name = fields.String()
    classroom = fields.String()
    form_teachers = texts("Their names.")
    state = text_of(REGISTER_STATES)


class AttendanceOfDaySchema(RecordSchema):
    """A batch in a part of a day; its register counts once it is submitted, and before everyone is unmarked."""

    batch = fields.UUID()
    batch_name = fields.String()
    classroom = fields.String()
    part = text_of(DAY_PARTS)
    state = text_of(REGISTER_STATES)
    enrolled = fields.Integer()
    present = described(fields.Integer, "With students who came late.")
    late = fields.Integer()
    absent = described(fields.Integer, "With excused students.")
    excused = fields.Integer()
    unmarked = fields.Integer()


class NotifiedGuardianSchema(RecordSchema):
    """A guardian who receives reports of a student, and is not stopped."""

    full_name = fields.String()
    relationship = fields.String(allow_none=True)
    phone_number = fields.String(allow_none=True)
    email_address = fields.String(allow_none=True)


class AbsenceOfDaySchema(RecordSchema):
    """A student away at one time of a day, by a submitted register, and the guardians to tell."""

    student = fields.Nested(AttendanceStudentSchema)
    batch = described(fields.UUID, "The register's.")
    batch_name = described(fields.String, "The batch's name.")
    part = text_of(DAY_PARTS, "The register's part of the day.")
    code = described(fields.String, "The code that counts: the correction's, else the mark's.")
    kind = text_of((ABSENT, EXCUSED), "The kind of the code when it was given.")
    guardians = list_of(NotifiedGuardianSchema, "The primary first, then by name.")


class SumsSchema(RecordSchema):
    """How often a student was there: present and absent make up the times opened."""

    opened = described(fields.Integer, _OPENED)
    present = described(fields.Integer, "With late.")
    late = fields.Integer()
    absent = described(fields.Integer, "With excused.")
    excused = fields.Integer()
    percent = described(fields.Decimal, _PERCENT, allow_none=True)


class AttendanceSummarySchema(SumsSchema):
    """How often a student of a class was there."""

    student = fields.Nested(AttendanceStudentSchema)


class ChronicAbsenceSchema(AttendanceSummarySchema):
    """A student away too often, and their batch."""

    batch = fields.UUID()


class AttendanceWeekSchema(RecordSchema):
    """A week in the attendance of a student, with the times opened for their class."""

    monday = fields.Date()
    opened = fields.Integer()
    present = fields.Integer()


class StudentMarkSchema(RecordSchema):
    """How a student was marked at one time, as it counts."""

    date = fields.Date()
    part = text_of(DAY_PARTS)
    kind = text_of(KINDS)


class StudentAttendanceSchema(SumsSchema):
    """A student's attendance in a term, of the submitted registers."""

    weeks = list_of(AttendanceWeekSchema)
    marks = list_of(StudentMarkSchema, "None, for families, where the school shows them sums alone.")


class MissingFilterSchema(Schema):
    """The days to look at: one, or from one to another, 31 at most."""

    day = described(IsoDate, "One day.", data_key="date", required=False)
    first = described(IsoDate, "The first day.", data_key="from", required=False)
    last = described(IsoDate, "The last day.", data_key="to", required=False)

    @ma.validates_schema
    def _check_days(self, days: dict[str, Any], **_options: Any) -> None:
        if "day" in days:
            if len(days) > 1:
                raise ma.ValidationError("is not given with from and to", "date")
            return
        if not days:
            raise ma.ValidationError("is required, or from and to", "date")
        for name, known in (("from", "first"), ("to", "last")):
            if known not in days:
                raise ma.ValidationError("is required, too", name)
        check_range(days["first"], days["last"], MOST_DAYS)

    @ma.post_load
    def _one_day_is_a_range(self, days: dict[str, Any], **_options: Any) -> dict[str, Any]:
        return {"first": days["day"], "last": days["day"]} if "day" in days else days


class AbsenceFilterSchema(Schema):
    """The day to look at."""

    day = described(IsoDate, "By default the school's today.", data_key="date", required=False)


class DayFilterSchema(Schema):
    """The day to look at, and perhaps a cohort to keep to."""

    day = described(IsoDate, "The day.", data_key="date")
    cohort = described(Id, "Its batches alone.", required=False)


class SummaryFilterSchema(Schema):
    """The class to sum up: a batch's days, or a cohort subject's lessons."""

    term = term_text("the class's")
    batch = described(Id, "A batch; a cohort's id is its first batch.", required=False)
    cohort_subject = described(Id, "A subject of a cohort, by its id.", required=False)

    @ma.validates_schema
    def _one_of_both(self, filters: dict[str, Any], **_options: Any) -> None:
        if ("batch" in filters) == ("cohort_subject" in filters):
            words = (
                "is not given with a cohort_subject"
                if "batch" in filters
                else "is required, or cohort_subject"
            )
            raise ma.ValidationError(words, "batch")


class ChronicFilterSchema(Schema):
    """The students and the share of absence to look for."""

    term = term_text("the cohort's, without one of the current")
    cohort = described(Id, "Its students alone.", required=False)
    percent = described(QueryInteger, "In place of the school's `chronic_percent`.", 1, 100, required=False)


class OverviewTermSchema(Schema):
    """The term of a student to look at."""

    term = term_text("the student's current")
