"""Who gave a password: what somebody else made of an account ends when the account gains."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "t0023"
down_revision = "t0022"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the columns; of passwords that are there nobody knows it."""
    op.add_column("users", sa.Column("password_given_by", sa.String(255), nullable=True))
    op.add_column("users", sa.Column("password_given_by_name", sa.String(255), nullable=True))
