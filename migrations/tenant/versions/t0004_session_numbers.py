"""Session numbers: a token is valid as long as its user's number is the one that it names.

Tokens issued before name none, and have ended.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "t0004"
down_revision = "t0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the number; accounts that are there begin as if somebody had signed in to them."""
    op.add_column("users", sa.Column("session_number", sa.Integer(), server_default="1", nullable=False))
    op.alter_column("users", "session_number", server_default=None)
