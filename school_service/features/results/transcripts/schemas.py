"""Transcripts as they are answered."""

from __future__ import annotations

from marshmallow import fields, validate

from school_service.features.results.figures.schemas import (
    ResultSessionSchema,
    ResultStudentSchema,
    ResultTermSchema,
    figure,
    number,
    words,
)
from school_service.web.schemas import RecordSchema, described, list_of


class TranscriptStudentSchema(ResultStudentSchema):
    """The student of a transcript."""

    dob = fields.Date(allow_none=True)
    admitted_on = fields.Date(allow_none=True)
    left_on = fields.Date(allow_none=True)
    former_school = fields.String(allow_none=True)


class TranscriptSchoolSchema(RecordSchema):
    """The school, as its letterhead has it."""

    name = fields.String()
    address = fields.String(allow_none=True)
    phone_number = fields.String(allow_none=True)
    email_address = fields.String(allow_none=True)
    website = fields.String(allow_none=True)
    motto = fields.String(allow_none=True)
    principal_name = fields.String(allow_none=True)
    principal_title = fields.String(allow_none=True)


class _FiguresSchema(RecordSchema):
    average = figure("With the places of averages.")
    grade = fields.String(allow_none=True)
    position = number("In the batch.")
    of = number("How many were ranked.")


class TranscriptTermSchema(_FiguresSchema):
    """A term, as it was published last."""

    term = fields.Nested(ResultTermSchema)
    version = fields.Integer(validate=validate.Range(min=1))
    published_at = fields.AwareDateTime()


class TranscriptSubjectSchema(RecordSchema):
    """A subject in a session: its percents, and null in a term without one."""

    name = fields.String()
    code = fields.String()
    FIRST = fields.Decimal(allow_none=True)
    SECOND = fields.Decimal(allow_none=True)
    THIRD = fields.Decimal(allow_none=True)
    percent = described(fields.Decimal, "Of the session.")
    grade = fields.String(allow_none=True)


class TranscriptSessionSchema(_FiguresSchema):
    """A session: its result is the one in the student's latest published term."""

    session = fields.Nested(ResultSessionSchema)
    classroom = fields.String()
    batch_name = fields.String()
    terms = list_of(TranscriptTermSchema)
    subjects = list_of(TranscriptSubjectSchema, "By name.")
    outcome = words("Of the promotion at its end; null where there is none.")


class PublishedRecordSchema(RecordSchema):
    """Everything published of a student, whenever it is asked for."""

    student = fields.Nested(TranscriptStudentSchema)
    school = fields.Nested(TranscriptSchoolSchema)
    sessions = list_of(TranscriptSessionSchema, "The oldest first.")
    graduation_class = words("Of graduates.")


class TranscriptSchema(PublishedRecordSchema):
    """Everything published of a student."""

    generated_at = fields.AwareDateTime()
