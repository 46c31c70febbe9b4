"""Cohort subjects over HTTP."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from flask.views import MethodView

from school_service.core.permissions import Permission
from school_service.core.reach import related
from school_service.features.classes.cohort_subjects import reads, service
from school_service.features.classes.cohort_subjects.schemas import (
    CohortSubjectFilterSchema,
    CohortSubjectSchema,
    ListedCohortSubjectSchema,
    NewCohortSubjectSchema,
)
from school_service.features.people.students.schemas import StudentSchema
from school_service.web.blueprint import Blueprint

blp = Blueprint("cohort-subjects", __name__, description="The subjects of a cohort, and their takers.")


@blp.route("/cohort-subjects")
class CohortSubjects(MethodView):
    """The subjects taught to cohorts."""

    @blp.requires(Permission.COHORT_SUBJECTS_READ, own=related("TFSG"))
    @blp.returns_page(ListedCohortSubjectSchema, if_empty=service.check_cohort_subject_filter)
    @blp.arguments(CohortSubjectFilterSchema, location="query")
    def get(self, filters: dict[str, Any]) -> Any:
        """List cohort subjects by position and name: of all, a cohort, a subject, a session, or without a teacher."""
        return reads.cohort_subjects(**{**filters, "without_teacher": filters.get("without_teacher") or None})

    @blp.requires(Permission.COHORT_SUBJECTS_WRITE)
    @blp.arguments(NewCohortSubjectSchema)
    @blp.returns(CohortSubjectSchema)
    def post(self, cohort_subject: dict[str, Any]) -> Any:
        """Teach a subject to a cohort; unless it is an elective, all its students take it at once."""
        return reads.cohort_subject(service.create_cohort_subject(**cohort_subject).id)


@blp.route("/cohort-subjects/<uuid:id>")
class OneCohortSubject(MethodView):
    """A subject taught to a cohort."""

    @blp.requires(Permission.COHORT_SUBJECTS_READ, own=related("TFSG"))
    @blp.returns(CohortSubjectSchema)
    def get(self, id: UUID) -> Any:
        """Show a cohort subject."""
        return reads.cohort_subject(id)

    @blp.requires(Permission.COHORT_SUBJECTS_DELETE)
    @blp.returns_deleted()
    @blp.if_match(reads.cohort_subject, reads.lock_cohort_of, service.DELETION.row_lock)
    def delete(self, id: UUID) -> Any:
        """Teach a subject to a cohort no more that has neither assessments nor students who chose it."""
        return service.delete_cohort_subject(cohort_subject_id=id)


@blp.route("/cohort-subjects/<uuid:id>/students")
class StudentsOfCohortSubject(MethodView):
    """The students of a cohort subject."""

    @blp.requires(Permission.COHORT_SUBJECTS_READ, Permission.STUDENTS_READ, own=related("TF"))
    @blp.returns_page(StudentSchema, if_empty=service.check_cohort_subject)
    def get(self, id: UUID) -> Any:
        """List the students of a subject, by name."""
        return reads.students_of_subject(id)
