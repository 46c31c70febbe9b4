"""Form teachers as the interface shows them."""

from __future__ import annotations

from marshmallow import fields

from school_service.web.fields import Id
from school_service.web.schemas import RecordSchema, Schema


class FormTeacherSchema(RecordSchema):
    """Who looks after a batch."""

    batch_id = fields.UUID()
    first_name = fields.String()
    last_name = fields.String()
    image_url = fields.Url(allow_none=True)


class TeacherOfBatchSchema(Schema):
    """An employee to make a form teacher."""

    teacher_id = Id(metadata={"description": "The employee's id."})
