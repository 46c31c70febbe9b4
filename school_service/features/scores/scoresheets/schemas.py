"""Score sheets as the interface shows them."""

from __future__ import annotations

from marshmallow import fields

from school_service.features.school.sessions.schemas import term_text
from school_service.features.scores.gradebooks.schemas import GradebookEntrySchema
from school_service.web.fields import Id, QueryBoolean
from school_service.web.schemas import RecordSchema, Schema, UploadOptionsSchema


class ScoresheetStudentSchema(RecordSchema):
    """A student on a score sheet."""

    id = fields.UUID()
    first_name = fields.String()
    last_name = fields.String()
    admission_number = fields.String()


class ScoresheetEntrySchema(RecordSchema):
    """The scores of a student who takes the subject."""

    student = fields.Nested(ScoresheetStudentSchema)
    gradebooks = fields.List(
        fields.Nested(GradebookEntrySchema), metadata={"description": "By category, then due date."}
    )


class ScoresheetFilterSchema(Schema):
    """Which scores to show."""

    term = term_text("the cohort's", as_id=True, required=False)


class _ArmSchema(Schema):
    batch = Id(
        required=False,
        metadata={"description": "An arm of the cohort: its students alone. A cohort's id is its first arm."},
    )


class ScoreSheetOptionsSchema(_ArmSchema):
    """What a sheet to fill in has."""

    absences = QueryBoolean(
        load_default=False,
        metadata={"description": "A column for absences, too: ABSENT or EXCUSED instead of a score."},
    )
    arms = QueryBoolean(
        load_default=False, metadata={"description": "A column for the arm that each student is in, too."}
    )


class ScoreSheetUploadSchema(UploadOptionsSchema, _ArmSchema):
    """How to enter a score sheet."""
