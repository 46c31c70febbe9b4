"""Sums and absences from registers, over HTTP."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from flask.views import MethodView

from school_service.auth.policies import own_student
from school_service.core.permissions import Permission
from school_service.core.reach import related
from school_service.features.attendance.overviews import reads, service
from school_service.features.attendance.overviews.schemas import (
    AbsenceFilterSchema,
    AbsenceOfDaySchema,
    AttendanceOfDaySchema,
    AttendanceSummarySchema,
    ChronicAbsenceSchema,
    ChronicFilterSchema,
    DayFilterSchema,
    MissingFilterSchema,
    MissingRegisterSchema,
    OverviewTermSchema,
    StudentAttendanceSchema,
    SummaryFilterSchema,
)
from school_service.web.app_state import current_user_id
from school_service.web.blueprint import Blueprint

blp = Blueprint("attendance", __name__, description="Sums and absences of registers.")


@blp.route("/registers/missing")
class MissingRegisters(MethodView):
    """The missing registers."""

    @blp.requires(Permission.ATTENDANCE_READ, own=related("F"))
    @blp.arguments(MissingFilterSchema, location="query")
    @blp.returns_list(MissingRegisterSchema)
    def get(self, days: dict[str, Any]) -> Any:
        """List the registers of days that are not submitted, by date and class; of days to come there are none."""
        return reads.missing_registers(days["first"], days["last"])


@blp.route("/attendance/days")
class AttendanceOfDay(MethodView):
    """A day of the school."""

    @blp.requires(Permission.ATTENDANCE_READ, own=related("F"))
    @blp.arguments(DayFilterSchema, location="query")
    @blp.returns_list(AttendanceOfDaySchema, if_empty=service.check_day)
    def get(self, filters: dict[str, Any]) -> Any:
        """Count who was there on a day, in each class and part of it; on a closed day there is nothing to count."""
        return reads.attendance_of_day(filters["day"], filters.get("cohort"))


@blp.route("/attendance/absences")
class AbsencesOfDay(MethodView):
    """The absences of a day."""

    @blp.requires(Permission.ATTENDANCE_READ, Permission.STUDENTS_READ, own=related("F"))
    @blp.arguments(AbsenceFilterSchema, location="query")
    @blp.returns_list(AbsenceOfDaySchema, if_empty=service.check_absences)
    def get(self, filters: dict[str, Any]) -> Any:
        """List the students away on a day by submitted registers, by name, with the guardians who receive reports."""
        return reads.absences_of_day(filters.get("day"))


@blp.route("/attendance/summary")
class AttendanceSummary(MethodView):
    """The sums of a class."""

    @blp.requires(Permission.ATTENDANCE_READ, own=related("TF"))
    @blp.arguments(SummaryFilterSchema, location="query")
    @blp.returns_list(AttendanceSummarySchema, if_empty=service.check_summary)
    def get(self, filters: dict[str, Any]) -> Any:
        """Show how often the students of a class were there in a term, by name: by day, or in lessons of a subject.

        A subject teacher reaches their lessons.
        """
        if "batch" in filters:
            return reads.attendance_of_class(filters["batch"], filters["term"])
        return reads.attendance_of_subject(filters["cohort_subject"], filters["term"])


@blp.route("/attendance/chronic")
class ChronicAbsence(MethodView):
    """Chronic absence of students."""

    @blp.requires(Permission.ATTENDANCE_READ, own=related("F"))
    @blp.arguments(ChronicFilterSchema, location="query")
    @blp.returns_page(ChronicAbsenceSchema, if_empty=service.check_chronic)
    def get(self, filters: dict[str, Any]) -> Any:
        """List the students away for a share of the times opened or more, the most absent first; from 5 times on."""
        return reads.chronic_absence(filters["term"], filters.get("cohort"), filters.get("percent"))


@blp.route("/students/<uuid:id>/attendance")
class StudentAttendance(MethodView):
    """The attendance of a student."""

    @blp.requires(own_student(Permission.ATTENDANCE_READ), own=related("TFSG"))
    @blp.arguments(OverviewTermSchema, location="query")
    @blp.returns(StudentAttendanceSchema, if_empty=service.check_student)
    def get(self, filters: dict[str, Any], id: UUID) -> Any:
        """Show how often a student was there in a term, week by week, and each mark as it counts.

        Students and guardians need no permission for their own, and see as much as the school's settings let families
        read.
        """
        return reads.attendance_of_student(id, filters["term"], current_user_id())
