"""Graduates as the interface shows them."""

from __future__ import annotations

from marshmallow import fields

from school_service.web.fields import Id, Schema


class GraduateSchema(Schema):
    """A student who graduated."""

    id = fields.Integer(required=True, metadata={"description": "Counts the school's graduates."})
    student = fields.Integer(required=True, metadata={"description": "The student's number."})
    graduation_class = fields.String(
        required=True,
        metadata={
            "description": "Classroom and session of the last enrollment, such as `SSS 3 2025/2026`; "
            "empty where there was none."
        },
    )
    school = fields.String(required=True, metadata={"description": "The school's name."})


class NewGraduateSchema(Schema):
    """Who graduates."""

    student = Id(required=True)
