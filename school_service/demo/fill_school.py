"""Filling a sample school with records, in one transaction: all of them are there, or none."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from sqlalchemy import select

from school_service.core.database import db
from school_service.demo.attendance import make_registers
from school_service.demo.context import DemoContext
from school_service.demo.letterhead import make_letterhead
from school_service.demo.results import make_metrics, make_results
from school_service.demo.sample_schools import SampleSchool
from school_service.demo.scores import make_scores
from school_service.demo.staff import make_form_teachers, make_staff, make_subject_teachers
from school_service.demo.students import make_graduates, make_guardians, make_students
from school_service.demo.terms import (
    make_absences,
    make_calendars,
    make_classrooms,
    make_cohort_subjects,
    make_cohorts,
    make_comments,
    make_sessions,
    make_subjects,
)
from school_service.features.school.models import AcademicSession
from school_service.web.transactions import in_transaction
from tenants.connections.binding import SchoolBinding

# In this order: each may use the records of those before it.
STEPS: tuple[Callable[[DemoContext], None], ...] = (
    make_sessions,
    make_classrooms,
    make_subjects,
    make_staff,
    make_students,
    make_guardians,
    make_graduates,
    make_cohorts,
    make_form_teachers,
    make_cohort_subjects,
    make_subject_teachers,
    make_scores,
    make_metrics,
    make_letterhead,
    make_calendars,
    make_absences,
    make_comments,
    make_results,
    make_registers,
)


def fill_school(
    school: SampleSchool,
    steps: Iterable[Callable[[DemoContext], None]] = STEPS,
    done: Callable[[int], None] = lambda _number: None,
) -> None:
    """Fill a sample school, unless an earlier start has done so; each of the steps is told when it is `done`."""
    with in_transaction(SchoolBinding(school.id)):
        if db.session.scalars(select(AcademicSession.id).limit(1)).first() is not None:
            return
        context = DemoContext.of(school)
        for step in steps:
            step(context)
            done(1)
