"""Read models of graduates."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from sqlalchemy import func, select

from school_service.core.read_models import Query, read_model, school_value
from school_service.features.classes.enrollments.reads import open_enrollments
from school_service.features.people.models import Student
from school_service.features.results.models import Graduate
from school_service.features.school.models import AcademicSession, Classroom, Cohort, Enrollment


@read_model
def graduates() -> Query:
    """Read model of GraduateSchema, by number."""
    return (
        select(
            Graduate.number.label("id"),
            Student.number.label("student"),
            Graduate.graduation_class,
            school_value("school", lambda school: school.name).label("school"),
        )
        .join(Student, Student.id == Graduate.student_id)
        .order_by(Graduate.number)
    )


@read_model
def graduate(graduate_id: UUID) -> Query:
    """Read model of GraduateSchema, for one."""
    return graduates.query().where(Graduate.id == graduate_id)


@read_model
def graduating(student_id: UUID) -> Query:
    """Select the facts for a graduation, to be read once the student is locked; no row without one.

    `last_class` names the classroom and session of their last enrollment, empty without one; `enrollments` are the open
    ones, as JSON.
    """
    return select(
        Student.status,
        Student.admitted_on,
        last_class(student_id).label("last_class"),
        open_enrollments(student_id).label("enrollments"),
    ).where(Student.id == student_id)


def last_class(student_id: Any) -> Any:
    """Make the column of the classroom and session of a student's last enrollment; empty without one."""
    query = (
        select(Classroom.name + " " + AcademicSession.name)
        .select_from(Enrollment)
        .join(Cohort, Cohort.id == Enrollment.cohort_id)
        .join(Classroom, Classroom.id == Cohort.classroom_id)
        .join(AcademicSession, AcademicSession.id == Cohort.session_id)
        .where(Enrollment.student_id == student_id)
        .order_by(Enrollment.started_at.desc(), Enrollment.id.desc())
        .limit(1)
        .correlate_except(Enrollment, Cohort, Classroom, AcademicSession)
    )
    return func.coalesce(query.scalar_subquery(), "")
