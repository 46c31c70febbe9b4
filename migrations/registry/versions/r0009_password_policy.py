"""Which new passwords are taken, where no setting says it."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "r0009"
down_revision = "r0008"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column; a registry that was made before says nothing."""
    op.add_column("installation", sa.Column("password_policy", sa.Text), schema="registry")
    op.create_check_constraint(
        op.f("ck_installation_password_policy"),
        "installation",
        "password_policy IN ('any', 'strict')",
        schema="registry",
    )
