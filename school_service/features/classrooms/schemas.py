"""Classrooms as the interface shows them."""

from __future__ import annotations

from marshmallow import fields

from school_service.web.fields import Schema, Text


class ClassroomSchema(Schema):
    """A classroom of a school."""

    id = fields.UUID(required=True)
    name = fields.String(required=True)
    school = fields.UUID(required=True)


class NewClassroomSchema(Schema):
    """A classroom to create."""

    name = Text(required=True)
    level = Text(required=True, metadata={"description": "Education level, such as Junior Secondary."})
