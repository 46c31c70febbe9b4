"""Registers of every class: half a term until the day of the demo's making, but for two."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, timedelta
from typing import Any
from uuid import UUID, uuid4

from sqlalchemy import insert, select

from school_service.core.database import db
from school_service.demo.context import THIS_SESSION, TODAY, DemoContext
from school_service.demo.terms import term_dates
from school_service.features.attendance.models import (
    CLOSED,
    DAY,
    DEFAULT_CODES,
    OPEN,
    SUBMITTED,
    Mark,
    Register,
    SchoolDay,
)
from school_service.features.attendance.registers.service import ENTITY
from school_service.features.audit.service import Change, audit_changes
from school_service.features.school.models import CURRENT, TERMS, Enrollment
from tenants.clock import now

HALF_A_TERM = timedelta(weeks=7)
HOLIDAY = "Public holiday"
_MISSING = 2  # registers of today
_SATURDAY = 5  # the first weekday on which no school is open
_AWAY, _EXCUSED, _LATE = 0.05, 0.3, 0.04  # fractions: of marks, of absent students, of marks
_PRESENT, _CAME_LATE, _ABSENT, _WAS_EXCUSED = DEFAULT_CODES


def make_registers(context: DemoContext) -> None:
    """Mark every class on each school day of half a term, but two today.

    Inserted at once, not by the service one by one: they are thousands of marks.
    """
    term, first = _term_of_today()
    days, exceptions = _school_days(first)
    db.session.execute(insert(SchoolDay), exceptions)
    classes = _classes(context)
    missing = set(list(classes)[-_MISSING:])
    moment = now()
    registers: list[dict[str, Any]] = []
    marks: list[dict[str, Any]] = []
    changes = []
    for day in days:
        for (batch_id, cohort_id), students in classes.items():
            if day == TODAY and (batch_id, cohort_id) in missing:
                continue
            register_id = uuid4()
            registers.append(
                {
                    "id": register_id,
                    "batch_id": batch_id,
                    "cohort_id": cohort_id,
                    "session_id": context.sessions[THIS_SESSION],
                    "term_id": context.terms[THIS_SESSION, term],
                    "date": day,
                    "part": DAY,
                    "state": SUBMITTED,
                    "version": 1,
                    "changed_at": moment,
                    "changed_by": context.principal.actor,
                    "changed_by_name": context.principal.actor_name,
                }
            )
            codes = [(student, *_code(context)) for student in students]
            marks += [
                {
                    "register_id": register_id,
                    "student_id": student,
                    "code": code,
                    "kind": kind,
                    "version": 1,
                }
                for student, code, _, kind in codes
            ]
            changed = {str(student): code for student, code, _, _ in codes}
            values = {"part": DAY, "date": day, "state": SUBMITTED, "changed": changed, "source": "hand"}
            changes.append(Change(register_id, None, values))
    db.session.execute(insert(Register), registers)
    db.session.execute(insert(Mark), marks)
    audit_changes(ENTITY, changes)


def _term_of_today() -> tuple[str, date]:
    """Find the term of today, and the first day of half a term until today."""
    term, start = max(
        ((term, start) for term, (start, _) in zip(TERMS, term_dates(), strict=True) if start <= TODAY),
        key=lambda pair: pair[1],
    )
    return term, max(start, TODAY - HALF_A_TERM)


def _school_days(first: date) -> tuple[list[date], list[dict[str, Any]]]:
    """Find the school days from a first day until today, and the entries for days out of the ordinary.

    One is a holiday; and on a weekend school is open today: there is a register to take.
    """
    days = [day for day in _days(first) if day.weekday() < _SATURDAY]
    exceptions: list[dict[str, Any]] = []
    if days and days[len(days) // 2] != TODAY:
        holiday = days.pop(len(days) // 2)
        exceptions.append({"date": holiday, "status": CLOSED, "name": HOLIDAY})
    if TODAY.weekday() >= _SATURDAY:
        days.append(TODAY)
        exceptions.append({"date": TODAY, "status": OPEN, "name": "Weekend lessons"})
    return days, [{"id": uuid4(), "part": DAY, **exception} for exception in exceptions]


def _days(first: date) -> Iterator[date]:
    return (first + timedelta(days=number) for number in range((TODAY - first).days + 1))


def _classes(context: DemoContext) -> dict[tuple[UUID, UUID], list[UUID]]:
    """Find the students of each arm of the current session, in the same order in every sample school."""
    classes = db.session.execute(
        select(Enrollment.batch_id, Enrollment.cohort_id, Enrollment.student_id).where(
            Enrollment.session_id == context.sessions[THIS_SESSION], CURRENT
        )
    )
    students: dict[UUID, list[UUID]] = {}
    for row in classes:
        students.setdefault(row.batch_id, []).append(row.student_id)
    return {
        (arm, context.cohorts[classroom]): sorted(students[arm])
        for classroom, arms in context.arms.items()
        for arm in arms
        if arm in students
    }


def _code(context: DemoContext) -> tuple[str, str, str]:
    """Choose the mark of a student."""
    random = context.population.random
    number = random.random()
    if number < _AWAY:
        return _WAS_EXCUSED if random.random() < _EXCUSED else _ABSENT
    return _CAME_LATE if number < _AWAY + _LATE else _PRESENT
