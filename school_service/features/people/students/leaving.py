"""The date of leaving the school: of a student who has withdrawn or graduated, and the last day in the class too."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date
from typing import Any
from uuid import UUID

from sqlalchemy import Date, Uuid, null, select, update
from sqlalchemy.orm import aliased

from school_service.core.errors import Invalid
from school_service.core.read_models import BoundQuery, Query, array_of, json_object, read_model
from school_service.core.records import one_of, unnest_rows
from school_service.core.statements import statement
from school_service.features.school.models import CURRENT, AcademicSession, Enrollment

OF_LEAVING = ("left_on", "leaving_reason")
OF_LEAVERS = "is of a student who has withdrawn or graduated"


def refuse_order(admitted_on: date | None, left_on: date | None, field: str = "left_on") -> None:
    """Refuse a date of leaving before the date of admission, by the given field of both. Raises Invalid."""
    if admitted_on and left_on and admitted_on > left_on:
        raise Invalid.field(field, "is before admitted_on" if field == "left_on" else "is after left_on")


def last_class(enrollments: Sequence[Mapping[str, Any]], left_on: date) -> Mapping[str, Any] | None:
    """Find the class of a student's last day: the open enrollment of the latest session that has begun by then.

    `enrollments` are all open ones, as `last_day` has them.
    """
    begun = [enrollment for enrollment in enrollments if enrollment["session_begins"] <= left_on.isoformat()]
    return max(begun, key=lambda enrollment: str(enrollment["session_begins"]), default=None)


def began_later(enrollment: Mapping[str, Any] | None, left_on: date) -> bool:
    """Tell whether the student began in the class after the day."""
    started_on = enrollment["started_on"] if enrollment else None
    return started_on is not None and str(started_on) > left_on.isoformat()


def refuse_last_day(enrollments: Sequence[Mapping[str, Any]], left_on: date) -> None:
    """Refuse a date of leaving before the first day in the class. Raises Invalid."""
    enrollment = last_class(enrollments, left_on)
    if enrollment is not None and began_later(enrollment, left_on):
        raise Invalid.field("left_on", f"is before the first day in the class, {enrollment['started_on']}")


def last_days(
    left_on: Mapping[UUID, date], enrollments: Mapping[UUID, Sequence[Mapping[str, Any]]]
) -> tuple[BoundQuery, ...]:
    """Make the statement to write the dates of leaving of students as the last days in their classes, for `execute`.

    `enrollments` are all open ones of each student, by the student's id.
    """
    classes = [(last_class(enrollments[student], day), day) for student, day in left_on.items()]
    last = [(UUID(enrollment["id"]), day) for enrollment, day in classes if enrollment is not None]
    return (
        (_write_last_days([enrollment for enrollment, _ in last], [day for _, day in last]),) if last else ()
    )


def last_day(of: Any) -> dict[str, Any]:
    """The members of an enrollment in JSON for its last day: its id, and the first days of it and its session."""
    session = aliased(AcademicSession)
    begins = select(session.start_date).where(session.id == of.session_id).correlate_except(session)
    return {"id": of.id, "started_on": of.started_on, "session_begins": begins.scalar_subquery()}


@read_model
def open_enrollments(student_id: UUID) -> Query:
    """Select the open enrollments of a student, as JSON: one row."""
    return select(opened_by(student_id).label("enrollments"))


def opened_by(student_id: Any) -> Any:
    """Write the open enrollments of a student, an id or a column of the query around, as JSON."""
    theirs = select(array_of(json_object(**last_day(Enrollment)))).where(
        Enrollment.student_id == student_id, CURRENT
    )
    return theirs.correlate_except(Enrollment).scalar_subquery()


@statement
def _write_last_days(enrollment_ids: list[UUID], days: list[date]) -> Any:
    rows = unnest_rows("ending", None, id=(Uuid, enrollment_ids), day=(Date, days))
    return update(Enrollment).where(Enrollment.id == rows.c.id).values(ended_on=rows.c.day)


@statement
def forget_last_days(student_ids: list[UUID]) -> Any:
    """Empty the last day of the open enrollments of students."""
    has_one = Enrollment.ended_on.is_not(None)
    return (
        update(Enrollment)
        .where(Enrollment.student_id == one_of(student_ids), CURRENT, has_one)
        .values(ended_on=null())
    )
