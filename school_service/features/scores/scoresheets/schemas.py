"""Score sheets as the interface shows them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from marshmallow import fields, validate, validates_schema
from marshmallow.exceptions import ValidationError

from school_service.features.school.sessions.schemas import term_text
from school_service.features.scores.gradebooks.schemas import GradebookEntrySchema
from school_service.features.scores.models import ABSENCES
from school_service.web.fields import Choice, Id, Input, Points, QueryBoolean
from school_service.web.schemas import RecordSchema, Schema, UploadOptionsSchema


class ScoresheetStudentSchema(RecordSchema):
    """A student on a score sheet."""

    id = fields.UUID()
    first_name = fields.String()
    last_name = fields.String()
    admission_number = fields.String()


class ScoresheetEntrySchema(RecordSchema):
    """The scores of a student with the subject."""

    student = fields.Nested(ScoresheetStudentSchema)
    gradebooks = fields.List(
        fields.Nested(GradebookEntrySchema), metadata={"description": "By category, then due date."}
    )


class ClassScoreSchema(RecordSchema):
    """The score or absence in an assessment of a student with the subject; null without either."""

    student = fields.Nested(ScoresheetStudentSchema)
    batch = fields.UUID(metadata={"description": "Where the student is now."})
    score = fields.Decimal(
        allow_none=True, metadata={"description": "From 0 to the assessment's total points."}
    )
    absence = fields.String(
        allow_none=True,
        validate=validate.OneOf([*ABSENCES, None]),
        metadata={"description": "ABSENT, without leave, counts 0; EXCUSED counts nowhere."},
    )


class ScoreOrAbsence(Input, fields.Raw):
    """A score, or the status of an absence."""

    def __init__(self, **options: Any) -> None:
        self._score, self._absence = Points(), Choice(ABSENCES)
        either = [
            {"type": "number", "minimum": 0},
            {"type": "string", "enum": list(ABSENCES)},
        ]
        super().__init__(metadata={"anyOf": either, **options.pop("metadata", {})}, **options)

    def _deserialize(
        self, value: Any, attr: str | None, data: Mapping[str, Any] | None, **options: Any
    ) -> Any:
        return (self._absence if isinstance(value, str) else self._score).deserialize(value)


class NewClassScoreSchema(Schema):
    """A score or an absence to give a student in an assessment. A member left out stays, null takes it away."""

    student = Id(metadata={"description": "Who takes the subject, and is in the cohort."})
    score = Points(
        required=False,
        allow_none=True,
        metadata={"description": "From 0 to the assessment's total points; it takes an absence away."},
    )
    absence = Choice(
        ABSENCES,
        required=False,
        allow_none=True,
        metadata={"description": "Instead of a score; ABSENT counts 0, EXCUSED counts nowhere."},
    )
    expected = ScoreOrAbsence(
        required=False,
        allow_none=True,
        metadata={
            "description": "What was there when it was read: a score, an absence, or null for neither. Where something "
            "else is there by now, nothing is stored (409). Left out, whatever is there is replaced."
        },
    )

    @validates_schema
    def check_given(self, given: dict[str, Any], **_options: Any) -> None:
        """Refuse a record with neither a score nor an absence for the student."""
        if not given.keys() & {"score", "absence"}:
            raise ValidationError("Give a score or an absence.", "score")


class ScoresheetFilterSchema(Schema):
    """The scores to show."""

    term = term_text("the cohort's", as_id=True, required=False)


class _ArmSchema(Schema):
    batch = Id(
        required=False,
        metadata={"description": "An arm of the cohort: its students alone. A cohort's id is its first arm."},
    )


class ScoreSheetOptionsSchema(_ArmSchema):
    """The columns and students of a sheet to fill in."""

    absences = QueryBoolean(
        load_default=False,
        metadata={"description": "A column for absences, too: ABSENT or EXCUSED instead of a score."},
    )
    arms = QueryBoolean(
        load_default=False, metadata={"description": "A column for the arm that each student is in, too."}
    )


class ScoreSheetUploadSchema(UploadOptionsSchema, _ArmSchema):
    """How to enter a score sheet."""
