"""Gradebook entries over HTTP."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from flask.views import MethodView

from school_service.core.permissions import Permission
from school_service.core.reach import related
from school_service.core.statements import row_lock
from school_service.features.school.sessions.schemas import id_and_name
from school_service.features.scores.gradebooks import reads, service
from school_service.features.scores.gradebooks.schemas import (
    GradebookEntrySchema,
    GradebookFilterSchema,
    NewGradebookEntrySchema,
    ScoreSchema,
)
from school_service.features.scores.models import GradebookEntry
from school_service.web.blueprint import Blueprint

blp = Blueprint("gradebooks", __name__, description="The scores of students in assessments.")


@blp.route("/gradebooks")
class GradebookEntries(MethodView):
    """The entered scores."""

    @blp.requires(Permission.GRADEBOOKS_READ, own=related("TF"))
    @blp.returns_page(GradebookEntrySchema, if_empty=service.check_gradebook_filter)
    @blp.arguments(GradebookFilterSchema, location="query")
    def get(self, filters: dict[str, Any]) -> Any:
        """List gradebook entries in order of creation, all or those that fit every filter."""
        return reads.entries(
            filters.get("batch"),
            filters.get("student"),
            filters.get("assessment"),
            *id_and_name(filters.get("term")),
        )

    @blp.requires(Permission.GRADEBOOKS_WRITE, own=related("T"))
    @blp.arguments(NewGradebookEntrySchema)
    @blp.returns(GradebookEntrySchema)
    def post(self, entry: dict[str, Any]) -> Any:
        """Enter the first score of a student in an assessment."""
        return service.create_entry(**entry)


@blp.route("/gradebooks/<uuid:id>")
class OneGradebookEntry(MethodView):
    """The score of a student in an assessment."""

    @blp.requires(Permission.GRADEBOOKS_READ, own=related("TF"))
    @blp.returns(GradebookEntrySchema)
    def get(self, id: UUID) -> Any:
        """Show a gradebook entry."""
        return reads.entry(id)

    @blp.requires(Permission.GRADEBOOKS_WRITE, own=related("T"))
    @blp.arguments(ScoreSchema(partial=True))
    @blp.returns(GradebookEntrySchema)
    @blp.if_match(reads.entry, reads.assessment_lock, row_lock(GradebookEntry))
    def patch(self, changes: dict[str, Any], id: UUID) -> Any:
        """Correct the score of a gradebook entry; the audit log keeps the one before."""
        return reads.entry(service.change_entry(entry_id=id, **changes))

    @blp.requires(Permission.GRADEBOOKS_DELETE, own=related("T"))
    @blp.returns_deleted()
    @blp.if_match(reads.entry, reads.assessment_lock, row_lock(GradebookEntry))
    def delete(self, id: UUID) -> Any:
        """Remove a gradebook entry; the audit log keeps its score."""
        return service.delete_entry(entry_id=id)
