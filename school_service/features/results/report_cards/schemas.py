"""What is asked for on paper, and what a verified card tells."""

from __future__ import annotations

from typing import Any, ClassVar

import marshmallow as ma
from marshmallow import fields, validate

from school_service.features.results.figures.schemas import (
    refuse_version,
    session_of_student,
    version_number,
)
from school_service.features.results.models import CARD_STATES, FORMATS, MAX_CARDS, PDF
from school_service.features.school.models import TERMS
from school_service.features.school.sessions.schemas import term_text
from school_service.web.fields import Choice, Id, ListOf, QueryBoolean
from school_service.web.schemas import RecordSchema, Schema


def _said(kind: type[fields.Field[Any]], description: str, **options: Any) -> fields.Field[Any]:
    """Make a field that is described."""
    return kind(metadata={"description": description}, **options)


class _DraftSchema(Schema):
    draft = QueryBoolean(
        load_default=False,
        metadata={
            "description": "Live figures in place of what is published, with DRAFT across the page and nothing to "
            "verify."
        },
    )


class ReportCardFilterSchema(_DraftSchema):
    """Which card of a student to print."""

    term = term_text("the student's latest")
    session = session_of_student()
    version = version_number()

    @ma.validates_schema
    def _check_version(self, filters: dict[str, Any], **_options: Any) -> None:
        refuse_version("draft", filters)


class ReportCardsFilterSchema(_DraftSchema):
    """Which cards of a batch to print, and as what."""

    batch_id = Id(data_key="batch", metadata={"description": "A batch; a cohort's id is its first batch."})
    term = term_text("the batch's")
    students = ListOf(
        Id(),
        load_default=None,
        validate=validate.Length(1, MAX_CARDS),
        metadata={"description": "Theirs alone: the parameter once for each student."},
    )
    format = Choice(
        FORMATS,
        load_default=PDF,
        metadata={"description": "`pdf`: one file for all. `zip`: one for each."},
    )


class VerifiedStudentSchema(RecordSchema):
    """Whose card it is."""

    name = _said(fields.String, "First, middle and last name.")
    admission_number = _said(fields.String, "The admission number.")


class VerifiedSubjectSchema(RecordSchema):
    """A subject on the card."""

    name = _said(fields.String, "The subject.")
    percent = _said(fields.Decimal, "As it is printed.", allow_none=True)
    grade = _said(fields.String, "Of the percent.", allow_none=True)


class VerifiedSessionSubjectSchema(RecordSchema):
    """A subject of a session on a transcript."""

    name = _said(fields.String, "The subject.")
    FIRST = _said(fields.Decimal, "Percent of the first term.", allow_none=True)
    SECOND = _said(fields.Decimal, "Percent of the second term.", allow_none=True)
    THIRD = _said(fields.Decimal, "Percent of the third term.", allow_none=True)
    percent = _said(fields.Decimal, "Of the session.", allow_none=True)
    grade = _said(fields.String, "Of the session's percent.", allow_none=True)


class VerifiedSessionSchema(RecordSchema):
    """A session on a transcript."""

    session = _said(fields.String, "The academic session.")
    class_ = _said(fields.String, "The class.", data_key="class", attribute="class")
    average = _said(fields.Decimal, "Of the session.", allow_none=True)
    grade = _said(fields.String, "Of the average.", allow_none=True)
    position = _said(fields.Integer, "In the class, where the paper has it.", allow_none=True)
    of = _said(fields.Integer, "How many have a position.", allow_none=True)
    subjects = fields.List(
        fields.Nested(VerifiedSessionSubjectSchema), metadata={"description": "In the order of the paper."}
    )


class VerifiedPaperSchema(RecordSchema):
    """What a report card or a transcript says, for whoever holds it. Of a withdrawn one: that it was withdrawn.

    A transcript has `sessions`, and null for what is of a single term.
    """

    SOMETIMES: ClassVar[frozenset[str]] = frozenset({"sessions"})

    state = fields.String(
        validate=validate.OneOf(CARD_STATES),
        metadata={
            "description": "CURRENT: what this paper says of the student holds. REPLACED: there is a newer one that "
            "says something else, and these are the figures of this paper. WITHDRAWN: the school does not stand by it "
            "any more."
        },
    )
    school = _said(fields.String, "The name of the school, as on the paper.")
    student = fields.Nested(
        VerifiedStudentSchema, allow_none=True, metadata={"description": "Whose card it is."}
    )
    class_ = _said(fields.String, "Class and arm.", data_key="class", attribute="class", allow_none=True)
    session = _said(fields.String, "The academic session.", allow_none=True)
    term = _said(fields.String, "The term.", allow_none=True, validate=validate.OneOf([*TERMS, None]))
    version = _said(fields.Integer, "Of this class's results in the term.", allow_none=True)
    published_at = _said(
        fields.DateTime, "When this version was published; of a transcript, when it was issued."
    )
    replaced_at = fields.DateTime(
        allow_none=True, metadata={"description": "When the newer one was published."}
    )
    note = _said(
        fields.String,
        "Of a CURRENT paper of an older version, where figures of the class have been corrected since.",
        allow_none=True,
    )
    average = _said(fields.Decimal, "Of the term.", allow_none=True)
    grade = _said(fields.String, "Of the average.", allow_none=True)
    position = fields.Integer(
        allow_none=True, metadata={"description": "In the class, where the school shows it."}
    )
    of = fields.Integer(allow_none=True, metadata={"description": "How many have a position."})
    subjects = fields.List(
        fields.Nested(VerifiedSubjectSchema),
        allow_none=True,
        metadata={"description": "In the order of the card."},
    )
    sessions = fields.List(
        fields.Nested(VerifiedSessionSchema),
        metadata={"description": "Of a transcript alone: its sessions, the oldest first."},
    )
