"""Assessments over HTTP."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from flask.views import MethodView

from school_service.core.permissions import Permission
from school_service.core.reach import related
from school_service.core.statements import row_lock
from school_service.features.scores.assessments import reads, service
from school_service.features.scores.assessments.schemas import (
    AssessmentFilterSchema,
    AssessmentSchema,
    NewAssessmentSchema,
)
from school_service.features.scores.models import Assessment
from school_service.web.blueprint import Blueprint

blp = Blueprint(
    "assessments",
    __name__,
    school_required=False,
    description="Exams, tests and continuous assessments of the subjects of a cohort.",
)


@blp.route("/assessments")
class Assessments(MethodView):
    """The assessments of a subject in a term."""

    @blp.requires(Permission.ASSESSMENTS_READ, own=related("TF"))
    @blp.returns_page(AssessmentSchema, if_empty=service.check_assessment_filter)
    @blp.arguments(AssessmentFilterSchema, location="query")
    def get(self, filters: dict[str, Any]) -> Any:
        """List the assessments of a subject of a cohort in a term, by due date."""
        return reads.assessments_of_subject(filters["cohort"], filters["subject"], filters["term"])

    @blp.requires(Permission.ASSESSMENTS_WRITE, own=related("T"))
    @blp.arguments(NewAssessmentSchema)
    @blp.returns(AssessmentSchema)
    def post(self, assessment: dict[str, Any]) -> Any:
        """Create an assessment of a subject of a cohort, in a term of its session."""
        return reads.assessment(service.create_assessment(**assessment).id)


@blp.route("/assessments/<uuid:id>")
class OneAssessment(MethodView):
    """An assessment."""

    @blp.requires(Permission.ASSESSMENTS_READ, own=related("TF"))
    @blp.returns(AssessmentSchema)
    def get(self, id: UUID) -> Any:
        """Show an assessment."""
        return reads.assessment(id)

    @blp.requires(Permission.ASSESSMENTS_DELETE, own=related("T"))
    @blp.returns_deleted()
    @blp.if_match(reads.assessment, row_lock(Assessment))
    def delete(self, id: UUID) -> Any:
        """Delete an assessment: it and its gradebook entries are gone from every answer."""
        return service.delete_assessment(assessment_id=id)
