"""Publications as they are answered."""

from __future__ import annotations

from typing import Any, ClassVar

from marshmallow import fields, validate

from school_service.features.attendance.models import DAY_PARTS
from school_service.features.results.figures.schemas import (
    ResultSessionSchema,
    ResultStudentSchema,
    ResultTermSchema,
    number,
    words,
)
from school_service.features.results.models import PUBLICATION_STATES
from school_service.features.results.publications.chains import ACTS
from school_service.features.results.publications.judging import MOST_MISSING
from school_service.features.school.sessions.schemas import term_text
from school_service.web.fields import (
    Id,
    ListOf,
    Nested,
    QueryBoolean,
    StrictBoolean,
    free_text,
    id_list,
    sought_text,
)
from school_service.web.schemas import RecordSchema, Schema, described, list_of, record_of, text_of

MAX_BATCHES = 50
MAX_LEFT_OUT = 100


class LackingRegisterSchema(RecordSchema):
    """A register of an arm, not submitted."""

    batch = described(fields.UUID, "The arm.")
    batch_name = described(fields.String, "The arm's name.")
    date = described(fields.Date, "A day on which school was open, until today.")
    part = text_of(DAY_PARTS, "The part of that day.")


class PublicationSchema(RecordSchema):
    """A version of a batch's results in a term, as it was released."""

    id = described(fields.UUID, "Null in a dry run.", allow_none=True)
    batch = fields.UUID()
    batch_name = fields.String()
    cohort = fields.UUID()
    session = fields.Nested(ResultSessionSchema)
    term = fields.Nested(ResultTermSchema)
    version = described(fields.Integer, "Of this batch's term.", validate=validate.Range(min=1))
    state = text_of(
        PUBLICATION_STATES,
        "REOPENED: under review, and still shown. WITHDRAWN: shown to staff alone. SUPERSEDED: "
        "replaced by the next version.",
    )
    published_at = described(fields.AwareDateTime, "Null in a dry run.", allow_none=True)
    published_by = described(fields.String, "The user's id, or the client's.")
    published_by_name = fields.String()
    reopened_at = fields.AwareDateTime(allow_none=True)
    reopened_by_name = fields.String(allow_none=True)
    reason = words("Why it was reopened or withdrawn.")
    students = described(fields.Integer, "How many report cards it has.")
    changed = described(
        fields.Integer,
        "How many of them say something else of their student than in the version before, and have "
        "to be printed again; 0 in the first.",
    )
    class_figures_changed = described(
        fields.Integer,
        "How many others differ in the figures of the class alone: their papers stay as they are.",
    )
    left = described(
        fields.List, "Whose cards it has who were not enrolled in the batch any more.", fields.UUID()
    )


class WithoutAssessmentsSchema(RecordSchema):
    """A subject with takers in which nothing counts."""

    cohort_subject = described(fields.UUID, "Its id.")
    subject = described(fields.String, "Its name.")
    takers = described(fields.Integer, "How many of the batch take it.")


class LackingSubjectsSchema(RecordSchema):
    """The subjects in which nothing counts."""

    count = described(fields.Integer, "How many there are.")
    subjects = list_of(WithoutAssessmentsSchema, "By name.")


class LackingStudentsSchema(RecordSchema):
    """The students whose cards lack something."""

    count = described(fields.Integer, "How many there are.")
    students = described(fields.List, f"The first {MOST_MISSING} of them, by name.", fields.UUID())


def _lacking(description: str, **options: Any) -> fields.Nested:
    return record_of(LackingStudentsSchema, f"Of a dry run: {description}", **options)


class NewVersionSchema(PublicationSchema):
    """A version of a batch's results as it was released just now, or would be."""

    SOMETIMES: ClassVar[frozenset[str]] = frozenset(
        {"registers_missing", "without_assessments", "comments_missing", "traits_missing", "photos_missing"}
    )

    registers_missing = list_of(
        LackingRegisterSchema,
        "Where cards take attendance from the registers, in a dry run: registers of the batch that are "
        "not submitted, of the term's days until today. They refuse nothing.",
    )
    without_assessments = record_of(
        LackingSubjectsSchema,
        "Of a dry run: the subjects with takers in which nothing counts, and which no card has. The "
        "publication is 409 unless without_subjects names them, or named them for the version before.",
    )
    comments_missing = _lacking(
        "students without a comment of the form teacher, or without one of the principal."
    )
    traits_missing = _lacking("students without a trait of a type that has definitions.")
    photos_missing = _lacking("students without a photo; null unless cards show it.", allow_none=True)


