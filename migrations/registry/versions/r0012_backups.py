"""When each school was backed up last, so that somebody can be told where that is long ago."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "r0012"
down_revision = "r0011"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the table; of backups that were made before nothing is known."""
    op.create_table(
        "backups",
        sa.Column(
            "school_id",
            sa.Uuid,
            sa.ForeignKey("registry.schools.id", name=op.f("fk_backups_school_id"), ondelete="CASCADE"),
            nullable=False,
        ),
        sa.Column("taken_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("sha256", sa.String(64), nullable=False),
        sa.PrimaryKeyConstraint("school_id", name=op.f("pk_backups")),
        schema="registry",
    )
