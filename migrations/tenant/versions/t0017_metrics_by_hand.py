"""Metric records that came by no sheet, but were entered as a list."""

from __future__ import annotations

from alembic import op

revision = "t0017"
down_revision = "t0016"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Let the name of the file be absent; a statement of the catalogue alone, which reads no row."""
    op.alter_column("metrics", "sheet", nullable=True)
