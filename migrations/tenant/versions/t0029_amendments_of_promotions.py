"""Amendments of decisions in promotions."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "t0029"
down_revision = "t0028"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Apply the change."""
    op.create_table(
        "promotion_amendments",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("promotion_id", sa.Uuid(), nullable=False),
        sa.Column("student_id", sa.Uuid(), nullable=False),
        sa.Column("outcome", sa.String(length=20), nullable=False),
        sa.Column("to_batch_id", sa.Uuid(), nullable=True),
        sa.Column("reason", sa.String(length=2000), nullable=True),
        sa.Column("ended", sa.ARRAY(sa.Uuid()), nullable=False),
        sa.Column("amended_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("amended_by", sa.String(length=255), nullable=False),
        sa.Column("amended_by_name", sa.String(length=255), nullable=False),
        sa.CheckConstraint(
            "(to_batch_id IS NULL) = (outcome IN ('GRADUATED', 'LEFT_OUT'))",
            name=op.f("ck_promotion_amendments_to_batch"),
        ),
        sa.CheckConstraint(
            "outcome IN ('PROMOTED', 'PROMOTED_ON_TRIAL', 'REPEATED', 'GRADUATED', 'LEFT_OUT')",
            name=op.f("ck_promotion_amendments_outcome"),
        ),
        sa.ForeignKeyConstraint(
            ["promotion_id", "student_id"],
            ["promotion_decisions.promotion_id", "promotion_decisions.student_id"],
            name=op.f("fk_promotion_amendments_promotion_id_student_id"),
        ),
        sa.ForeignKeyConstraint(
            ["student_id"], ["students.id"], name=op.f("fk_promotion_amendments_student_id")
        ),
        sa.ForeignKeyConstraint(
            ["to_batch_id"], ["batches.id"], name=op.f("fk_promotion_amendments_to_batch_id")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_promotion_amendments")),
    )
    op.create_index(
        op.f("ix_promotion_amendments_promotion_id_student_id"),
        "promotion_amendments",
        ["promotion_id", "student_id"],
        unique=False,
    )
    op.create_index(
        op.f("ix_promotion_amendments_student_id"), "promotion_amendments", ["student_id"], unique=False
    )
    op.create_index(
        op.f("ix_promotion_amendments_to_batch_id"), "promotion_amendments", ["to_batch_id"], unique=False
    )
