"""Term calendars over HTTP."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from flask.views import MethodView

from school_service.core.permissions import Permission
from school_service.features.results.term_calendars import reads, service
from school_service.features.results.term_calendars.schemas import NewTermCalendarSchema, TermCalendarSchema
from school_service.web.blueprint import Blueprint

blp = Blueprint("term_calendars", __name__, description="When terms begin and end.")


@blp.route("/terms/<uuid:id>/calendar")
class TermCalendar(MethodView):
    """The calendar of a term."""

    @blp.requires(Permission.TERMS_READ)
    @blp.returns(TermCalendarSchema, if_empty=service.check_term)
    def get(self, id: UUID) -> Any:
        """Show when a term begins and ends, how often school opened, and what is told at its end."""
        return reads.term_calendar(id)

    @blp.requires(Permission.TERMS_WRITE)
    @blp.arguments(NewTermCalendarSchema)
    @blp.answers(409)
    @blp.returns(TermCalendarSchema)
    def put(self, calendar: dict[str, Any], id: UUID) -> Any:
        """Set the calendar of a term: what is left out is null."""
        return service.set_calendar(term_id=id, **calendar)
