"""The assessments of the current session, and the students' scores in them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID, uuid4

from sqlalchemy import insert, select

from school_service.core.database import db
from school_service.demo.context import THIS_SESSION, THIS_YEAR, DemoContext, first_day
from school_service.features.audit.service import Change, audit_changes
from school_service.features.classes.models import SubjectEnrollment
from school_service.features.school.models import CURRENT, TERMS, Enrollment
from school_service.features.scores.assessments.service import SCORE_ENTITY
from school_service.features.scores.models import Assessment, GradebookEntry
from tenants.clock import now


@dataclass(frozen=True)
class AssessmentPlan:
    """An assessment of every subject and term: its points, and the week of the term it is due in."""

    category: str
    name: str
    points: int
    week: int


ASSESSMENT_PLANS = (
    AssessmentPlan("CA1", "First continuous assessment", 10, 4),
    AssessmentPlan("CA2", "Second continuous assessment", 10, 7),
    AssessmentPlan("CA3", "Project", 20, 10),
    AssessmentPlan("EXAM", "Examination", 60, 12),
)
_TERM = timedelta(weeks=15)
_ABSENT = 0.03  # fraction of students who miss an assessment; they have no entry, which is not a score of 0


def make_scores(context: DemoContext) -> None:
    """Make three continuous assessments and an examination of every subject and term, with scores.

    Inserted a subject at a time, not one by one through the services: a school has thousands of scores.
    """
    abilities = {
        student: min(0.97, max(0.2, context.population.random.gauss(0.62, 0.14)))
        for students in context.students.values()
        for student in students
    }
    for (classroom, subject), cohort_subject_id in context.cohort_subjects.items():
        assessments = _assessments(context, classroom, subject, cohort_subject_id)
        db.session.execute(insert(Assessment), assessments)
        entries = _entries(context, assessments, _takers(cohort_subject_id), abilities)
        db.session.execute(insert(GradebookEntry), entries)
        audit_changes(
            SCORE_ENTITY,
            [Change(entry["id"], None, {"score": entry["score"], "source": "hand"}) for entry in entries],
        )


def _assessments(
    context: DemoContext, classroom: str, subject: str, cohort_subject_id: UUID
) -> list[dict[str, Any]]:
    begin, moment = first_day(THIS_YEAR), now()
    return [
        {
            "id": uuid4(),
            "cohort_subject_id": cohort_subject_id,
            "cohort_id": context.cohorts[classroom],
            "session_id": context.sessions[THIS_SESSION],
            "term_id": context.terms[THIS_SESSION, term],
            "category": plan.category,
            "name": f"{plan.name}, {subject}",
            "abbreviation": plan.category,
            "due_date": begin + number * _TERM + timedelta(weeks=plan.week, days=4),
            "total_points": Decimal(plan.points),
            "description": f"{plan.name} in {subject} for {classroom}",
            "file_name": f"{classroom} {subject} {plan.category}.xlsx",
            "include_in_final": True,
            "publish_scores": True,
            "created_at": moment,
        }
        for number, term in enumerate(TERMS)
        for plan in ASSESSMENT_PLANS
    ]


def _takers(cohort_subject_id: UUID) -> list[tuple[UUID, UUID]]:
    """Find the students of a subject, each with their arm; in the same order in every sample school."""
    rows = db.session.execute(
        select(Enrollment.student_id, Enrollment.batch_id)
        .join(SubjectEnrollment, SubjectEnrollment.student_id == Enrollment.student_id)
        .where(SubjectEnrollment.cohort_subject_id == cohort_subject_id, CURRENT)
    )
    return sorted((row.student_id, row.batch_id) for row in rows)


def _entries(
    context: DemoContext,
    assessments: list[dict[str, Any]],
    takers: list[tuple[UUID, UUID]],
    abilities: dict[UUID, float],
) -> list[dict[str, Any]]:
    random, moment = context.population.random, now()
    difficulty = random.uniform(-0.08, 0.08)
    entries = []
    for assessment in assessments:
        points = assessment["total_points"]
        for student_id, batch_id in takers:
            if random.random() < _ABSENT:
                continue
            fraction = min(1.0, max(0.0, random.gauss(abilities[student_id] - difficulty, 0.09)))
            entries.append(
                {
                    "id": uuid4(),
                    "assessment_id": assessment["id"],
                    "student_id": student_id,
                    "batch_id": batch_id,
                    # Teachers give half points.
                    "score": (points * 2 * Decimal(fraction)).quantize(Decimal(1)) / 2,
                    "created_at": moment,
                    "updated_at": moment,
                }
            )
    return entries
