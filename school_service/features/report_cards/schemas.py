"""What is asked for on paper, and what a verified card tells."""

from __future__ import annotations

from marshmallow import fields, validate

from school_service.features.report_cards.models import CARD_STATES, FORMATS, MAX_CARDS, PDF
from school_service.features.sessions.models import TERMS
from school_service.web.fields import Choice, Id, ListOf, QueryBoolean, Text
from school_service.web.schemas import RecordSchema, Schema


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

    term = Text(
        metadata={
            "description": "FIRST, SECOND or THIRD of the student's latest session, or the id of a term."
        }
    )


class ReportCardsFilterSchema(_DraftSchema):
    """Which cards of a batch to print, and as what."""

    batch_id = Id(data_key="batch", metadata={"description": "A batch; a cohort's id is its first batch."})
    term = Text(
        metadata={"description": "FIRST, SECOND or THIRD of the batch's session, or the id of a term of it."}
    )
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

    name = fields.String()
    admission_number = fields.String()


class VerifiedSubjectSchema(RecordSchema):
    """A subject on the card."""

    name = fields.String()
    percent = fields.Decimal(allow_none=True)
    grade = fields.String(allow_none=True)


class VerifiedCardSchema(RecordSchema):
    """What a report card says, for whoever holds the paper. Of a withdrawn one: that it was withdrawn."""

    state = fields.String(
        validate=validate.OneOf(CARD_STATES),
        metadata={
            "description": "REPLACED: there is a newer one, and these are the figures of this paper. WITHDRAWN: the "
            "school does not stand by it any more."
        },
    )
    school = fields.String()
    student = fields.Nested(VerifiedStudentSchema, allow_none=True)
    class_ = fields.String(data_key="class", attribute="class", allow_none=True)
    session = fields.String(allow_none=True)
    term = fields.String(allow_none=True, validate=validate.OneOf([*TERMS, None]))
    version = fields.Integer()
    published_at = fields.DateTime()
    replaced_at = fields.DateTime(
        allow_none=True, metadata={"description": "When the next version was published."}
    )
    average = fields.Decimal(allow_none=True)
    grade = fields.String(allow_none=True)
    position = fields.Integer(
        allow_none=True, metadata={"description": "In the class, where the school shows it."}
    )
    of = fields.Integer(allow_none=True, metadata={"description": "How many have a position."})
    subjects = fields.List(fields.Nested(VerifiedSubjectSchema), allow_none=True)
