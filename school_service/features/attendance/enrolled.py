"""The students in a class on a day: by the days that the school has entered, else by the moments of entering."""

from __future__ import annotations

from typing import Any

from sqlalchemy import ColumnElement, Date, and_, cast, func, or_, select
from sqlalchemy.orm import aliased

from school_service.features.people.models import WITHDRAWN, Student
from school_service.features.school.models import CURRENT, Enrollment
from school_service.features.school.settings.service import time_zone


def began(of: Any = Enrollment) -> ColumnElement[Any]:
    """The first day of an enrollment: from it on the student is in registers, and counts as enrolled."""
    return func.coalesce(of.started_on, _school_day(of.started_at))


def is_in_register(day: Any) -> ColumnElement[bool]:
    """Tell of rows of Enrollment, with their Student, whether the student is in the class's registers of a day.

    Of an enrollment that is open the day of the moment of entering does not matter: a register has all students in the
    class, also those entered later.
    """
    is_open = and_(
        CURRENT,
        Enrollment.ended_on.is_(None),
        Student.status != WITHDRAWN,
        or_(Enrollment.started_on.is_(None), Enrollment.started_on <= day),
    )
    had_day = and_(
        or_(~CURRENT, Enrollment.ended_on.is_not(None)),
        began() <= day,
        func.coalesce(Enrollment.ended_on, _school_day(Enrollment.ended_at)) >= day,
        or_(Student.status != WITHDRAWN, Student.left_on.is_(None), Student.left_on >= day),
        ~_was_elsewhere(day),
    )
    return or_(is_open, had_day)


def _was_elsewhere(day: Any) -> ColumnElement[bool]:
    """Tell whether the student of an enrollment that has ended had come into another class by the day: a mover."""
    later = aliased(Enrollment)
    return (
        select(later.id)
        .where(
            later.student_id == Enrollment.student_id,
            later.session_id == Enrollment.session_id,
            later.started_at >= Enrollment.ended_at,
            began(later) <= day,
        )
        .correlate_except(later)
        .exists()
    )


def _school_day(moment: Any) -> ColumnElement[Any]:
    """The school's day of a moment."""
    return cast(func.timezone(time_zone(), moment), Date)
