"""The current academic session over HTTP."""

from __future__ import annotations

from typing import Any

from flask.views import MethodView
from marshmallow import fields

from school_service.core.permissions import Permission
from school_service.core.reach import related
from school_service.features.school.sessions.schemas import SessionSchema, TermSchema
from school_service.features.year.current_session import service
from school_service.web.blueprint import Blueprint
from school_service.web.schemas import RecordSchema, described, record_of


class SessionCountsSchema(RecordSchema):
    """The size of an academic session."""

    students = described(fields.Integer, "Enrolled in it now.")
    classes = described(fields.Integer, "Its cohorts.")
    arms = described(fields.Integer, "The batches of its cohorts.")
    subjects = described(fields.Integer, "The cohort subjects of its cohorts.")
    staff = described(fields.Integer, "The employees of the school.")


class CurrentSessionSchema(RecordSchema):
    """The current academic session, the term of today and the size of the session."""

    session = fields.Nested(SessionSchema)
    term = record_of(
        TermSchema, "The term that has the school's day by its calendar; null without one.", allow_none=True
    )
    counts = record_of(
        SessionCountsSchema, "Null for callers whose permission is for their own records.", allow_none=True
    )


blp = Blueprint("current-session", __name__, description="The session and the term of today.")


@blp.route("/sessions/current")
class CurrentSession(MethodView):
    """The current academic session."""

    @blp.requires(Permission.TERMS_READ, own=related("TFSGM"))
    @blp.returns(CurrentSessionSchema)
    def get(self) -> Any:
        """Show the current academic session, the term of today, and how many students, classes and staff there are."""
        return service.current_session()
