"""The contents of cards beside figures: of the school, the term and the class, and the remarks on each student.

`record` makes a document for `class_term`, with its numbers of people.
"""

from __future__ import annotations

from operator import attrgetter
from typing import Any

from sqlalchemy import CTE, ColumnElement, Text, cast, func, literal_column, select
from sqlalchemy.orm import aliased

from school_service.core.read_models import json_object, one_row, school_value
from school_service.features.attendance.calendar import counts_registers
from school_service.features.attendance.models import Register
from school_service.features.attendance.sums import roll_up_of
from school_service.features.people.employees.reads import form_teacher_of
from school_service.features.results.computing.class_term.entered import ClassTerm, listed, rows_of
from school_service.features.results.computing.class_term.scopes import value_of
from school_service.features.results.models import Metric, MetricDefinition, MetricScore
from school_service.features.school.cohorts.reads import class_name
from school_service.features.school.models import Batch, Letterhead, Picture, TermCalendar
from school_service.features.school.settings.service import time_zone
from school_service.features.year.models import TermComment

Column = ColumnElement[Any]

_REGISTERED = ("name", "address", "phone_number", "email_address", "motto")
_OWN = ("website", "principal_name", "principal_title")
_CALENDAR = ("start_date", "end_date", "times_opened", "next_term_begins", "notice")


def record(of: ClassTerm) -> Column:
    """A column: the contents of the cards of a class in a term beside figures."""
    term_id = value_of(of.scope, "term_id")
    calendar = json_object(**{name: getattr(TermCalendar, name) for name in _CALENDAR})
    of_term = one_row().outerjoin(TermCalendar, TermCalendar.term_id == term_id)
    pictures = func.json_build_array(Letterhead.logo_id, Letterhead.signature_id)
    return json_object(
        letterhead=letterhead(),
        pictures=select(pictures).scalar_subquery(),
        calendar=select(calendar).select_from(of_term).scalar_subquery(),
        time_zone=time_zone(),
        by_registers=counts_registers(),
        arms=_arms(of.scope),
        comments=_comments(of.people, term_id),
        traits=_traits(of.people, term_id),
        attendance=_attendance(of.people, term_id),
    )


def letterhead() -> Any:
    """The school's letterhead, else the registry's details; `logo` and `signature` are known by hashes."""
    logo, signature = aliased(Picture), aliased(Picture)
    members = {
        **{name: func.coalesce(getattr(Letterhead, name), _detail(name)) for name in _REGISTERED},
        **{name: getattr(Letterhead, name) for name in _OWN},
        "logo": logo.sha256,
        "signature": signature.sha256,
    }
    return (
        select(json_object(**members))
        .select_from(one_row())
        .outerjoin(Letterhead, literal_column("true"))
        .outerjoin(logo, logo.id == Letterhead.logo_id)
        .outerjoin(signature, signature.id == Letterhead.signature_id)
        .scalar_subquery()
    )


def _detail(name: str) -> Any:
    """A detail of the school in the registry."""
    return cast(school_value(f"school_{name}", attrgetter(name)), Text)


def _arms(scope: CTE) -> Any:
    """The batches of the cohort, by name: each with the class's name on paper, and its latest form teacher."""
    on_paper = class_name(scope.c.classroom, Batch.name, scope.c.cohort_id)
    arms = (
        select(
            Batch.id,
            Batch.name,
            on_paper.label("class_name"),
            form_teacher_of(Batch.id).label("form_teacher"),
        )
        .join(scope, scope.c.cohort_id == Batch.cohort_id)
        .subquery("arms")
    )
    arm = func.json_build_array(*arms.c)
    return listed(arm, arms.c.name, arms.c.id, of=arms)


def _comments(people: CTE, term_id: Any) -> Any:
    comment = TermComment
    query = (
        select(
            people.c.number, comment.form_teacher_comment, comment.principal_comment, comment.times_present
        )
        .join(people, people.c.student_id == comment.student_id)
        .where(comment.term_id == term_id)
        .subquery("comments_of_term")
    )
    return rows_of(query)


def _traits(people: CTE, term_id: Any) -> Any:
    """The students' scores of traits, in the order of the metric sheets."""
    query = (
        select(people.c.number, MetricDefinition.metric_type, MetricDefinition.name, MetricScore.score)
        .select_from(Metric)
        .join(people, people.c.student_id == Metric.student_id)
        .join(MetricScore, MetricScore.metric_id == Metric.id)
        .join(MetricDefinition, MetricDefinition.id == MetricScore.definition_id)
        .where(Metric.term_id == term_id)
        .add_columns(MetricDefinition.position)
        .subquery("traits")
    )
    of = query.c
    trait = func.json_build_array(of.number, of.metric_type, of.name, of.score)
    return listed(trait, of.metric_type, of.position, of=query)


def _attendance(people: CTE, term_id: Any) -> Any:
    """How often registers had the students in them, and how often these were there; nothing unless registers count."""
    students = select(people.c.student_id)
    sums = roll_up_of(students, counts_registers(), Register.term_id == term_id)
    query = (
        select(people.c.number, sums.c.opened, sums.c.present, sums.c.absent)
        .join(people, people.c.student_id == sums.c.student_id)
        .subquery("attendance_of_term")
    )
    return rows_of(query)
