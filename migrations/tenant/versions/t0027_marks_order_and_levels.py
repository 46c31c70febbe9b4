"""Percents of printed marks."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "t0027"
down_revision = "t0025"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Apply the change."""
    op.add_column(
        "result_settings",
        sa.Column("percent_from", sa.String(length=20), server_default=sa.text("'EXACT'"), nullable=False),
    )
