"""Rules of promotion, and promotions.

Tables alone: no row is added or changed.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "t0012"
down_revision = "t0011"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Create the tables."""
    op.create_table(
        "promotion_rules",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("level", sa.String(length=120), nullable=True),
        sa.Column("minimum_average", sa.Numeric(precision=5, scale=2), nullable=False),
        sa.Column("trial_average", sa.Numeric(precision=5, scale=2), nullable=True),
        sa.Column("required_percent", sa.Numeric(precision=5, scale=2), nullable=False),
        sa.Column("maximum_failed", sa.SmallInteger(), nullable=True),
        sa.Column("minimum_terms", sa.SmallInteger(), nullable=False),
        sa.CheckConstraint("maximum_failed BETWEEN 0 AND 40", name=op.f("ck_promotion_rules_maximum_failed")),
        sa.CheckConstraint(
            "minimum_average BETWEEN 0 AND 100", name=op.f("ck_promotion_rules_minimum_average")
        ),
        sa.CheckConstraint("minimum_terms BETWEEN 1 AND 3", name=op.f("ck_promotion_rules_minimum_terms")),
        sa.CheckConstraint(
            "required_percent BETWEEN 0 AND 100", name=op.f("ck_promotion_rules_required_percent")
        ),
        sa.CheckConstraint(
            "trial_average >= 0 AND trial_average < minimum_average",
            name=op.f("ck_promotion_rules_trial_average"),
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_promotion_rules")),
        sa.UniqueConstraint("level", name=op.f("uq_promotion_rules_level")),
    )
    op.create_index(
        "uq_promotion_rules_of_all_others",
        "promotion_rules",
        [sa.text("(level IS NULL)")],
        unique=True,
        postgresql_where=sa.text("level IS NULL"),
    )
    op.create_table(
        "promotion_rule_subjects",
        sa.Column("rule_id", sa.Uuid(), nullable=False),
        sa.Column("subject_id", sa.Uuid(), nullable=False),
        sa.ForeignKeyConstraint(
            ["rule_id"],
            ["promotion_rules.id"],
            name=op.f("fk_promotion_rule_subjects_rule_id"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["subject_id"], ["subjects.id"], name=op.f("fk_promotion_rule_subjects_subject_id")
        ),
        sa.PrimaryKeyConstraint("rule_id", "subject_id", name=op.f("pk_promotion_rule_subjects")),
    )
    op.create_index(
        op.f("ix_promotion_rule_subjects_subject_id"), "promotion_rule_subjects", ["subject_id"], unique=False
    )
    op.create_table(
        "promotions",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("session_id", sa.Uuid(), nullable=False),
        sa.Column("next_session_id", sa.Uuid(), nullable=True),
        sa.Column("fingerprint", sa.String(length=64), nullable=False),
        sa.Column("committed_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("committed_by", sa.String(length=255), nullable=False),
        sa.Column("committed_by_name", sa.String(length=255), nullable=False),
        sa.Column("undone_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("undone_by", sa.String(length=255), nullable=True),
        sa.Column("undone_by_name", sa.String(length=255), nullable=True),
        sa.CheckConstraint(
            "CASE WHEN undone_at IS NULL THEN undone_by IS NULL AND undone_by_name IS NULL"
            " ELSE undone_by IS NOT NULL AND undone_by_name IS NOT NULL END",
            name=op.f("ck_promotions_undone"),
        ),
        sa.ForeignKeyConstraint(
            ["next_session_id"], ["sessions.id"], name=op.f("fk_promotions_next_session_id")
        ),
        sa.ForeignKeyConstraint(["session_id"], ["sessions.id"], name=op.f("fk_promotions_session_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_promotions")),
    )
    op.create_index(op.f("ix_promotions_committed_at_id"), "promotions", ["committed_at", "id"], unique=False)
    op.create_index(op.f("ix_promotions_next_session_id"), "promotions", ["next_session_id"], unique=False)
    op.create_index(
        op.f("ix_promotions_session_id_committed_at_id"),
        "promotions",
        ["session_id", "committed_at", "id"],
        unique=False,
    )
    op.create_index(
        "uq_promotions_fingerprint",
        "promotions",
        ["fingerprint"],
        unique=True,
        postgresql_where=sa.text("undone_at IS NULL"),
    )
    op.create_table(
        "promotion_batches",
        sa.Column("promotion_id", sa.Uuid(), nullable=False),
        sa.Column("batch_id", sa.Uuid(), nullable=False),
        sa.Column("number", sa.SmallInteger(), nullable=False),
        sa.Column("promote_to_id", sa.Uuid(), nullable=True),
        sa.Column("repeat_in_id", sa.Uuid(), nullable=True),
        sa.Column("live", sa.Boolean(), nullable=False),
        sa.ForeignKeyConstraint(["batch_id"], ["batches.id"], name=op.f("fk_promotion_batches_batch_id")),
        sa.ForeignKeyConstraint(
            ["promote_to_id"], ["batches.id"], name=op.f("fk_promotion_batches_promote_to_id")
        ),
        sa.ForeignKeyConstraint(
            ["promotion_id"], ["promotions.id"], name=op.f("fk_promotion_batches_promotion_id")
        ),
        sa.ForeignKeyConstraint(
            ["repeat_in_id"], ["batches.id"], name=op.f("fk_promotion_batches_repeat_in_id")
        ),
        sa.PrimaryKeyConstraint("promotion_id", "batch_id", name=op.f("pk_promotion_batches")),
    )
    op.create_index(op.f("ix_promotion_batches_batch_id"), "promotion_batches", ["batch_id"], unique=False)
    op.create_index(
        op.f("ix_promotion_batches_promote_to_id"), "promotion_batches", ["promote_to_id"], unique=False
    )
    op.create_index(
        op.f("ix_promotion_batches_repeat_in_id"), "promotion_batches", ["repeat_in_id"], unique=False
    )
    op.create_index(
        "uq_promotion_batches_batch_id",
        "promotion_batches",
        ["batch_id"],
        unique=True,
        postgresql_where=sa.text("live"),
    )
    op.create_table(
        "promotion_decisions",
        sa.Column("promotion_id", sa.Uuid(), nullable=False),
        sa.Column("student_id", sa.Uuid(), nullable=False),
        sa.Column("from_batch_id", sa.Uuid(), nullable=False),
        sa.Column("average", sa.Numeric(precision=5, scale=2), nullable=True),
        sa.Column("terms", sa.SmallInteger(), nullable=True),
        sa.Column("by_rule", sa.String(length=20), nullable=False),
        sa.Column("outcome", sa.String(length=20), nullable=False),
        sa.Column("reasons", postgresql.JSONB(astext_type=sa.Text()), nullable=False),
        sa.Column("reason", sa.String(length=2000), nullable=True),
        sa.Column("to_batch_id", sa.Uuid(), nullable=True),
        sa.Column("enrollment_id", sa.Uuid(), nullable=True),
        sa.Column("before", postgresql.JSONB(none_as_null=True, astext_type=sa.Text()), nullable=True),
        sa.CheckConstraint(
            "(to_batch_id IS NULL) = (outcome IN ('GRADUATED', 'LEFT_OUT'))",
            name=op.f("ck_promotion_decisions_to_batch"),
        ),
        sa.CheckConstraint(
            "by_rule IN ('PROMOTED', 'PROMOTED_ON_TRIAL', 'REPEATED', 'GRADUATED', 'NO_RESULT')",
            name=op.f("ck_promotion_decisions_by_rule"),
        ),
        sa.CheckConstraint(
            "outcome IN ('PROMOTED', 'PROMOTED_ON_TRIAL', 'REPEATED', 'GRADUATED', 'LEFT_OUT')",
            name=op.f("ck_promotion_decisions_outcome"),
        ),
        sa.ForeignKeyConstraint(
            ["enrollment_id"], ["enrollments.id"], name=op.f("fk_promotion_decisions_enrollment_id")
        ),
        sa.ForeignKeyConstraint(
            ["promotion_id", "from_batch_id"],
            ["promotion_batches.promotion_id", "promotion_batches.batch_id"],
            name=op.f("fk_promotion_decisions_promotion_id_from_batch_id"),
        ),
        sa.ForeignKeyConstraint(
            ["promotion_id"], ["promotions.id"], name=op.f("fk_promotion_decisions_promotion_id")
        ),
        sa.ForeignKeyConstraint(
            ["student_id"], ["students.id"], name=op.f("fk_promotion_decisions_student_id")
        ),
        sa.ForeignKeyConstraint(
            ["to_batch_id"], ["batches.id"], name=op.f("fk_promotion_decisions_to_batch_id")
        ),
        sa.PrimaryKeyConstraint("promotion_id", "student_id", name=op.f("pk_promotion_decisions")),
    )
    op.create_index(
        op.f("ix_promotion_decisions_enrollment_id"), "promotion_decisions", ["enrollment_id"], unique=False
    )
    op.create_index(
        op.f("ix_promotion_decisions_promotion_id_from_batch_id"),
        "promotion_decisions",
        ["promotion_id", "from_batch_id"],
        unique=False,
    )
    op.create_index(
        op.f("ix_promotion_decisions_student_id"), "promotion_decisions", ["student_id"], unique=False
    )
    op.create_index(
        op.f("ix_promotion_decisions_to_batch_id"), "promotion_decisions", ["to_batch_id"], unique=False
    )
