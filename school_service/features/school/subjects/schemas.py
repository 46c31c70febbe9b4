"""Subjects as the interface shows them."""

from __future__ import annotations

from marshmallow import fields

from school_service.web.fields import Text
from school_service.web.schemas import RecordSchema, Schema


class SubjectSchema(RecordSchema):
    """A subject of a school."""

    id = fields.UUID()
    name = fields.String()
    code = fields.String()
    school = fields.UUID()


class NewSubjectSchema(Schema):
    """A subject to create."""

    name = Text()
    code = Text(metadata={"description": "Short and unique in the school, such as MTH."})
