"""Traits, metric records and the scores in them."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from sqlalchemy import (
    CheckConstraint,
    DateTime,
    ForeignKey,
    ForeignKeyConstraint,
    Index,
    Integer,
    SmallInteger,
    String,
    UniqueConstraint,
)
from sqlalchemy.orm import Mapped, mapped_column

from school_service.core.columns import NAME_LENGTH, created_at, primary_key
from school_service.core.database import db
from school_service.core.enumeration import Enumeration
from school_service.features.assessments.models import FILE_NAME_LENGTH
from tenants.clock import now

PSYCHOMOTOR, AFFECTIVE = METRIC_TYPES = Enumeration("MetricType", "PSYCHOMOTOR", "AFFECTIVE")
POOREST, BEST = 1, 5
_KNOWN_TYPE = "metric_type IN ('PSYCHOMOTOR', 'AFFECTIVE')"


class MetricDefinition(db.Model):
    """A trait that students are scored for, such as punctuality; `position` orders those of its type, from 1."""

    __tablename__ = "metric_definitions"
    __table_args__ = (
        UniqueConstraint("name", "metric_type"),
        UniqueConstraint("metric_type", "position"),
        CheckConstraint(_KNOWN_TYPE, name="metric_type"),
    )

    id: Mapped[UUID] = primary_key()
    name: Mapped[str] = mapped_column(String(NAME_LENGTH))
    metric_type: Mapped[str] = mapped_column(String(20))
    position: Mapped[int] = mapped_column(Integer)


class Metric(db.Model):
    """What was seen of a student in a term, of one type, and the batch on whose sheet it came last.

    Cohort and session are the batch's own. They are here so that the term is always one of that session, and
    the cohort keeps its session, whoever writes at the same time. `sheet` is the name of the file that it
    came in last.
    """

    __tablename__ = "metrics"
    __table_args__ = (
        UniqueConstraint("student_id", "term_id", "metric_type"),
        ForeignKeyConstraint(["batch_id", "cohort_id"], ["batches.id", "batches.cohort_id"]),
        ForeignKeyConstraint(["cohort_id", "session_id"], ["cohorts.id", "cohorts.session_id"]),
        ForeignKeyConstraint(["term_id", "session_id"], ["terms.id", "terms.session_id"]),
        CheckConstraint(_KNOWN_TYPE, name="metric_type"),
        Index(None, "batch_id", "cohort_id"),
        Index(None, "cohort_id", "session_id"),
        Index(None, "term_id", "session_id"),
    )

    id: Mapped[UUID] = primary_key()
    student_id: Mapped[UUID] = mapped_column(ForeignKey("students.id"))
    batch_id: Mapped[UUID]
    cohort_id: Mapped[UUID]
    session_id: Mapped[UUID]
    term_id: Mapped[UUID]
    metric_type: Mapped[str] = mapped_column(String(20))
    sheet: Mapped[str] = mapped_column(String(FILE_NAME_LENGTH))
    created_at: Mapped[datetime] = created_at()
    updated_at: Mapped[datetime] = mapped_column(DateTime(timezone=True), default=now)


class MetricScore(db.Model):
    """The score of a trait in a metric record: 5 excellent, 4, 3, 2, 1 poor."""

    __tablename__ = "metric_scores"
    __table_args__ = (CheckConstraint("score BETWEEN 1 AND 5", name="score"),)

    metric_id: Mapped[UUID] = mapped_column(ForeignKey("metrics.id"), primary_key=True)
    definition_id: Mapped[UUID] = mapped_column(
        ForeignKey("metric_definitions.id"), primary_key=True, index=True
    )
    score: Mapped[int] = mapped_column(SmallInteger)
