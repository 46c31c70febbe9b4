"""Comments as the interface shows them."""

from __future__ import annotations

from marshmallow import fields

from school_service.features.people.students.schemas import NamedStudentSchema
from school_service.features.school.sessions.schemas import term_text
from school_service.features.year.models import COMMENT_LENGTH, MAX_TIMES_OPENED
from school_service.web.fields import MAX_IDS, Id, ListOf, Nested, StrictInteger, Text
from school_service.web.schemas import RecordSchema, Schema, UploadOptionsSchema, described

_PRESENT = "On how many of the times that school opened the student came."


class CommentedStudentSchema(NamedStudentSchema):
    """A student of the batch."""


class TermCommentSchema(RecordSchema):
    """The comments on a student's term; null until they are entered."""

    student = fields.Nested(CommentedStudentSchema)
    times_present = described(fields.Integer, _PRESENT, allow_none=True)
    form_teacher_comment = fields.String(allow_none=True)
    principal_comment = fields.String(allow_none=True)
    updated_at = fields.AwareDateTime(allow_none=True)


class CommentFilterSchema(Schema):
    """The class and term of the comments to show."""

    batch = described(Id, "A cohort's id is its first batch.")
    term = term_text("the batch's")


class CommentUploadSchema(UploadOptionsSchema):
    """The batch of a sheet, and how to enter it."""

    batch = Id()
    term = described(
        Text, "As for the download; of a sheet without a sheet Details, such as a .csv file.", required=False
    )


class ExpectedCommentSchema(Schema):
    """The comments on a student's term when they were read; an omitted member expects nothing."""

    times_present = StrictInteger(0, MAX_TIMES_OPENED, required=False, allow_none=True)
    form_teacher_comment = Text(COMMENT_LENGTH, any_characters=True, required=False, allow_none=True)
    principal_comment = Text(COMMENT_LENGTH, any_characters=True, required=False, allow_none=True)


class NewTermCommentSchema(Schema):
    """Comments on a student's term: an omitted member stays, null clears it."""

    student = described(Id, "In the batch.")
    times_present = described(StrictInteger, _PRESENT, 0, MAX_TIMES_OPENED, required=False, allow_none=True)
    form_teacher_comment = Text(COMMENT_LENGTH, any_characters=True, required=False, allow_none=True)
    principal_comment = described(
        Text,
        "To change it needs `write:results`, too.",
        COMMENT_LENGTH,
        any_characters=True,
        required=False,
        allow_none=True,
    )
    expected = described(
        Nested,
        "The members as they were read. Where a member to be replaced is another by now, "
        "nothing is stored (409).",
        ExpectedCommentSchema,
        required=False,
    )


class TermCommentsSchema(CommentFilterSchema):
    """Comments to enter; other students' stay."""

    comments = ListOf(Nested(NewTermCommentSchema), least=1, most=MAX_IDS)
