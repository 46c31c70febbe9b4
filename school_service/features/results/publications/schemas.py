"""Publications as they are answered."""

from __future__ import annotations

from typing import Any, ClassVar

from marshmallow import fields, validate

from school_service.features.attendance.models import DAY_PARTS
from school_service.features.results.figures.schemas import (
    ResultSessionSchema,
    ResultStudentSchema,
    ResultTermSchema,
)
from school_service.features.results.models import PUBLICATION_STATES
from school_service.features.results.publications.chains import ACTS
from school_service.features.results.publications.judging import MOST_MISSING
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


class WithoutAssessmentsSchema(RecordSchema):
    """A subject with takers in which nothing counts."""

    cohort_subject = fields.UUID(metadata={"description": "Its id."})
    subject = fields.String(metadata={"description": "Its name."})
    takers = fields.Integer(metadata={"description": "How many of the batch take it."})


class LackingSubjectsSchema(RecordSchema):
    """The subjects in which nothing counts."""

    count = fields.Integer(metadata={"description": "How many there are."})
    subjects = fields.List(fields.Nested(WithoutAssessmentsSchema), metadata={"description": "By name."})


class LackingStudentsSchema(RecordSchema):
    """The students whose cards lack something."""

    count = fields.Integer(metadata={"description": "How many there are."})
    students = fields.List(
        fields.UUID(), metadata={"description": f"The first {MOST_MISSING} of them, by name."}
    )


def _lacking(description: str, **options: Any) -> fields.Nested:
    return fields.Nested(
        LackingStudentsSchema, metadata={"description": f"Of a dry run: {description}"}, **options
    )


class NewVersionSchema(PublicationSchema):
    """A version of a batch's results as it was released just now, or would be."""

    SOMETIMES: ClassVar[frozenset[str]] = frozenset(
        {"registers_missing", "without_assessments", "comments_missing", "traits_missing", "photos_missing"}
    )

    registers_missing = fields.List(
        fields.Nested(LackingRegisterSchema),
        metadata={
            "description": "Where cards take attendance from the registers, in a dry run: those of the batch that are "
            "not submitted, of the term's days until today. They refuse nothing."
        },
    )
    without_assessments = fields.Nested(
        LackingSubjectsSchema,
        metadata={
            "description": "Of a dry run: the subjects with takers in which nothing counts, and which no card has. The "
            "publication is 409 unless without_subjects names them, or named them for the version before."
        },
    )
    comments_missing = _lacking("who has no comment of the form teacher, or none of the principal.")
    traits_missing = _lacking("who has no trait of a type that has definitions.")
    photos_missing = _lacking("who has no photo; null unless cards show it.", allow_none=True)


class ActSchema(RecordSchema):
    """An act of a chain."""

    act = fields.String(validate=validate.OneOf(ACTS), metadata={"description": "What is to be done."})
    publication = fields.UUID(
        allow_none=True, metadata={"description": "The one to be reopened; null in other acts."}
    )
    batch = fields.UUID()
    term = fields.UUID(metadata={"description": "The id of the term."})
    cohort_subject = fields.UUID(
        allow_none=True, metadata={"description": "The one to be reopened or submitted; null in other acts."}
    )


class ReopenedPublicationSchema(PublicationSchema):
    """A publication as it was reopened, or the acts by which it would be published again."""

    SOMETIMES: ClassVar[frozenset[str]] = frozenset({"chain"})

    chain = fields.List(
        fields.Nested(ActSchema),
        metadata={
            "description": "Of a dry run: what is to be done, in the order in which all succeeds. Scores are changed "
            "between the last act that reopens and the first that submits."
        },
    )


class AverageAndPositionSchema(RecordSchema):
    """The main figures of a report card."""

    average = fields.Decimal(allow_none=True)
    position = fields.Integer(allow_none=True, metadata={"description": "In the batch."})


class DifferenceSchema(RecordSchema):
    """A figure of a card that differs from the version before."""

    member = fields.String(
        metadata={"description": "As in the results of the student, such as subjects.percent."}
    )
    subject = fields.String(
        allow_none=True, metadata={"description": "The subject's name; null without one."}
    )
    before = fields.Raw(allow_none=True, metadata={"description": "Null where it was not there."})
    after = fields.Raw(allow_none=True, metadata={"description": "Null where it is not there any more."})


class ChangedCardSchema(RecordSchema):
    """A report card with changes since the version before."""

    student = fields.Nested(ResultStudentSchema)
    before = fields.Nested(
        AverageAndPositionSchema,
        allow_none=True,
        metadata={"description": "Null where the student had no card in that version."},
    )
    after = fields.Nested(AverageAndPositionSchema)
    differs = fields.List(
        fields.Nested(DifferenceSchema),
        metadata={"description": "What of the student's own differs; empty where there was no card before."},
    )


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
    without_subjects = ListOf(
        Id(),
        load_default=(),
        validate=validate.Length(max=MAX_LEFT_OUT),
        metadata={
            "description": "Cohort subjects with takers in which nothing counts: no card has them. The next versions "
            "need not name them again."
        },
    )


class DryRunSchema(Schema):
    """Whether to do it."""

    dry_run = QueryBoolean(
        load_default=False,
        metadata={"description": "Answer what would be published, or why not, and store nothing."},
    )


class PublicationReopeningSchema(Schema):
    """The reason for reopening a publication."""

    reason = free_text(
        required=False,
        metadata={
            "description": "Stays with the publication, and in the audit log; only a dry run is without it."
        },
    )
    withdraw = StrictBoolean(
        load_default=False,
        metadata={"description": "Show the version to nobody but staff, for ever; REOPENED may be, too."},
    )
    subjects = ListOf(
        Id(),
        load_default=(),
        validate=validate.Length(max=MAX_LEFT_OUT),
        metadata={"description": "In a dry run: the cohort subjects to be changed."},
    )


class ReopeningDryRunSchema(Schema):
    """Whether to reopen it."""

    dry_run = QueryBoolean(
        load_default=False,
        metadata={
            "description": "Answer by which acts it is reopened, corrected and published again, and store nothing."
        },
    )
