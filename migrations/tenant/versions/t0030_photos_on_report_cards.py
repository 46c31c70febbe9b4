"""Photos on report cards."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "t0030"
down_revision = "t0029"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Apply the change."""
    op.add_column(
        "result_settings",
        sa.Column("show_photo", sa.Boolean(), server_default=sa.text("false"), nullable=False),
    )
    op.add_column("report_cards", sa.Column("photo", sa.LargeBinary(), nullable=True))
