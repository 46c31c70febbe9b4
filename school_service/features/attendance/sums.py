"""Sums of registers: how often a class was called with a student in it, and how often they were there.

A register counts once it is submitted, for each student with a mark or a correction in it. After a change of arms a
student may have a mark in two registers of one date and part, or of one lesson. Then one counts: present if either says
so.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import ARRAY, CTE, ColumnElement, Numeric, Uuid, any_, cast, func, or_, select

from school_service.core.read_models import Query
from school_service.features.attendance.models import (
    ABSENT,
    EXCUSED,
    LATE,
    LESSON,
    PRESENT,
    SUBMITTED,
    Mark,
    Register,
)

COUNTS = func.coalesce(Mark.correction_kind, Mark.kind)
"""The kind of a mark as it counts: the office's correction, else the teacher's mark."""

SUMS = ("opened", "present", "late", "absent", "excused")


def times(*conditions: Any, period: bool = False) -> Query:
    """Select marks as they count, of day registers or of lessons by `period`: `student_id`, `date`, `part`, `kind`.

    One row for each student and time. `conditions` are of `Register` and `Mark`.
    """
    part = Register.period if period else Register.part
    # PRESENT, LATE, EXCUSED, ABSENT is the alphabet backwards: the greatest is the one that counts.
    kind = func.max(COUNTS.collate("C")).label("kind")
    of_kind = Register.part == LESSON if period else Register.part != LESSON
    return (
        select(Mark.student_id, Register.date, part.label("part"), kind)
        .select_from(Mark)
        .join(Register, Register.id == Mark.register_id)
        .where(Register.state == SUBMITTED, of_kind, *conditions)
        .group_by(Mark.student_id, Register.date, part)
    )


def roll_up(*conditions: Any, period: bool = False) -> Query:
    """Select the sums of each student: `student_id`, `opened`, `present`, `late`, `absent`, `excused`.

    `conditions` are of `Register` and `Mark`; without a counting mark a student has no row. Those of a term, for cards:
    `roll_up(Register.term_id == term_id, Mark.student_id.in_(students)).subquery()`, to be outer-joined.
    """
    each = times(*conditions, period=period).subquery("times")
    return select(each.c.student_id, *counted(each.c.kind)).group_by(each.c.student_id)


def roll_up_of(students: Any, *conditions: Any) -> CTE:
    """Make the table of the sums of some students, as `roll_up` selects them, for use beside other tables.

    `students` selects their ids. It is made once, from their marks. PostgreSQL would make it anew for each joined row,
    if it expects few marks.
    """
    of_students = Mark.student_id == any_(func.array(students.scalar_subquery(), type_=ARRAY(Uuid)))
    return roll_up(*conditions, of_students).cte("rolled_up").prefix_with("MATERIALIZED")


def counted(kind: Any) -> list[Any]:
    """Count kinds: `opened`, `present` with late arrivals, `late`, `absent` with excused absences, `excused`."""

    def of(*kinds: str) -> Any:
        return func.count().filter(or_(*(kind == value for value in kinds)))

    return [
        func.count(kind).label("opened"),
        of(PRESENT, LATE).label("present"),
        of(LATE).label("late"),
        of(ABSENT, EXCUSED).label("absent"),
        of(EXCUSED).label("excused"),
    ]


def percent(present: Any, opened: Any) -> ColumnElement[Any]:
    """Give the percentage of times present, rounded half up to two places; null of no times."""
    share: ColumnElement[Any] = func.round(cast(100 * present, Numeric) / func.nullif(opened, 0), 2)
    return share
