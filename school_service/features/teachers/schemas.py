"""Form teachers as the interface shows them."""

from __future__ import annotations

from marshmallow import fields

from school_service.web.fields import Id, Schema


class FormTeacherSchema(Schema):
    """Who looks after a batch."""

    batch_id = fields.UUID(required=True)
    first_name = fields.String(required=True)
    last_name = fields.String(required=True)
    image_url = fields.Url(required=True, allow_none=True)


class TeacherOfBatchSchema(Schema):
    """An employee to make a form teacher."""

    teacher_id = Id(required=True, metadata={"description": "The employee's id."})
