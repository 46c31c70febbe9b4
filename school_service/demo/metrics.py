"""What was seen of the students' behaviour in each term of the current session."""

from __future__ import annotations

from uuid import UUID, uuid4

from sqlalchemy import insert, select

from school_service.core.database import db
from school_service.demo.context import THIS_SESSION, DemoContext
from school_service.features.audit.service import Change, audit_changes, score_values
from school_service.features.results.metrics.service import ENTITY
from school_service.features.results.models import (
    BEST,
    METRIC_TYPES,
    POOREST,
    Metric,
    MetricDefinition,
    MetricScore,
)
from school_service.features.school.models import CURRENT, TERMS, Enrollment
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
    """Find who is in a class, each with their arm."""
    found = db.session.execute(
        select(Enrollment.student_id, Enrollment.batch_id).where(
            Enrollment.cohort_id == context.cohorts[classroom], CURRENT
        )
    )
    return [(row.student_id, row.batch_id) for row in found]
