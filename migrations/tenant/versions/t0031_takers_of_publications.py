"""Takers of publications, and their changes while they are reopened."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "t0031"
down_revision = "t0030"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Apply the change."""
    op.add_column(
        "publications",
        sa.Column("takers_changed", postgresql.JSONB(astext_type=sa.Text()), nullable=True),
    )
