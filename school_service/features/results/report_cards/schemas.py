"""Requests for papers, and the verification of a card."""

from __future__ import annotations

from typing import ClassVar

from marshmallow import fields, validate

from school_service.features.results.figures.schemas import (
    ResultSessionSchema,
    ResultTermSchema,
    StudentTermSchema,
)
from school_service.features.results.models import CARD_STATES, FORMATS, MAX_CARDS, PDF
from school_service.features.school.models import TERMS
from school_service.features.school.sessions.schemas import term_text
from school_service.web.fields import Choice, Id, ListOf, QueryBoolean
from school_service.web.schemas import RecordSchema, Schema, described


class _DraftSchema(Schema):
    draft = described(
        QueryBoolean,
        "Live figures in place of what is published, with DRAFT across the page and nothing to verify.",
        load_default=False,
    )


class ReportCardFilterSchema(StudentTermSchema, _DraftSchema):
    """The card of a student to print."""


class ReportCardsFilterSchema(_DraftSchema):
    """The cards of a batch to print, and their file format."""

    batch_id = described(Id, "A batch; a cohort's id is its first batch.", data_key="batch")
    term = term_text("the batch's")
    students = described(
        ListOf,
        "Theirs alone: the parameter once for each student.",
        Id(),
        load_default=None,
        validate=validate.Length(1, MAX_CARDS),
    )
    format = described(Choice, "`pdf`: one file for all. `zip`: one for each.", FORMATS, load_default=PDF)


class BatchOfCardSchema(RecordSchema):
    """The arm of a card, with the name that it had."""

    id = fields.UUID()
    name = fields.String()


class StudentCardSchema(RecordSchema):
    """A report card in force of a student."""

    session = fields.Nested(ResultSessionSchema)
    term = fields.Nested(ResultTermSchema)
    batch = fields.Nested(BatchOfCardSchema)
    version = described(fields.Integer, "Of the batch's results in the term.", validate=validate.Range(min=1))
    average = described(fields.Decimal, "Of the term.", allow_none=True)
    position = described(
        fields.Integer, "In the batch; null for families where the school does not show it.", allow_none=True
    )
    published_at = described(fields.AwareDateTime, "When this version was.")


class VerifiedStudentSchema(RecordSchema):
    """The student of a card."""

    name = described(fields.String, "First, middle and last name.")
    admission_number = described(fields.String, "The admission number.")


class VerifiedSubjectSchema(RecordSchema):
    """A subject on the card."""

    name = described(fields.String, "The subject.")
    percent = described(fields.Decimal, "As it is printed.", allow_none=True)
    grade = described(fields.String, "Of the percent.", allow_none=True)


class VerifiedSessionSubjectSchema(RecordSchema):
    """A subject of a session on a transcript."""

    name = described(fields.String, "The subject.")
    FIRST = described(fields.Decimal, "Percent of the first term.", allow_none=True)
    SECOND = described(fields.Decimal, "Percent of the second term.", allow_none=True)
    THIRD = described(fields.Decimal, "Percent of the third term.", allow_none=True)
    percent = described(fields.Decimal, "Of the session.", allow_none=True)
    grade = described(fields.String, "Of the session's percent.", allow_none=True)


class VerifiedSessionSchema(RecordSchema):
    """A session on a transcript."""

    session = described(fields.String, "The academic session.")
    class_ = described(fields.String, "The class.", data_key="class", attribute="class")
    average = described(fields.Decimal, "Of the session.", allow_none=True)
    grade = described(fields.String, "Of the average.", allow_none=True)
    position = described(fields.Integer, "In the class, where the paper has it.", allow_none=True)
    of = described(fields.Integer, "How many have a position.", allow_none=True)
    subjects = described(
        fields.List, "In the order of the paper.", fields.Nested(VerifiedSessionSubjectSchema)
    )


class VerifiedPaperSchema(RecordSchema):
    """The contents of a report card or a transcript, for its holder. Of a withdrawn one: its withdrawal.

    A transcript has `sessions`, and null for members of a single term.
    """

    SOMETIMES: ClassVar[frozenset[str]] = frozenset({"sessions"})

    state = described(
        fields.String,
        "CURRENT: what this paper says of the student holds. REPLACED: there is a newer one that "
        "says something else, and these are the figures of this paper. WITHDRAWN: the school does not stand by it "
        "any more.",
        validate=validate.OneOf(CARD_STATES),
    )
    school = described(fields.String, "The name of the school, as on the paper.")
    student = described(fields.Nested, "Whose card it is.", VerifiedStudentSchema, allow_none=True)
    class_ = described(fields.String, "Class and arm.", data_key="class", attribute="class", allow_none=True)
    session = described(fields.String, "The academic session.", allow_none=True)
    term = described(fields.String, "The term.", allow_none=True, validate=validate.OneOf([*TERMS, None]))
    version = described(fields.Integer, "Of this class's results in the term.", allow_none=True)
    published_at = described(
        fields.DateTime, "When this version was published; of a transcript, when it was issued."
    )
    replaced_at = described(fields.DateTime, "When the newer one was published.", allow_none=True)
    note = described(
        fields.String,
        "Of a CURRENT paper: that figures of the class have been corrected since its version, or that the promotion "
        "was changed.",
        allow_none=True,
    )
    average = described(fields.Decimal, "Of the term.", allow_none=True)
    grade = described(fields.String, "Of the average.", allow_none=True)
    position = described(fields.Integer, "In the class, where the school shows it.", allow_none=True)
    of = described(fields.Integer, "How many have a position.", allow_none=True)
    subjects = described(
        fields.List, "In the order of the card.", fields.Nested(VerifiedSubjectSchema), allow_none=True
    )
    sessions = described(
        fields.List,
        "Of a transcript alone: its sessions, the oldest first.",
        fields.Nested(VerifiedSessionSchema),
    )