class ActSchema(RecordSchema):
    """An act of a chain."""

    act = text_of(ACTS, "The kind of act.")
    publication = described(fields.UUID, "The one to be reopened; null in other acts.", allow_none=True)
    batch = fields.UUID()
    term = described(fields.UUID, "The id of the term.")
    cohort_subject = described(
        fields.UUID, "The one to be reopened or submitted; null in other acts.", allow_none=True
    )


class ReopenedPublicationSchema(PublicationSchema):
    """A publication as it was reopened, or the acts by which it would be published again."""

    SOMETIMES: ClassVar[frozenset[str]] = frozenset({"chain"})

    chain = list_of(
        ActSchema,
        "Of a dry run: the acts, in the order in which each succeeds. Scores are changed "
        "between the last act that reopens and the first that submits.",
    )


class AverageAndPositionSchema(RecordSchema):
    """The main figures of a report card."""

    average = fields.Decimal(allow_none=True)
    position = number("In the batch.")


class DifferenceSchema(RecordSchema):
    """A figure of a card that differs from the version before."""

    member = described(fields.String, "As in the results of the student, such as subjects.percent.")
    subject = words("The subject's name; null without one.")
    before = described(fields.Raw, "Null where it was not there.", allow_none=True)
    after = described(fields.Raw, "Null where it is not there any more.", allow_none=True)


class ChangedCardSchema(RecordSchema):
    """A report card with changes since the version before."""

    student = fields.Nested(ResultStudentSchema)
    before = record_of(
        AverageAndPositionSchema, "Null where the student had no card in that version.", allow_none=True
    )
    after = fields.Nested(AverageAndPositionSchema)
    differs = list_of(
        DifferenceSchema, "The student's own figures that differ; empty where there was no card before."
    )


class PublicationFilterSchema(Schema):
    """The publications to list."""

    batch = described(Id, "A batch; a cohort's id is its first batch.", required=False)
    cohort = Id(required=False)
    term = term_text("a", required=False)
    session = described(sought_text, "A session, by id or name.", required=False)


class LeftOutSchema(Schema):
    """A student listed among these results by mistake."""

    student = described(Id, "A student of one of the batches in that term.")
    reason = described(free_text, "Stays in the audit log.")


class PublishedCardSchema(RecordSchema):
    """The report card of a student in a version."""

    student = fields.Nested(ResultStudentSchema)
    average = fields.Decimal(allow_none=True)
    position = number("In the batch.")
    version = described(fields.Integer, "Of the batch's results in the term.", validate=validate.Range(min=1))


class NewPublicationSchema(Schema):
    """The results to publish: all or none."""

    term = term_text("the batches'")
    batches = described(id_list, "Arms of one cohort.", least=1, most=MAX_BATCHES)
    leave_out = described(
        ListOf,
        "Students without a card, until a later publication takes them in.",
        Nested(LeftOutSchema),
        most=MAX_LEFT_OUT,
        load_default=(),
    )
    take_in = described(
        id_list,
        "Students left out of these batches before, who get a card again.",
        most=MAX_LEFT_OUT,
        load_default=(),
    )
    without_subjects = described(
        id_list,
        "Cohort subjects with takers in which nothing counts: no card has them. The next versions "
        "need not name them again.",
        most=MAX_LEFT_OUT,
        load_default=(),
    )


class DryRunSchema(Schema):
    """Whether to do it."""

    dry_run = described(
        QueryBoolean, "Answer the versions to come, or the obstacles, and store nothing.", load_default=False
    )


class PublicationReopeningSchema(Schema):
    """The reason for reopening a publication."""

    reason = described(
        free_text,
        "Stays with the publication, and in the audit log; only a dry run is without it.",
        required=False,
    )
    withdraw = described(
        StrictBoolean,
        "Show the version to nobody but staff, for ever; REOPENED may be, too.",
        load_default=False,
    )
    subjects = described(
        id_list, "In a dry run: the cohort subjects to be changed.", most=MAX_LEFT_OUT, load_default=()
    )


class ReopeningDryRunSchema(Schema):
    """Whether to reopen it."""

    dry_run = described(
        QueryBoolean,
        "Answer by which acts it is reopened, corrected and published again, and store nothing.",
        load_default=False,
    )
