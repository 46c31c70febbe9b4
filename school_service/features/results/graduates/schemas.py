"""Graduates as the interface shows them."""

from __future__ import annotations

from marshmallow import fields

from school_service.features.people.students.schemas import dated, schooling
from school_service.web.fields import Id
from school_service.web.schemas import RecordSchema, Schema, described


class GraduateSchema(RecordSchema):
    """A graduate of the school."""

    id = described(fields.Integer, "Counts the school's graduates.")
    student = described(fields.Integer, "The student's number.")
    graduation_class = described(
        fields.String,
        "Classroom and session of the last enrollment, such as `SSS 3 2025/2026`; "
        "empty where there was none.",
    )
    school = described(fields.String, "The school's name.")


class NewGraduateSchema(Schema):
    """The student to graduate."""

    student = Id()
    left_on = dated("Date of leaving, the last day in the class too.")
    leaving_reason = schooling("The reason for leaving; shown to the school alone.")
