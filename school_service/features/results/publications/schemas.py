"""Publications as they are answered."""

from __future__ import annotations

from typing import ClassVar

from marshmallow import fields, validate

from school_service.features.attendance.models import DAY_PARTS
from school_service.features.results.figures.schemas import (
    ResultSessionSchema,
    ResultStudentSchema,
    ResultTermSchema,
)
from school_service.features.results.models import PUBLICATION_STATES
from school_service.features.school.sessions.schemas import term_text
from school_service.web.fields import Id, ListOf, Nested, QueryBoolean, StrictBoolean, free_text, sought_text
from school_service.web.schemas import RecordSchema, Schema

MAX_BATCHES = 50
MAX_LEFT_OUT = 100


class LackingRegisterSchema(RecordSchema):
    """A register of an arm, not submitted."""

    batch = fields.UUID(metadata={"description": "The arm."})
    batch_name = fields.String(metadata={"description": "The arm's name."})
    date = fields.Date(metadata={"description": "A day on which school was open, until today."})
    part = fields.String(
        validate=validate.OneOf(DAY_PARTS), metadata={"description": "The part of that day."}
    )


class PublicationSchema(RecordSchema):
    """A version of a batch's results in a term, as it was released."""

    id = fields.UUID(allow_none=True, metadata={"description": "Null in a dry run."})
    batch = fields.UUID()
    batch_name = fields.String()
    cohort = fields.UUID()
    session = fields.Nested(ResultSessionSchema)
    term = fields.Nested(ResultTermSchema)
    version = fields.Integer(
        validate=validate.Range(min=1), metadata={"description": "Of this batch's term."}
    )
    state = fields.String(
        validate=validate.OneOf(PUBLICATION_STATES),
        metadata={
            "description": "REOPENED: under review, and still shown. WITHDRAWN: shown to staff alone. SUPERSEDED: "
            "replaced by the next version."
        },
    )
    published_at = fields.AwareDateTime(allow_none=True, metadata={"description": "Null in a dry run."})
    published_by = fields.String(metadata={"description": "The user's id, or the client's."})
    published_by_name = fields.String()
    reopened_at = fields.AwareDateTime(allow_none=True)
    reopened_by_name = fields.String(allow_none=True)
    reason = fields.String(allow_none=True, metadata={"description": "Why it was reopened or withdrawn."})
    students = fields.Integer(metadata={"description": "How many report cards it has."})
    changed = fields.Integer(
        metadata={
            "description": "How many of them say something else of their student than in the version before, and have "
            "to be printed again; 0 in the first."
        }
    )
    class_figures_changed = fields.Integer(
        metadata={
            "description": "How many others differ in the figures of the class alone: their papers stay as they are."
        }
    )
    left = fields.List(
        fields.UUID(),
        metadata={"description": "Whose cards it has who were not enrolled in the batch any more."},
    )


class NewVersionSchema(PublicationSchema):
    """A version of a batch's results as it was released just now, or would be."""

    SOMETIMES: ClassVar[frozenset[str]] = frozenset({"registers_missing"})

    registers_missing = fields.List(
        fields.Nested(LackingRegisterSchema),
        metadata={
            "description": "Where cards take attendance from the registers, in a dry run: those of the batch that are "
            "not submitted, of the term's days until today. They refuse nothing."
        },
    )


class AverageAndPositionSchema(RecordSchema):
    """The main figures of a report card."""

    average = fields.Decimal(allow_none=True)
    position = fields.Integer(allow_none=True, metadata={"description": "In the batch."})


class ChangedCardSchema(RecordSchema):
    """A report card with changes since the version before."""

    student = fields.Nested(ResultStudentSchema)
    before = fields.Nested(
        AverageAndPositionSchema,
        allow_none=True,
        metadata={"description": "Null where the student had no card in that version."},
    )
    after = fields.Nested(AverageAndPositionSchema)


class PublicationFilterSchema(Schema):
    """The publications to list."""

    batch = Id(required=False, metadata={"description": "A batch; a cohort's id is its first batch."})
    cohort = Id(required=False)
    term = term_text("a", required=False)
    session = sought_text(required=False, metadata={"description": "A session, by id or name."})


class LeftOutSchema(Schema):
    """A student listed among these results by mistake."""

    student = Id(metadata={"description": "Who belongs to one of the batches in that term."})
    reason = free_text(metadata={"description": "Stays in the audit log."})


class PublishedCardSchema(RecordSchema):
    """The report card of a student in a version."""

    student = fields.Nested(ResultStudentSchema)
    average = fields.Decimal(allow_none=True)
    position = fields.Integer(allow_none=True, metadata={"description": "In the batch."})
    version = fields.Integer(
        validate=validate.Range(min=1), metadata={"description": "Of the batch's results in the term."}
    )


class NewPublicationSchema(Schema):
    """The results to publish: all or none."""

    term = term_text("the batches'")
    batches = ListOf(
        Id(),
        validate=validate.Length(min=1, max=MAX_BATCHES),
        metadata={"description": "Arms of one cohort."},
    )
    leave_out = ListOf(
        Nested(LeftOutSchema),
        load_default=(),
        validate=validate.Length(max=MAX_LEFT_OUT),
        metadata={"description": "Who gets no card, until a later publication takes them in."},
    )
    take_in = ListOf(
        Id(),
        load_default=(),
        validate=validate.Length(max=MAX_LEFT_OUT),
        metadata={"description": "Who was left out of these batches, and gets a card again."},
    )


class DryRunSchema(Schema):
    """Whether to do it."""

    dry_run = QueryBoolean(
        load_default=False,
        metadata={"description": "Answer what would be published, or why not, and store nothing."},
    )


class PublicationReopeningSchema(Schema):
    """The reason for reopening a publication."""

    reason = free_text(metadata={"description": "Stays with the publication, and in the audit log."})
    withdraw = StrictBoolean(
        load_default=False,
        metadata={"description": "Show the version to nobody but staff, for ever; REOPENED may be, too."},
    )
