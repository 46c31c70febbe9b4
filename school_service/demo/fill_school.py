"""Filling a sample school: all of it in one transaction, so that it is there as a whole or not at all."""

from __future__ import annotations

from collections.abc import Callable

from sqlalchemy import select

from school_service.core.database import db
from school_service.demo.cohorts import make_classes, make_cohort_subjects
from school_service.demo.context import Filling
from school_service.demo.graduates import make_alumni
from school_service.demo.metrics import make_metrics
from school_service.demo.sample_schools import SampleSchool
from school_service.demo.school_structure import make_classrooms, make_sessions, make_subjects
from school_service.demo.scores import make_scores
from school_service.demo.staff import make_form_teachers, make_staff
from school_service.demo.students import make_students
from school_service.features.sessions.models import Session
from school_service.web.request_scope import in_school
from tenants.connections.binding import Entry

# In this order: each may use what those before it made.
STEPS: tuple[Callable[[Filling], None], ...] = (
    make_sessions,
    make_classrooms,
    make_subjects,
    make_staff,
    make_students,
    make_alumni,
    make_classes,
    make_form_teachers,
    make_cohort_subjects,
    make_scores,
    make_metrics,
)


def fill(school: SampleSchool) -> None:
    """Fill a sample school, unless an earlier start has done so."""
    with in_school(Entry(school.id)):
        if db.session.scalars(select(Session.id).limit(1)).first() is not None:
            return
        filling = Filling.of(school)
        for step in STEPS:
            step(filling)
