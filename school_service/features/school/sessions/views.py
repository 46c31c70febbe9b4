"""Academic sessions and terms over HTTP."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from flask.views import MethodView

from school_service.core.permissions import Permission
from school_service.core.reach import EVERYTHING
from school_service.core.statements import table_lock
from school_service.features.school.models import AcademicSession
from school_service.features.school.sessions import service
from school_service.features.school.sessions.schemas import (
    NewSessionSchema,
    NewTermSchema,
    SessionChangesSchema,
    SessionSchema,
    TermChangesSchema,
    TermFilterSchema,
    TermSchema,
)
from school_service.web.blueprint import Blueprint

blp = Blueprint("sessions", __name__, description="Academic sessions, such as 2025/2026, and their terms.")


@blp.route("/sessions")
class Sessions(MethodView):
    """The school's academic sessions."""

    @blp.requires(Permission.TERMS_READ, own=EVERYTHING)
    @blp.returns_list(SessionSchema)
    def get(self) -> Any:
        """List the academic sessions, the newest first."""
        return service.sessions()

    @blp.requires(Permission.TERMS_WRITE)
    @blp.arguments(NewSessionSchema)
    @blp.returns(SessionSchema)
    def post(self, session: dict[str, Any]) -> Any:
        """Create an academic session."""
        return service.session(service.create_session(**session).id)


@blp.route("/sessions/<uuid:id>")
class OneSession(MethodView):
    """An academic session."""

    @blp.requires(Permission.TERMS_READ, own=EVERYTHING)
    @blp.returns(SessionSchema)
    def get(self, id: UUID) -> Any:
        """Show an academic session."""
        return service.session(id)

    @blp.requires(Permission.TERMS_WRITE)
    @blp.arguments(SessionChangesSchema(partial=True))
    @blp.returns(SessionSchema)
    @blp.if_match(service.session, table_lock(AcademicSession))
    def patch(self, changes: dict[str, Any], id: UUID) -> Any:
        """Change the given members of an academic session."""
        return service.session(service.change_session(session_id=id, **changes))

    @blp.requires(Permission.TERMS_DELETE)
    @blp.returns_deleted()
    @blp.if_match(service.session, service.DELETION.row_lock)
    def delete(self, id: UUID) -> Any:
        """Delete an academic session that has neither terms nor cohorts."""
        return service.delete_session(session_id=id)


@blp.route("/terms")
class Terms(MethodView):
    """The terms of academic sessions."""

    @blp.requires(Permission.TERMS_READ, own=EVERYTHING)
    @blp.arguments(TermFilterSchema, location="query")
    @blp.returns_list(TermSchema, if_empty=service.check_term_filter)
    def get(self, filters: dict[str, Any]) -> Any:
        """List the terms in the order of the calendar, all or those of a session."""
        return service.terms(**filters)

    @blp.requires(Permission.TERMS_WRITE, school_required=False)
    @blp.arguments(NewTermSchema)
    @blp.returns(TermSchema)
    def post(self, term: dict[str, Any]) -> Any:
        """Create a term of an academic session."""
        return service.term(service.create_term(**term).id)


@blp.route("/terms/<uuid:termId>")
class OneTerm(MethodView):
    """A term."""

    @blp.requires(Permission.TERMS_READ, own=EVERYTHING)
    @blp.returns(TermSchema)
    def get(self, termId: UUID) -> Any:  # noqa: N803
        """Show a term."""
        return service.term(termId)

    @blp.requires(Permission.TERMS_WRITE)
    @blp.arguments(TermChangesSchema(partial=True))
    @blp.returns(TermSchema)
    @blp.if_match(service.term, service.TERM_DELETION.row_lock)
    def patch(self, changes: dict[str, Any], termId: UUID) -> Any:  # noqa: N803
        """Change the given members of a term.

        Once anything in it was submitted or published, it keeps its place in the session; published results keep its
        old name.
        """
        return service.term(service.change_term(term_id=termId, **changes))

    @blp.requires(Permission.TERMS_DELETE)
    @blp.returns_deleted()
    @blp.if_match(service.term, service.TERM_DELETION.row_lock)
    def delete(self, termId: UUID) -> Any:  # noqa: N803
        """Delete a term, and its calendar; a term with other records is a conflict."""
        return service.delete_term(term_id=termId)
