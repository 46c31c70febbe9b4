"""Change sets: the changes of each transaction, numbered by those who read them; permissions to read and to export."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from migrations.tenant.permissions import add_permissions

revision = "t0032"
down_revision = "t0031"
branch_labels = None
depends_on = None

_FIRST = """
INSERT INTO change_sets (id, number, at, resync)
SELECT gen_random_uuid(), 1, CAST('2026-11-28 00:00:00+00' AS timestamptz), false
FROM counters WHERE name = 'students'
"""
_COUNTER = """
INSERT INTO counters (id, name, value)
SELECT gen_random_uuid(), 'changes', 1 FROM counters WHERE name = 'students'
"""


def upgrade() -> None:
    """Apply the change."""
    op.create_table(
        "change_sets",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("number", sa.Integer(), nullable=True),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("resync", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_change_sets")),
        sa.UniqueConstraint("number", name=op.f("uq_change_sets_number")),
    )
    op.create_index(
        op.f("ix_change_sets_at_id"),
        "change_sets",
        ["at", "id"],
        unique=False,
        postgresql_where=sa.text("number IS NULL"),
    )
    op.create_index(
        op.f("ix_change_sets_number"),
        "change_sets",
        ["number"],
        unique=False,
        postgresql_where=sa.text("resync"),
    )
    op.add_column("audit_entries", sa.Column("change_set", sa.Uuid(), nullable=True))
    op.create_index(op.f("ix_audit_entries_change_set"), "audit_entries", ["change_set"], unique=False)
    op.execute(_FIRST)
    op.execute(_COUNTER)
    add_permissions("read:changes", "read:export")
