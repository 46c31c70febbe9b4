"""Score sheets as the interface shows them."""

from __future__ import annotations

from typing import Any

from marshmallow import fields, validates_schema
from marshmallow.exceptions import ValidationError

from school_service.features.school.sessions.schemas import term_text
from school_service.features.scores.gradebooks.schemas import GradebookEntrySchema
from school_service.features.scores.models import ABSENCES
from school_service.web.fields import Choice, Id, Input, Points, QueryBoolean
from school_service.web.schemas import RecordSchema, Schema, UploadOptionsSchema, described, list_of, text_of


class ScoresheetStudentSchema(RecordSchema):
    """A student on a score sheet."""

    id = fields.UUID()
    first_name = fields.String()
    last_name = fields.String()
    admission_number = fields.String()


class ScoresheetEntrySchema(RecordSchema):
    """The scores of a student with the subject."""

    student = fields.Nested(ScoresheetStudentSchema)
    gradebooks = list_of(GradebookEntrySchema, "By category, then due date.")


class ClassScoreSchema(RecordSchema):
    """The score or absence in an assessment of a student with the subject; null without either."""

    student = fields.Nested(ScoresheetStudentSchema)
    batch = described(fields.UUID, "Where the student is now.")
    score = described(fields.Decimal, "From 0 to the assessment's total points.", allow_none=True)
    absence = text_of(
        [*ABSENCES, None], "ABSENT, without leave, counts 0; EXCUSED counts nowhere.", allow_none=True
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

    def _deserialize(self, value: Any, *arguments: Any, **options: Any) -> Any:
        return (self._absence if isinstance(value, str) else self._score).deserialize(value)


class NewClassScoreSchema(Schema):
    """A score or an absence to give a student in an assessment. A member left out stays, null takes it away."""

    student = described(Id, "A student of the cohort who takes the subject.")
    score = described(
        Points,
        "From 0 to the assessment's total points; it takes an absence away.",
        required=False,
        allow_none=True,
    )
    absence = described(
        Choice,
        "Instead of a score; ABSENT counts 0, EXCUSED counts nowhere.",
        ABSENCES,
        required=False,
        allow_none=True,
    )
    expected = described(
        ScoreOrAbsence,
        "The mark as it was read: a score, an absence, or null for neither. Where it is another by now, "
        "nothing is stored (409). Left out, any mark is replaced.",
        required=False,
        allow_none=True,
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
    batch = described(
        Id, "An arm of the cohort: its students alone. A cohort's id is its first arm.", required=False
    )


class ScoreSheetOptionsSchema(_ArmSchema):
    """The columns and students of a sheet to fill in."""

    absences = described(
        QueryBoolean, "A column for absences, too: ABSENT or EXCUSED instead of a score.", load_default=False
    )
    arms = described(QueryBoolean, "A column for the arm that each student is in, too.", load_default=False)


class ScoreSheetUploadSchema(UploadOptionsSchema, _ArmSchema):
    """How to enter a score sheet."""
