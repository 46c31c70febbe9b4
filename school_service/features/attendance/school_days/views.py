"""School days over HTTP."""

from __future__ import annotations

from typing import Any

from flask.views import MethodView

from school_service.core.permissions import Permission
from school_service.core.reach import EVERYTHING
from school_service.features.attendance.school_days import service
from school_service.features.attendance.school_days.schemas import (
    SchoolDayFilterSchema,
    SchoolDaySchema,
    SchoolDaysSchema,
)
from school_service.web.blueprint import Blueprint

blp = Blueprint("school-days", __name__, description="On which days school is open.")


@blp.route("/school-days")
class SchoolDays(MethodView):
    """The days of the terms."""

    @blp.requires(Permission.TERMS_READ, own=EVERYTHING)
    @blp.arguments(SchoolDayFilterSchema, location="query")
    @blp.returns_list(SchoolDaySchema)
    def get(self, days: dict[str, Any]) -> Any:
        """List the school days between two days, by the terms' calendars, the weekdays and the exceptions."""
        return service.school_days(days["first"], days["last"])

    @blp.requires(Permission.TERMS_WRITE)
    @blp.arguments(SchoolDaysSchema)
    @blp.answers(409)
    @blp.returns_list(SchoolDaySchema)
    def put(self, body: dict[str, Any]) -> Any:
        """Say of days that school is closed, such as a holiday, or open, such as a Saturday; all or none."""
        return service.set_school_days(**body)
