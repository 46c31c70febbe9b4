"""Absences as the interface shows them."""

from __future__ import annotations

from marshmallow import fields

from school_service.features.people.students.schemas import NamedStudentSchema
from school_service.features.scores.models import ABSENCES
from school_service.web.fields import MAX_IDS, Choice, Id, ListOf, Nested, free_text
from school_service.web.schemas import RecordSchema, Schema, described, text_of

_STATUS = "ABSENT, without leave, counts 0; EXCUSED counts nowhere."


class AbsentStudentSchema(NamedStudentSchema):
    """A student with an absence."""


class AbsenceSchema(RecordSchema):
    """The absence of a student from an assessment."""

    student = fields.Nested(AbsentStudentSchema)
    status = text_of(ABSENCES, _STATUS)
    note = fields.String(allow_none=True)
    created_at = fields.AwareDateTime(data_key="createdAt")


class NewAbsenceSchema(Schema):
    """The absence of a student, new or changed."""

    student = described(Id, "A student of the cohort who takes the subject and has no score.")
    status = described(Choice, _STATUS, ABSENCES)
    note = described(
        free_text, "Left out, the note that is there stays; null clears it.", required=False, allow_none=True
    )


class AbsencesSchema(Schema):
    """Absences to add or change; other students' stay."""

    absences = ListOf(Nested(NewAbsenceSchema), least=1, most=MAX_IDS)
