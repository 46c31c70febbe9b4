"""Report cards over HTTP."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from flask.views import MethodView

from school_service.auth.policies import own_student
from school_service.core.permissions import Permission
from school_service.core.reach import related
from school_service.features.results.models import JSON
from school_service.features.results.report_cards import reads, service
from school_service.features.results.report_cards.schemas import (
    ReportCardFilterSchema,
    ReportCardSchema,
    ReportCardsFilterSchema,
    StudentCardSchema,
)
from school_service.web.app_state import app_state, current_user_id
from school_service.web.blueprint import PDF, ZIP, Blueprint
from school_service.web.operations import Run

blp = Blueprint(
    "report-cards", __name__, description="Published results on paper, and the verification of that paper."
)


@blp.route("/students/<uuid:id>/report-card")
class StudentReportCard(MethodView):
    """A student's report card."""

    @blp.requires(own_student(Permission.RESULTS_READ), own=related("FSG"), run=Run.COMPUTES)
    @blp.arguments(ReportCardFilterSchema, location="query")
    @blp.returns_file(PDF, schema=ReportCardSchema)
    def get(self, filters: dict[str, Any], id: UUID) -> Any:
        """Print a student's report card of a term, or show its contents. Students need no permission for their own.

        Theirs is there once it is published. `format=json` answers all that stands on the paper, and nothing else: the
        figures as they are printed, beside them the words of the paper, such as 2nd =.
        """
        is_shown = filters.pop("format") == JSON
        asked = service.AskedCard(student_id=id, user_id=current_user_id(), **filters)
        if is_shown:
            return service.show_card(asked)
        return service.print_card(asked, public_url=app_state().settings.public_url)


@blp.route("/students/<uuid:id>/report-cards")
class StudentReportCards(MethodView):
    """A student's report cards."""

    @blp.requires(own_student(Permission.RESULTS_READ), own=related("FSG"))
    @blp.returns_list(StudentCardSchema, if_empty=service.check_cards)
    def get(self, id: UUID) -> Any:
        """List the published report cards of a student, the newest first. Students need no permission for their own."""
        return reads.cards_of_student(id, current_user_id())


@blp.route("/students/<uuid:id>/transcript/download")
class StudentTranscript(MethodView):
    """A student's transcript."""

    @blp.requires(own_student(Permission.RESULTS_READ), own=related("FSG"), run=Run.AUDITED)
    @blp.returns_file(PDF)
    def get(self, id: UUID) -> Any:
        """Print a student's transcript. Students need no permission for their own.

        Its contents are stored with a code, by which it is verified as a report card is. Printed again on the same day
        it is the same paper, unless its contents have changed.
        """
        public_url = app_state().settings.public_url
        return service.print_transcript(student_id=id, user_id=current_user_id(), public_url=public_url)


@blp.route("/report-cards")
class ReportCards(MethodView):
    """The report cards of a batch."""

    @blp.requires(Permission.RESULTS_READ, own=related("F"), run=Run.COMPUTES)
    @blp.arguments(ReportCardsFilterSchema, location="query")
    @blp.returns_file(PDF, ZIP)
    def get(self, filters: dict[str, Any]) -> Any:
        """Print the report cards of a batch in the order of the class list, as one PDF or as a zip of them."""
        return service.print_cards(public_url=app_state().settings.public_url, **filters)
