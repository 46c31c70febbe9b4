"""Schools whose migration failed: what went wrong, when, and on the way to which revision."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "r0002"
down_revision = "r0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Create the table."""
    op.create_table(
        "failed_migrations",
        sa.Column("school_id", sa.Uuid, nullable=False),
        sa.Column("revision", sa.String(40), nullable=False),
        sa.Column("sqlstate", sa.String(5)),
        sa.Column("error", sa.Text, nullable=False),
        sa.Column("failed_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("school_id", name="pk_failed_migrations"),
        sa.ForeignKeyConstraint(
            ["school_id"],
            ["registry.schools.id"],
            name="fk_failed_migrations_school_id",
            ondelete="CASCADE",
        ),
        schema="registry",
    )
