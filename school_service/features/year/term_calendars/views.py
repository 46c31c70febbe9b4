"""Term calendars over HTTP."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from flask.views import MethodView
from marshmallow import fields

from school_service.core.permissions import Permission
from school_service.core.reach import EVERYTHING
from school_service.features.school.models import NOTICE_LENGTH, TERMS
from school_service.features.year.models import MAX_TIMES_OPENED
from school_service.features.year.term_calendars import service
from school_service.web.blueprint import Blueprint
from school_service.web.fields import IsoDate, StrictInteger, Text
from school_service.web.schemas import RecordSchema, Schema, described, text_of

_OPENED = "How many times school opened in the term."
_NOTICE = "A notice to parents on report cards, such as fees and things to bring."


class CalendarTermSchema(RecordSchema):
    """The term of a calendar."""

    id = fields.UUID()
    term = text_of(TERMS)


class TermCalendarSchema(RecordSchema):
    """When a term begins and ends, and the notice at its end; null until they are set."""

    term = fields.Nested(CalendarTermSchema)
    start_date = fields.Date(allow_none=True)
    end_date = fields.Date(allow_none=True)
    times_opened = described(fields.Integer, _OPENED, allow_none=True)
    next_term_begins = fields.Date(allow_none=True)
    notice = described(fields.String, _NOTICE, allow_none=True)


class NewTermCalendarSchema(Schema):
    """A calendar, in place of the present one: an omitted member is null."""

    start_date = described(IsoDate, "Within the session.", load_default=None, allow_none=True)
    end_date = described(
        IsoDate,
        "The last day, within the session; not before `start_date`.",
        load_default=None,
        allow_none=True,
    )
    times_opened = described(StrictInteger, _OPENED, 0, MAX_TIMES_OPENED, load_default=None, allow_none=True)
    next_term_begins = IsoDate(load_default=None, allow_none=True)
    notice = described(Text, _NOTICE, NOTICE_LENGTH, any_characters=True, load_default=None, allow_none=True)


blp = Blueprint("term-calendars", __name__, description="When terms begin and end.")


@blp.route("/terms/<uuid:id>/calendar")
class TermCalendar(MethodView):
    """The calendar of a term."""

    @blp.requires(Permission.TERMS_READ, own=EVERYTHING)
    @blp.returns(TermCalendarSchema, if_empty=service.check_term)
    def get(self, id: UUID) -> Any:
        """Show when a term begins and ends, how often school opened, and the notice at its end."""
        return service.term_calendar(id)

    @blp.requires(Permission.TERMS_WRITE)
    @blp.arguments(NewTermCalendarSchema)
    @blp.answers(409)
    @blp.returns(TermCalendarSchema)
    def put(self, calendar: dict[str, Any], id: UUID) -> Any:
        """Set the calendar of a term; members left out are null."""
        return service.set_calendar(term_id=id, **calendar)
