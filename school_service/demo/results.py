"""Scores of behaviour, and the first term of two classes: submitted, published, and of one arm published again."""

from __future__ import annotations

from uuid import UUID, uuid4

from sqlalchemy import insert, select

from school_service.core.database import db
from school_service.core.read_models import BoundQuery, Made, fetch_made, fetch_row
from school_service.core.texts import SURNAME_FIRST
from school_service.demo.context import THIS_SESSION, DemoContext
from school_service.features.audit.service import Change, audit_changes, score_values
from school_service.features.observations.comments.service import enter_comments
from school_service.features.observations.metrics.service import ENTITY
from school_service.features.people.models import Student
from school_service.features.results.models import (
    BEST,
    METRIC_TYPES,
    POOREST,
    Metric,
    MetricDefinition,
    MetricScore,
    Publication,
)
from school_service.features.results.publications.judging import Plan
from school_service.features.results.publications.service import publish, reopen
from school_service.features.results.submissions.service import submit
from school_service.features.school.models import CURRENT, TERMS, Enrollment
from school_service.features.scores.result_settings.service import change_result_settings
from tenants.clock import now


def make_metrics(context: DemoContext) -> None:
    """Score every student for every trait in every term.

    Inserted a class at a time, not sheet by sheet through the service, like the scores.
    """
    traits: dict[str, list[tuple[UUID, str]]] = {metric_type: [] for metric_type in METRIC_TYPES}
    for trait in db.session.scalars(select(MetricDefinition).order_by(MetricDefinition.position)):
        traits[trait.metric_type].append((trait.id, trait.name))
    for classroom in context.cohorts:
        for term in TERMS:
            for metric_type in METRIC_TYPES:
                _make_class(context, classroom, term, metric_type, traits[metric_type])


def _make_class(
    context: DemoContext, classroom: str, term: str, metric_type: str, traits: list[tuple[UUID, str]]
) -> None:
    random, moment = context.population.random, now()
    sheet = f"{classroom} {term.title()} Term {metric_type.lower()}.xlsx"
    common = {
        "cohort_id": context.cohorts[classroom],
        "session_id": context.sessions[THIS_SESSION],
        "term_id": context.terms[THIS_SESSION, term],
        "metric_type": metric_type,
        "sheet": sheet,
        "created_at": moment,
        "updated_at": moment,
    }
    records, scores, changes = [], [], []
    for student_id, batch_id in _students(context, classroom):
        metric_id = uuid4()
        records.append({"id": metric_id, "student_id": student_id, "batch_id": batch_id, **common})
        given = {name: min(BEST, max(POOREST, round(random.gauss(3.7, 0.9)))) for _, name in traits}
        scores += [
            {"metric_id": metric_id, "definition_id": definition_id, "score": given[name]}
            for definition_id, name in traits
        ]
        changes.append(Change(metric_id, None, score_values(given, sheet)))
    db.session.execute(insert(Metric), records)
    db.session.execute(insert(MetricScore), scores)
    audit_changes(ENTITY, changes)


def _students(context: DemoContext, classroom: str) -> list[tuple[UUID, UUID]]:
    """Find the students of a class, each with their arm."""
    rows = db.session.execute(
        select(Enrollment.student_id, Enrollment.batch_id).where(
            Enrollment.cohort_id == context.cohorts[classroom], CURRENT
        )
    )
    return [(row.student_id, row.batch_id) for row in rows]


PUBLISHED = ("JSS 1", "SSS 2")
"""The classrooms with a published first term; all others are open."""

_FIRST, *_ = TERMS


def make_results(context: DemoContext) -> None:
    """Submit and publish the first term of two classes; correct a card of SSS 2 A, and publish this arm again.

    Papers have the surname first, as class lists have it.
    """
    _send(change_result_settings(name_order=SURNAME_FIRST))
    for classroom in PUBLISHED:
        for (of, _), cohort_subject_id in context.cohort_subjects.items():
            if of == classroom:
                _send(submit(cohort_subject_id=cohort_subject_id, term=_FIRST))
        _send(publish(Plan(context.arms[classroom], _FIRST)))
    _correct(context)


def _correct(context: DemoContext) -> None:
    """Reopen the results of an arm for a comment written on the wrong card, and publish them again."""
    batch = context.arms[PUBLISHED[-1]][0]
    publication_id = db.session.scalars(select(Publication.id).where(Publication.batch_id == batch)).one()
    _send(reopen(publication_id=publication_id, reason="A comment stood on the wrong card."))
    first = (
        select(Student.id)
        .join(Enrollment, Enrollment.student_id == Student.id)
        .where(Enrollment.batch_id == batch, CURRENT)
        .order_by(Student.number)
        .limit(1)
    )
    comment = {
        "student": db.session.scalars(first).one(),
        "form_teacher_comment": "A calm and thoughtful member of the class, who reads widely.",
    }
    _send(
        enter_comments(
            batch=batch,
            term=str(context.terms[THIS_SESSION, _FIRST]),
            comments=[comment],
            principal=context.principal,
        )
    )
    _send(publish(Plan([batch], _FIRST)))


def _send(answer: BoundQuery | Made) -> None:
    """Send the statements returned by a service together with its answer."""
    if isinstance(answer, Made):
        fetch_made(answer)
    else:
        fetch_row(answer)
