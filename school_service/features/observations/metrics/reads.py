"""Read models of metric records and traits, and the class list for sheets."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from sqlalchemy import JSON, Text, and_, cast, func, select
from sqlalchemy.dialects.postgresql import aggregate_order_by

from school_service.core.counters import TRAITS, Counter
from school_service.core.narrowing import judged_before
from school_service.core.reach import Reach
from school_service.core.read_models import Query, array_of, json_object, read_model
from school_service.core.records import is_one_of
from school_service.core.statements import lock_through
from school_service.features.observations.published import published_name
from school_service.features.people.models import Student, User
from school_service.features.people.students.reads import BY_NAME
from school_service.features.reach import scopes
from school_service.features.results.models import METRIC_TYPES, Metric, MetricDefinition, MetricScore
from school_service.features.school.models import CURRENT, Cohort, Enrollment, Term

_IN_ORDER = aggregate_order_by(MetricScore.score, MetricDefinition.position)
SCORES = (
    select(func.json_object_agg(MetricDefinition.name, _IN_ORDER, type_=JSON))
    .select_from(MetricScore)
    .join(MetricDefinition, MetricDefinition.id == MetricScore.definition_id)
    .where(MetricScore.metric_id == Metric.id)
    .correlate(Metric)
    .scalar_subquery()
)
"""The scores of a record, by the name of the trait."""


@read_model
def metrics(batch_id: UUID, term_id: UUID | None = None, reach: Reach | None = None) -> Query:
    """Read model of MetricRecordSchema: the records of a batch, in all terms or in one, by student and type."""
    query = _records().where(Metric.batch_id == batch_id)
    if term_id is not None:
        query = query.where(Metric.term_id == term_id)
    return query if reach is None else query.where(scopes.is_form_batch(reach, Metric.batch_id))


def _records() -> Query:
    """Select all records, by student, term and type."""
    return (
        select(
            Metric.id,
            (User.first_name + " " + User.last_name).label("student_name"),
            Student.admission_number,
            Term.term,
            Metric.batch_id.label("batch"),
            Metric.metric_type,
            SCORES.label("metric_scores"),
        )
        .join(Student, Student.id == Metric.student_id)
        .join(User, User.id == Student.user_id)
        .join(Term, Term.id == Metric.term_id)
        # The alphabet has the terms in their order: FIRST, SECOND, THIRD.
        .order_by(*BY_NAME, Term.term, Metric.metric_type, Metric.id)
    )


def class_list(batch_id: UUID, term_id: UUID, metric_type: str) -> Query:
    """Select the students in a batch now, by name, with their record of a term and type, from any batch.

    The batch was judged before.

    `student_id` and `metric_id` are texts, as PostgreSQL writes them; `metric_id`, `batch_id`, `sheet` and `scores`
    are None without a record.
    """
    of_term = and_(
        Metric.student_id == Student.id, Metric.term_id == term_id, Metric.metric_type == metric_type
    )
    return judged_before(
        select(
            Student.admission_number,
            User.first_name,
            Student.middle_name,
            User.last_name,
            cast(Student.id, Text).label("student_id"),
            cast(Metric.id, Text).label("metric_id"),
            Metric.batch_id,
            Metric.sheet,
            SCORES.label("scores"),
        )
        .select_from(Enrollment)
        .join(Student, Student.id == Enrollment.student_id)
        .join(User, User.id == Student.user_id)
        .outerjoin(Metric, of_term)
        .where(Enrollment.batch_id == batch_id, CURRENT)
        .order_by(*BY_NAME)
    )


@read_model
def metric(metric_id: UUID) -> Query:
    """Read model of MetricRecordSchema, for one."""
    return _records().where(Metric.id == metric_id)


lock_cohort_of = lock_through(Metric.cohort_id, Cohort)
"""Locks the cohort of a record, as the entry of a sheet and a publication do first."""


@read_model
def lock_traits() -> Query:
    """Lock the counters of traits: nobody else adds a trait, or changes one, meanwhile."""
    return (
        select(Counter.id)
        .where(is_one_of(Counter.name, TRAITS.values()))
        .order_by(Counter.name)
        .with_for_update(key_share=True)
    )


@judged_before
def students_with_records(batch_id: UUID, term_id: UUID) -> Query:
    """Select the students in a batch now, with their records of a term: for each type an array in JSON, as text.

    In one row with `traits`, and `published`, the name of batch and term while the results are. The rows of the arrays
    have the columns of `class_list`.
    """
    trait = json_object(
        id=MetricDefinition.id, name=MetricDefinition.name, metric_type=MetricDefinition.metric_type
    )
    return select(
        *(_gathered(batch_id, term_id, kind).label(kind) for kind in METRIC_TYPES),
        select(cast(array_of(trait), Text)).scalar_subquery().label("traits"),
        published_name(batch_id, term_id).label("published"),
    )


def _gathered(batch_id: UUID, term_id: UUID, metric_type: str) -> Any:
    listed = class_list(batch_id, term_id, metric_type).subquery(metric_type.lower())
    return select(cast(array_of(func.row_to_json(listed.table_valued())), Text)).scalar_subquery()


_DEFINITION = (
    MetricDefinition.id,
    MetricDefinition.name,
    MetricDefinition.metric_type,
    MetricDefinition.position,
)


@read_model
def definitions() -> Query:
    """Read model of MetricDefinitionSchema, by type and position."""
    return select(*_DEFINITION).order_by(MetricDefinition.metric_type, MetricDefinition.position)


@read_model
def definition(definition_id: UUID) -> Query:
    """Read model of MetricDefinitionSchema, for one."""
    return select(*_DEFINITION).where(MetricDefinition.id == definition_id)
