"""Rules of promotion, promotions, and what was decided of each student."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

from sqlalchemy import (
    Boolean,
    CheckConstraint,
    DateTime,
    ForeignKey,
    ForeignKeyConstraint,
    Index,
    Numeric,
    SmallInteger,
    String,
    text,
)
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import Mapped, mapped_column

from school_service.core.columns import NAME_LENGTH, TEXT_LENGTH, primary_key
from school_service.core.database import db
from school_service.core.enumeration import Enumeration
from school_service.features.audit.models import ACTOR_LENGTH, ACTOR_NAME_LENGTH

PROMOTED, PROMOTED_ON_TRIAL, REPEATED, GRADUATED, LEFT_OUT = OUTCOMES = Enumeration(
    "PromotionOutcome", "PROMOTED", "PROMOTED_ON_TRIAL", "REPEATED", "GRADUATED", "LEFT_OUT"
)
NO_RESULT = "NO_RESULT"
BY_RULE = Enumeration("OutcomeByRule", PROMOTED, PROMOTED_ON_TRIAL, REPEATED, GRADUATED, NO_RESULT)
"""What a rule says of a student; it has nothing to say of one without a session result."""

PERCENT = Numeric(5, 2)
MAX_TERMS, MAX_FAILED, MAX_REQUIRED = 3, 40, 40
FINGERPRINT_LENGTH = 64


class PromotionRule(db.Model):
    """Who of a level of classrooms is promoted; without a level, who of all levels that have no rule of their own."""

    __tablename__ = "promotion_rules"
    __table_args__ = (
        CheckConstraint("minimum_average BETWEEN 0 AND 100", name="minimum_average"),
        CheckConstraint("trial_average >= 0 AND trial_average < minimum_average", name="trial_average"),
        CheckConstraint("required_percent BETWEEN 0 AND 100", name="required_percent"),
        CheckConstraint("maximum_failed BETWEEN 0 AND 40", name="maximum_failed"),
        CheckConstraint("minimum_terms BETWEEN 1 AND 3", name="minimum_terms"),
    )

    id: Mapped[UUID] = primary_key()
    level: Mapped[str | None] = mapped_column(String(NAME_LENGTH), unique=True)
    minimum_average: Mapped[Decimal] = mapped_column(PERCENT)
    trial_average: Mapped[Decimal | None] = mapped_column(PERCENT)
    required_percent: Mapped[Decimal] = mapped_column(PERCENT)
    maximum_failed: Mapped[int | None] = mapped_column(SmallInteger)
    minimum_terms: Mapped[int] = mapped_column(SmallInteger)


# Of nulls a unique constraint allows many.
Index(
    "uq_promotion_rules_of_all_others",
    PromotionRule.level.is_(None),
    unique=True,
    postgresql_where=PromotionRule.level.is_(None),
)


class RequiredSubject(db.Model):
    """A subject of the school that a rule requires."""

    __tablename__ = "promotion_rule_subjects"

    rule_id: Mapped[UUID] = mapped_column(
        ForeignKey("promotion_rules.id", ondelete="CASCADE"), primary_key=True
    )
    subject_id: Mapped[UUID] = mapped_column(ForeignKey("subjects.id"), primary_key=True, index=True)


class Promotion(db.Model):
    """That students of batches of a session went on, all at once; the next session is null where none was enrolled.

    It is live until it is undone. `fingerprint` tells what was seen before it was committed. `committed_by` and
    `undone_by` are actors as in the audit log.
    """

    __tablename__ = "promotions"
    __table_args__ = (
        CheckConstraint(
            "CASE WHEN undone_at IS NULL THEN undone_by IS NULL AND undone_by_name IS NULL"
            " ELSE undone_by IS NOT NULL AND undone_by_name IS NOT NULL END",
            name="undone",
        ),
        # Lists are newest first, all of them, or those of a session.
        Index(None, "committed_at", "id"),
        Index(None, "session_id", "committed_at", "id"),
    )

    id: Mapped[UUID] = primary_key()
    session_id: Mapped[UUID] = mapped_column(ForeignKey("sessions.id"))
    next_session_id: Mapped[UUID | None] = mapped_column(ForeignKey("sessions.id"), index=True)
    fingerprint: Mapped[str] = mapped_column(String(FINGERPRINT_LENGTH))
    committed_at: Mapped[datetime] = mapped_column(DateTime(timezone=True))
    committed_by: Mapped[str] = mapped_column(String(ACTOR_LENGTH))
    committed_by_name: Mapped[str] = mapped_column(String(ACTOR_NAME_LENGTH))
    undone_at: Mapped[datetime | None] = mapped_column(DateTime(timezone=True))
    undone_by: Mapped[str | None] = mapped_column(String(ACTOR_LENGTH))
    undone_by_name: Mapped[str | None] = mapped_column(String(ACTOR_NAME_LENGTH))


LIVE = Promotion.undone_at.is_(None)

Index("uq_promotions_fingerprint", Promotion.fingerprint, unique=True, postgresql_where=LIVE)


class PromotionBatch(db.Model):
    """A batch whose students a promotion moved, by default where; `number` orders those of a promotion.

    `live` while the promotion is: a batch is in one such at most.
    """

    __tablename__ = "promotion_batches"

    promotion_id: Mapped[UUID] = mapped_column(ForeignKey("promotions.id"), primary_key=True)
    batch_id: Mapped[UUID] = mapped_column(ForeignKey("batches.id"), primary_key=True, index=True)
    number: Mapped[int] = mapped_column(SmallInteger)
    promote_to_id: Mapped[UUID | None] = mapped_column(ForeignKey("batches.id"), index=True)
    repeat_in_id: Mapped[UUID | None] = mapped_column(ForeignKey("batches.id"), index=True)
    live: Mapped[bool] = mapped_column(Boolean)


Index(
    "uq_promotion_batches_batch_id",
    PromotionBatch.batch_id,
    unique=True,
    postgresql_where=text("live"),
    info={"message": "A batch is promoted at most once."},
)


class PromotionDecision(db.Model):
    """What became of a student in a promotion, what the rule said and why, and the reason of whoever decided otherwise.

    `enrollment_id` is the enrollment that was made, until it is taken back; `before` what a graduate left, as
    `{"enrollments": [id], "subjects": [{"cohort_subject_id": id, "created_at": time}]}`.
    """

    __tablename__ = "promotion_decisions"
    __table_args__ = (
        ForeignKeyConstraint(
            ["promotion_id", "from_batch_id"],
            ["promotion_batches.promotion_id", "promotion_batches.batch_id"],
        ),
        CheckConstraint(
            "outcome IN ('PROMOTED', 'PROMOTED_ON_TRIAL', 'REPEATED', 'GRADUATED', 'LEFT_OUT')",
            name="outcome",
        ),
        CheckConstraint(
            "by_rule IN ('PROMOTED', 'PROMOTED_ON_TRIAL', 'REPEATED', 'GRADUATED', 'NO_RESULT')",
            name="by_rule",
        ),
        CheckConstraint(
            "(to_batch_id IS NULL) = (outcome IN ('GRADUATED', 'LEFT_OUT'))",
            name="to_batch",
        ),
        Index(None, "promotion_id", "from_batch_id"),
    )

    promotion_id: Mapped[UUID] = mapped_column(ForeignKey("promotions.id"), primary_key=True)
    student_id: Mapped[UUID] = mapped_column(ForeignKey("students.id"), primary_key=True, index=True)
    from_batch_id: Mapped[UUID]
    average: Mapped[Decimal | None] = mapped_column(PERCENT)
    terms: Mapped[int | None] = mapped_column(SmallInteger)
    by_rule: Mapped[str] = mapped_column(String(20))
    outcome: Mapped[str] = mapped_column(String(20))
    reasons: Mapped[list[dict[str, Any]]] = mapped_column(JSONB)
    reason: Mapped[str | None] = mapped_column(String(TEXT_LENGTH))
    to_batch_id: Mapped[UUID | None] = mapped_column(ForeignKey("batches.id"), index=True)
    enrollment_id: Mapped[UUID | None] = mapped_column(ForeignKey("enrollments.id"), index=True)
    before: Mapped[dict[str, Any] | None] = mapped_column(JSONB(none_as_null=True))
