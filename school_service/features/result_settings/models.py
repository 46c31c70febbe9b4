"""Result settings."""

from __future__ import annotations

from decimal import Decimal
from typing import Any
from uuid import UUID

from sqlalchemy import Boolean, CheckConstraint, Numeric, SmallInteger, String, UniqueConstraint
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import Mapped, mapped_column

from school_service.core.columns import primary_key
from school_service.core.database import db
from school_service.core.enumeration import Enumeration
from school_service.features.assessments.models import CATEGORIES as ASSESSMENT_CATEGORIES

POINTS, CATEGORIES = WEIGHTINGS = Enumeration("Weighting", "POINTS", "CATEGORIES")
AVERAGE, TOTAL = RANKINGS = Enumeration("RankBy", "AVERAGE", "TOTAL")
BOTH, BATCH, COHORT, NONE = SHOWN_POSITIONS = Enumeration("ShownPositions", "BOTH", "BATCH", "COHORT", "NONE")
COUNTING = Enumeration(
    "CountingCategory", *(name for name in ASSESSMENT_CATEGORIES if not name.endswith("_TERM"))
)
"""The categories that count in a term: those of the others bring a term's result in from elsewhere."""

MAX_PLACES, MAX_SUBJECTS, MAX_TERMS = 2, 40, 3
HUNDREDTHS = Numeric(5, 2)


class ResultSettings(db.Model):
    """How a school's results are computed from now on; without the row, as `DEFAULTS` say.

    `weights` is an array of `{"level": text or null, "category": text, "weight": number}`, where null stands for
    every level that has no weights of its own; those of one level sum to 100. `principal_comments` is an array of
    `{"lower_threshold": number, "comment": text}`, highest first. The weights of the terms are 0 or more, one above 0.
    """

    __tablename__ = "result_settings"
    __table_args__ = (
        UniqueConstraint("singleton"),
        CheckConstraint("singleton", name="singleton"),
        CheckConstraint("weighting IN ('POINTS', 'CATEGORIES')", name="weighting"),
        CheckConstraint("percent_places BETWEEN 0 AND 2", name="percent_places"),
        CheckConstraint("pass_mark BETWEEN 0 AND 100", name="pass_mark"),
        CheckConstraint("minimum_subjects BETWEEN 1 AND 40", name="minimum_subjects"),
        CheckConstraint("minimum_terms BETWEEN 1 AND 3", name="minimum_terms"),
        CheckConstraint("rank_by IN ('AVERAGE', 'TOTAL')", name="rank_by"),
        CheckConstraint("positions IN ('BOTH', 'BATCH', 'COHORT', 'NONE')", name="positions"),
        CheckConstraint(
            "first_term_weight >= 0 AND second_term_weight >= 0 AND third_term_weight >= 0"
            " AND first_term_weight + second_term_weight + third_term_weight > 0",
            name="term_weights",
        ),
    )

    id: Mapped[UUID] = primary_key()
    singleton: Mapped[bool] = mapped_column(Boolean, default=True)
    weighting: Mapped[str] = mapped_column(String(20))
    weights: Mapped[list[dict[str, Any]]] = mapped_column(JSONB)
    percent_places: Mapped[int] = mapped_column(SmallInteger)
    pass_mark: Mapped[Decimal] = mapped_column(HUNDREDTHS)
    minimum_subjects: Mapped[int] = mapped_column(SmallInteger)
    minimum_terms: Mapped[int] = mapped_column(SmallInteger)
    rank_by: Mapped[str] = mapped_column(String(20))
    first_term_weight: Mapped[Decimal] = mapped_column(HUNDREDTHS)
    second_term_weight: Mapped[Decimal] = mapped_column(HUNDREDTHS)
    third_term_weight: Mapped[Decimal] = mapped_column(HUNDREDTHS)
    positions: Mapped[str] = mapped_column(String(20))
    principal_comments: Mapped[list[dict[str, Any]]] = mapped_column(JSONB)
    verification: Mapped[bool] = mapped_column(Boolean)


DEFAULTS: dict[str, Any] = {
    "weighting": POINTS,
    "weights": [],
    "percent_places": 2,
    "pass_mark": Decimal("40.00"),
    "minimum_subjects": 1,
    "minimum_terms": 1,
    "rank_by": AVERAGE,
    "first_term_weight": Decimal("1.00"),
    "second_term_weight": Decimal("1.00"),
    "third_term_weight": Decimal("1.00"),
    "positions": BOTH,
    "principal_comments": [],
    "verification": True,
}
"""The settings of a school without a row, by column: nothing is seeded."""
