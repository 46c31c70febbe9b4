"""The website of a school; the session number of a client, which ends the tokens of an earlier grant of its id."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "r0007"
down_revision = "r0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the columns."""
    op.add_column("schools", sa.Column("website", sa.Text), schema="registry")
    # Tokens that were issued before have no number, which counts as 0.
    op.add_column(
        "clients",
        sa.Column("session_number", sa.Integer, nullable=False, server_default="0"),
        schema="registry",
    )
