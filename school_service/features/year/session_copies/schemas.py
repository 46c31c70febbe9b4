"""Copies of sessions as the interface shows them."""

from __future__ import annotations

from marshmallow import fields

from school_service.features.year.session_copies.parts import COPIED_PARTS, COPY_OUTCOMES
from school_service.web.fields import Choice, ListOf, QueryBoolean, Text
from school_service.web.schemas import RecordSchema, Schema, described, list_of, text_of


class CopyOptionsSchema(Schema):
    """How to copy a session."""

    dry_run = described(
        QueryBoolean, "Answer the records to come, row by row, and store nothing.", load_default=False
    )


class NewCopySchema(Schema):
    """The source of a copy, and the parts to copy."""

    session = described(Text, "The session that is copied from: its id or its name.")
    parts = described(
        ListOf,
        "Which parts, all without it. TERMS: the terms, and their calendars with shifted dates; "
        "COHORTS: the cohorts with their arms; SUBJECTS: their cohort subjects; ASSESSMENTS, with shifted due "
        "dates; FORM_TEACHERS of the arms.",
        Choice(COPIED_PARTS),
        least=1,
        most=len(COPIED_PARTS),
        load_default=list(COPIED_PARTS),
    )


class CopiedRecordSchema(RecordSchema):
    """A record of the source of a copy, and its outcome."""

    part = text_of(COPIED_PARTS)
    record = described(fields.String, "The kind of record, as the audit log calls it, such as `batch`.")
    name = described(fields.String, "In words, such as `JSS 1 Mathematics, First term: CA 1`.")
    outcome = text_of(
        COPY_OUTCOMES, "MADE, PRESENT where there is such a one already, or LEFT_OUT for a reason."
    )
    reason = described(fields.String, "Why it is left out.", allow_none=True)
    id = described(
        fields.UUID,
        "Of the record in the new session, of a form teacher the employee's; null where it is left "
        "out, and in a dry run where it would be made.",
        allow_none=True,
    )
    start_date = described(fields.Date, "Of a calendar, shifted.", allow_none=True)
    end_date = described(fields.Date, "Of a calendar, shifted.", allow_none=True)
    due_date = described(fields.Date, "Of an assessment, shifted.", allow_none=True)


class SessionCopySchema(RecordSchema):
    """The result of a copy of a session, or of a dry run: how many records of each outcome, and each by itself."""

    session = fields.UUID()
    copied_from = fields.UUID()
    dry_run = fields.Boolean()
    made = fields.Integer()
    present = fields.Integer()
    left_out = fields.Integer()
    rows = list_of(CopiedRecordSchema)
