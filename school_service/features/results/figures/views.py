"""Results and broadsheets over HTTP."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from flask.views import MethodView

from school_service.auth.policies import own_student
from school_service.core.permissions import Permission
from school_service.core.reach import related
from school_service.features.results.figures import answers, service, sheet
from school_service.features.results.figures.schemas import (
    BroadsheetFilterSchema,
    BroadsheetSchema,
    StudentSubjectResultSchema,
    SubjectResultFilterSchema,
    TermResultFilterSchema,
    TermResultSchema,
)
from school_service.web.app_state import current_user_id
from school_service.web.blueprint import Blueprint
from school_service.web.operations import Run

blp = Blueprint(
    "results", __name__, description="Results of students in subjects, terms and sessions, and broadsheets."
)


@blp.route("/cohort-subjects/<uuid:id>/results")
class SubjectResults(MethodView):
    """The results of a cohort subject."""

    @blp.requires(Permission.RESULTS_READ, own=related("TF"))
    @blp.arguments(SubjectResultFilterSchema, location="query")
    @blp.returns_list(StudentSubjectResultSchema, if_empty=service.check_subject_results)
    def get(self, filters: dict[str, Any], id: UUID) -> Any:
        """List the results of a cohort subject in a term, by position, then by name.

        Published results of a batch are as they were published, unless live figures are asked for.
        """
        return answers.of_subject(id, filters["term"], filters.get("batch"), live=filters["live"])


@blp.route("/students/<uuid:id>/results")
class StudentResults(MethodView):
    """The results of a student."""

    @blp.requires(own_student(Permission.RESULTS_READ), own=related("FSG"))
    @blp.arguments(TermResultFilterSchema, location="query")
    @blp.returns(TermResultSchema, if_empty=service.check_term_result)
    def get(self, filters: dict[str, Any], id: UUID) -> Any:
        """Show the results of a student in a term, and in the session until it: as published, else live.

        With `version`: as in that version. Students need no permission for their own: they see published results alone,
        with positions as the school shows them.
        """
        return answers.of_student(id, user_id=current_user_id(), **filters)


@blp.route("/broadsheets")
class Broadsheets(MethodView):
    """The results of a batch."""

    @blp.requires(Permission.RESULTS_READ, own=related("F"))
    @blp.arguments(BroadsheetFilterSchema, location="query")
    @blp.returns(BroadsheetSchema, if_empty=service.check_broadsheet)
    def get(self, filters: dict[str, Any]) -> Any:
        """Show the broadsheet of a batch in a term, students by subjects; or in a session, as it was published."""
        return answers.broadsheet(**filters)


@blp.route("/broadsheets/download")
class BroadsheetWorkbook(MethodView):
    """The workbook of a broadsheet."""

    @blp.requires(Permission.RESULTS_READ, own=related("F"), run=Run.COMPUTES)
    @blp.arguments(BroadsheetFilterSchema, location="query")
    @blp.returns_file()
    def get(self, filters: dict[str, Any]) -> Any:
        """Download a broadsheet: an Excel workbook to be read and printed."""
        return sheet.download(**filters)
