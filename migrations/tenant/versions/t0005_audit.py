"""The audit log: the network address of a request, entries of no record, and a permission of its own to read it."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from migrations.tenant.permissions import add_permissions

revision = "t0005"
down_revision = "t0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column and the permission; entries that are there have no address."""
    op.add_column("audit_entries", sa.Column("address", sa.String(64), nullable=True))
    op.alter_column("audit_entries", "entity_id", nullable=True)
    add_permissions("read:audit")
