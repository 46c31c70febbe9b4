"""Subjects as the interface shows them."""

from __future__ import annotations

from marshmallow import fields

from school_service.web.fields import Schema, Text


class SubjectSchema(Schema):
    """A subject of a school."""

    id = fields.UUID(required=True)
    name = fields.String(required=True)
    code = fields.String(required=True)
    school = fields.UUID(required=True)


class NewSubjectSchema(Schema):
    """A subject to create."""

    name = Text(required=True)
    code = Text(required=True, metadata={"description": "Short and unique in the school, such as MTH."})
