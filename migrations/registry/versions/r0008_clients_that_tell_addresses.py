"""Machine clients that may tell the addresses of their end users."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "r0008"
down_revision = "r0007"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column: no client may until it is let."""
    op.add_column(
        "clients",
        sa.Column("tells_addresses", sa.Boolean, nullable=False, server_default=sa.false()),
        schema="registry",
    )
