"""Score sheets as the interface shows them."""

from __future__ import annotations

from marshmallow import fields

from school_service.features.gradebooks.schemas import GradebookEntrySchema
from school_service.web.fields import Id, Schema


class ScoresheetStudentSchema(Schema):
    """A student on a score sheet."""

    id = fields.UUID(required=True)
    first_name = fields.String(required=True)
    last_name = fields.String(required=True)
    admission_number = fields.String(required=True)


class ScoresheetEntrySchema(Schema):
    """The scores of a student who takes the subject."""

    student = fields.Nested(ScoresheetStudentSchema, required=True)
    gradebooks = fields.List(
        fields.Nested(GradebookEntrySchema),
        required=True,
        metadata={"description": "By category, then due date."},
    )


class ScoresheetFilterSchema(Schema):
    """Which scores to show."""

    term = Id(metadata={"description": "Those of the assessments of this term."})
