"""Copies of sessions over HTTP."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from flask.views import MethodView

from school_service.core.permissions import Permission
from school_service.features.year.session_copies import service
from school_service.features.year.session_copies.schemas import (
    CopyOptionsSchema,
    NewCopySchema,
    SessionCopySchema,
)
from school_service.web.app_state import current_principal
from school_service.web.blueprint import Blueprint

blp = Blueprint("session-copies", __name__, description="An academic session is set up as another one was.")


@blp.route("/sessions/<uuid:id>/copy-from")
class SessionCopy(MethodView):
    """The copy of a session."""

    @blp.requires(Permission.TERMS_WRITE)
    @blp.arguments(NewCopySchema)
    @blp.arguments(CopyOptionsSchema, location="query")
    @blp.returns(SessionCopySchema)
    def post(self, copy: dict[str, Any], options: dict[str, Any], id: UUID) -> Any:
        """Copy one session into another, all or none: terms, cohorts, subjects, assessments, form teachers.

        Records already there stay, so that the same again makes nothing again. Dates are shifted by the days between
        the first days of both sessions, and kept within the session. Records that rest on a missing one are left out,
        and so are form teachers who are employees no more. Each part needs the permission that making its records one
        by one needs.
        """
        return service.copy_session(session_id=id, **copy, **options, principal=current_principal())
