"""Percents of printed marks; the order of subjects; settings and grade bands of a level."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "t0027"
down_revision = "t0026"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Apply the change."""
    op.add_column(
        "result_settings",
        sa.Column("percent_from", sa.String(length=20), server_default=sa.text("'EXACT'"), nullable=False),
    )
    op.add_column(
        "result_settings",
        sa.Column("show_ca_total", sa.Boolean(), server_default=sa.text("false"), nullable=False),
    )
    op.add_column("subjects", sa.Column("position", sa.SmallInteger(), nullable=True))
    op.create_table(
        "level_settings",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("level", sa.String(length=120), nullable=False),
        sa.Column("pass_mark", sa.Numeric(precision=5, scale=2), nullable=True),
        sa.Column("positions", sa.String(length=20), nullable=True),
        sa.Column("percent_places", sa.SmallInteger(), nullable=True),
        sa.Column("marks", sa.Boolean(), nullable=True),
        sa.CheckConstraint("pass_mark BETWEEN 0 AND 100", name=op.f("ck_level_settings_pass_mark")),
        sa.CheckConstraint("percent_places BETWEEN 0 AND 2", name=op.f("ck_level_settings_percent_places")),
        sa.CheckConstraint(
            "positions IN ('BOTH', 'BATCH', 'COHORT', 'NONE')", name=op.f("ck_level_settings_positions")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_level_settings")),
        sa.UniqueConstraint("level", name=op.f("uq_level_settings_level")),
    )
    op.create_table(
        "grade_scales",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("level", sa.String(length=120), nullable=False),
        sa.Column("bands", postgresql.JSONB(astext_type=sa.Text()), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_grade_scales")),
        sa.UniqueConstraint("level", name=op.f("uq_grade_scales_level")),
    )
