"""Enrolling and removing over HTTP."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from flask.views import MethodView

from school_service.core.permissions import Permission
from school_service.core.reach import related
from school_service.features.classes.enrollments import service
from school_service.features.people.students import reads
from school_service.features.people.students.schemas import EnrolledStudentSchema, StudentSchema
from school_service.features.school.cohorts.service import check_cohort
from school_service.web.blueprint import Blueprint
from school_service.web.fields import MAX_IDS, Id, IsoDate, ListOf, Nested, id_list
from school_service.web.schemas import Schema, described


class FirstDaySchema(Schema):
    """The first day of a student in a batch."""

    student = Id()
    started_on = described(IsoDate, "Within the session; null where it is not known.", allow_none=True)


class EnrollmentSchema(Schema):
    """Students to enroll into a batch of a cohort."""

    students = id_list(least=1)
    batch = described(Id, "A batch of the cohort; the cohort's id is its first one.")
    started_on = described(
        IsoDate,
        "Their first day in the batch, within the session; null where it is not known.",
        required=False,
        allow_none=True,
    )
    started_on_each = described(
        ListOf,
        "The first day of some of the students, in place of `started_on`.",
        Nested(FirstDaySchema),
        most=MAX_IDS,
        required=False,
    )


class RemovalSchema(Schema):
    """Students to take out of a cohort."""

    student_ids = id_list(least=1)
    ended_on = described(
        IsoDate, "Their last day in the class; null where it is not known.", required=False, allow_none=True
    )


blp = Blueprint("enrollments", __name__, description="The students of cohorts.")


@blp.route("/cohorts/<uuid:id>/enrollment")
class Enrollments(MethodView):
    """Enrolling into a cohort."""

    @blp.requires(Permission.COHORTS_WRITE)
    @blp.arguments(EnrollmentSchema)
    @blp.returns_list(StudentSchema)
    def post(self, enrollment: dict[str, Any], id: UUID) -> Any:
        """Enroll students into a batch of the cohort and into its compulsory subjects, all or none.

        A student in another batch of the cohort moves: a first day in the new one ends the former the day before. A
        student in this batch stays there, and gets the first day. Answers the students of the request.
        """
        return reads.students(student_ids=service.enroll(cohort_id=id, **enrollment))


@blp.route("/cohorts/<uuid:id>/students")
class StudentsOfCohort(MethodView):
    """The students of a cohort."""

    @blp.requires(Permission.COHORTS_READ, own=related("TFSG"))
    @blp.returns_list(EnrolledStudentSchema, if_empty=check_cohort)
    def get(self, id: UUID) -> Any:
        """List the students of a cohort, of all its batches, by name, with their first and last day there."""
        return reads.students_of_cohort(id)


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
