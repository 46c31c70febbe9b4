"""Classrooms as the interface shows them."""

from __future__ import annotations

from marshmallow import fields

from school_service.web.fields import Text
from school_service.web.schemas import RecordSchema, Schema


class ClassroomSchema(RecordSchema):
    """A classroom of a school."""

    id = fields.UUID()
    name = fields.String()
    school = fields.UUID()


class NewClassroomSchema(Schema):
    """A classroom to create."""

    name = Text()
    level = Text(metadata={"description": "Education level, such as Junior Secondary."})


class ClassroomChangesSchema(NewClassroomSchema):
    """What to change of a classroom: any of its members."""
