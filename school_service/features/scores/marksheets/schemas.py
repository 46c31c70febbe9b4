"""Mark sheets, and marks as a list."""

from __future__ import annotations

from typing import ClassVar

from marshmallow import fields

from school_service.features.school.sessions.schemas import term_text
from school_service.features.scores.models import ABSENCES, CATEGORIES
from school_service.features.scores.scoresheets.schemas import NewClassScoreSchema, ScoresheetStudentSchema
from school_service.web.fields import Id, QueryBoolean
from school_service.web.schemas import (
    NamedSchema,
    RecordSchema,
    Schema,
    UploadedRowsSchema,
    UploadOptionsSchema,
    described,
    list_of,
    text_of,
)


class MarkedAssessmentSchema(NamedSchema):
    """An assessment of a subject in a term."""

    abbreviation = fields.String()
    category = text_of(CATEGORIES)
    total_points = described(fields.Decimal, "The highest score.")


class SubjectMarkSchema(RecordSchema):
    """The score or absence of a student in an assessment; null without either."""

    student = fields.Nested(ScoresheetStudentSchema)
    assessment = fields.UUID()
    score = described(fields.Decimal, "From 0 to the assessment's total points.", allow_none=True)
    absence = text_of(
        [*ABSENCES, None], "ABSENT, without leave, counts 0; EXCUSED counts nowhere.", allow_none=True
    )


class SubjectMarkTotalSchema(RecordSchema):
    """The marks of an arm in an assessment, summed up."""

    assessment = fields.UUID()
    column = described(fields.String, "The heading of its column in a mark sheet, such as `CA1 (20)`.")
    scored = described(fields.Integer, "How many have a score.")
    sum = described(fields.Decimal, "Of the scores.")
    absent = described(fields.Integer, "How many are ABSENT.")
    excused = described(fields.Integer, "How many are EXCUSED.")
    blank = described(fields.Integer, "How many have neither a score nor an absence.")


class SubjectMarksSchema(RecordSchema):
    """The marks of an arm in the assessments of a subject and a term."""

    assessments = list_of(MarkedAssessmentSchema, "By category, then due date.")
    scores = list_of(SubjectMarkSchema, "Of each student in each assessment: by the students' names.")
    totals = list_of(SubjectMarkTotalSchema, "Of each assessment.")


class NewSubjectMarkSchema(NewClassScoreSchema):
    """A score or an absence to give a student in an assessment. A member left out stays, null takes it away."""

    assessment = described(Id, "Of the subject, in the term.")


class MarksFilterSchema(Schema):
    """The arm and the term of marks."""

    batch = described(Id, "An arm of the cohort. A cohort's id is its first arm.")
    term = term_text("the cohort's")


class NewMarksFilterSchema(MarksFilterSchema):
    """Where to enter marks, and how."""

    dry_run = described(
        QueryBoolean, "Answer the marks as they would be, and store nothing.", load_default=False
    )


class MarkSheetUploadSchema(MarksFilterSchema, UploadOptionsSchema):
    """Where to enter a mark sheet, and how."""


class UploadedMarksSchema(UploadedRowsSchema):
    """The effects of an uploaded mark sheet, by row, and the marks of the arm then."""

    SOMETIMES: ClassVar[frozenset[str]] = UploadedRowsSchema.SOMETIMES

    totals = list_of(SubjectMarkTotalSchema, "Of a dry run: as they would be.")
