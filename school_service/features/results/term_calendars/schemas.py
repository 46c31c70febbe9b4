"""Term calendars as the interface shows them."""

from __future__ import annotations

from marshmallow import fields, validate

from school_service.features.results.models import MAX_TIMES_OPENED, NOTICE_LENGTH
from school_service.features.school.models import TERMS
from school_service.web.fields import IsoDate, StrictInteger, Text
from school_service.web.schemas import RecordSchema, Schema

_OPENED = "How many times school opened in the term."
_NOTICE = "What its report cards tell parents, such as fees and what to bring."


class CalendarTermSchema(RecordSchema):
    """The term of a calendar."""

    id = fields.UUID()
    term = fields.String(validate=validate.OneOf(TERMS))


class TermCalendarSchema(RecordSchema):
    """When a term begins and ends, and what is told at its end; null where that was never set."""

    term = fields.Nested(CalendarTermSchema)
    start_date = fields.Date(allow_none=True)
    end_date = fields.Date(allow_none=True)
    times_opened = fields.Integer(allow_none=True, metadata={"description": _OPENED})
    next_term_begins = fields.Date(allow_none=True)
    notice = fields.String(allow_none=True, metadata={"description": _NOTICE})


class NewTermCalendarSchema(Schema):
    """A calendar, in place of the one that is there: what is left out is null."""

    start_date = IsoDate(load_default=None, allow_none=True, metadata={"description": "Within the session."})
    end_date = IsoDate(
        load_default=None,
        allow_none=True,
        metadata={"description": "The last day, within the session; not before `start_date`."},
    )
    times_opened = StrictInteger(
        0, MAX_TIMES_OPENED, load_default=None, allow_none=True, metadata={"description": _OPENED}
    )
    next_term_begins = IsoDate(load_default=None, allow_none=True)
    notice = Text(
        NOTICE_LENGTH,
        any_characters=True,
        load_default=None,
        allow_none=True,
        metadata={"description": _NOTICE},
    )
