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
    AssessmentChangesSchema,
    AssessmentFilterSchema,
    AssessmentSchema,
    NewAssessmentSchema,
    NewAssessmentsSchema,
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
        """List the assessments of a subject of a cohort in a term, by due date: all three filters are needed."""
        return reads.assessments_of_subject(filters["cohort"], filters["subject"], filters["term"])

    @blp.requires(Permission.ASSESSMENTS_WRITE, own=related("T"))
    @blp.arguments(NewAssessmentSchema)
    @blp.returns(AssessmentSchema)
    def post(self, assessment: dict[str, Any]) -> Any:
        """Create an assessment of a subject of a cohort, in a term of its session."""
        return reads.assessment(service.create_assessment(**assessment).id)


@blp.route("/assessments/many")
class ManyAssessments(MethodView):
    """The same assessment of several subjects."""

    @blp.requires(Permission.ASSESSMENTS_WRITE, own=related("T"), school_required=True)
    @blp.arguments(NewAssessmentsSchema)
    @blp.returns_list(AssessmentSchema)
    def post(self, assessments: dict[str, Any]) -> Any:
        """Create the same assessment for several subjects of a cohort, all or none; answers them in that order."""
        return service.create_assessments(**assessments)


@blp.route("/assessments/<uuid:id>")
class OneAssessment(MethodView):
    """An assessment."""

    @blp.requires(Permission.ASSESSMENTS_READ, own=related("TF"))
    @blp.returns(AssessmentSchema)
    def get(self, id: UUID) -> Any:
        """Show an assessment."""
        return reads.assessment(id)

    @blp.requires(Permission.ASSESSMENTS_WRITE, own=related("T"), school_required=True)
    @blp.arguments(AssessmentChangesSchema(partial=True))
    @blp.returns(AssessmentSchema)
    @blp.if_match(reads.assessment, reads.lock_terms_of, reads.lock_subject_of, row_lock(Assessment))
    def patch(self, changes: dict[str, Any], id: UUID) -> Any:
        """Change the given members of an assessment, as long as its results are not submitted.

        `total_points` is not below a score that is there; `term` is another of the cohort's session.
        """
        return reads.assessment(service.change_assessment(assessment_id=id, **changes))

    @blp.requires(Permission.ASSESSMENTS_DELETE, own=related("T"))
    @blp.returns_deleted()
    @blp.if_match(reads.assessment, row_lock(Assessment))
    def delete(self, id: UUID) -> Any:
        """Delete an assessment: it and its gradebook entries are gone from every answer."""
        return service.delete_assessment(assessment_id=id)
