"""Enrolling and removing over HTTP."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from flask.views import MethodView

from school_service.core.permissions import Permission
from school_service.core.reach import related
from school_service.features.classes.enrollments import service
from school_service.features.people.students import reads
from school_service.features.people.students.schemas import StudentSchema
from school_service.features.school.cohorts.service import check_cohort
from school_service.web.blueprint import Blueprint
from school_service.web.fields import Id, id_list
from school_service.web.schemas import Schema


class EnrollmentSchema(Schema):
    """Students to enroll into a batch of a cohort."""

    students = id_list(least=1)
    batch = Id(metadata={"description": "A batch of the cohort; the cohort's id is its first one."})


class RemovalSchema(Schema):
    """Students to take out of a cohort."""

    student_ids = id_list(least=1)


blp = Blueprint("enrollments", __name__, description="Who is in which cohort.")


@blp.route("/cohorts/<uuid:id>/enrollment")
class Enrollments(MethodView):
    """Enrolling into a cohort."""

    @blp.requires(Permission.COHORTS_WRITE)
    @blp.arguments(EnrollmentSchema)
    @blp.returns_list(StudentSchema)
    def post(self, enrollment: dict[str, Any], id: UUID) -> Any:
        """Enroll students into a batch of the cohort and into its compulsory subjects, all or none.

        Who is in another batch of the cohort moves. Answers the students of the request.
        """
        return reads.students(student_ids=service.enroll(cohort_id=id, **enrollment))


@blp.route("/cohorts/<uuid:id>/students")
class StudentsOfCohort(MethodView):
    """The students of a cohort."""

    @blp.requires(Permission.COHORTS_READ, own=related("TFSG"))
    @blp.returns_list(StudentSchema, if_empty=check_cohort)
    def get(self, id: UUID) -> Any:
        """List the students of a cohort, of all its batches, by name."""
        return reads.students(cohort=id)


@blp.route("/cohorts/<uuid:cohortId>/remove_students")
class Removal(MethodView):
    """Leaving a cohort."""

    @blp.requires(Permission.COHORTS_WRITE)
    @blp.arguments(RemovalSchema)
    @blp.returns_list(StudentSchema)
    def patch(self, removal: dict[str, Any], cohortId: UUID) -> Any:  # noqa: N803
        """Take students out of the cohort and its subjects, all or none; their scores stay.

        Answers the students who remain.
        """
        return reads.students(cohort=service.remove(cohort_id=cohortId, **removal))
