"""Absences over HTTP."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from flask.views import MethodView

from school_service.core.permissions import Permission
from school_service.core.reach import related
from school_service.features.scores.absences import reads, service
from school_service.features.scores.absences.schemas import AbsenceSchema, AbsencesSchema
from school_service.features.scores.assessments.service import check_assessment
from school_service.web.blueprint import Blueprint

blp = Blueprint("absences", __name__, description="Absences from assessments, with leave or without.")


@blp.route("/assessments/<uuid:id>/absences")
class Absences(MethodView):
    """The absences of an assessment."""

    @blp.requires(Permission.GRADEBOOKS_READ, own=related("TF"))
    @blp.returns_list(AbsenceSchema, if_empty=check_assessment)
    def get(self, id: UUID) -> Any:
        """List the absences from an assessment, by the student's name."""
        return reads.absences(id)

    @blp.requires(Permission.GRADEBOOKS_WRITE, own=related("T"))
    @blp.arguments(AbsencesSchema)
    @blp.answers(409)
    @blp.returns_list(AbsenceSchema)
    def put(self, body: dict[str, Any], id: UUID) -> Any:
        """Add or change the absences of the students named, all or none; answers all of the assessment.

        A student who has a score is 409: an absence stands instead of a score. A score that is entered later takes the
        absence away.
        """
        return service.enter_absences(assessment_id=id, **body)


@blp.route("/assessments/<uuid:id>/absences/<uuid:student_id>")
class OneAbsence(MethodView):
    """The absence of a student."""

    @blp.requires(Permission.GRADEBOOKS_DELETE, own=related("T"))
    @blp.returns_deleted()
    def delete(self, id: UUID, student_id: UUID) -> Any:
        """Take an absence away: nothing is marked then."""
        return service.delete_absence(assessment_id=id, student_id=student_id)
