"""Dates of students and enrollments."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "t0026"
down_revision = "t0025"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Apply the change."""
    op.add_column("enrollments", sa.Column("started_on", sa.Date(), nullable=True))
    op.add_column("enrollments", sa.Column("ended_on", sa.Date(), nullable=True))
    op.add_column("students", sa.Column("admitted_on", sa.Date(), nullable=True))
    op.add_column("students", sa.Column("former_school", sa.String(length=500), nullable=True))
    op.add_column("students", sa.Column("left_on", sa.Date(), nullable=True))
    op.add_column("students", sa.Column("leaving_reason", sa.String(length=500), nullable=True))
