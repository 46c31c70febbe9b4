"""Erasing a person's data: when an account was erased, and what an erased employee has no more."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "t0007"
down_revision = "t0006"
branch_labels = None
depends_on = None

_ERASED = ("dob", "join_date", "lga_id", "state_id", "nationality_id")


def upgrade() -> None:
    """Add the moment, and let the particulars of deleted employees be empty."""
    op.add_column("users", sa.Column("erased_at", sa.DateTime(timezone=True), nullable=True))
    op.create_check_constraint(
        op.f("ck_users_erased"), "users", "erased_at IS NULL OR deleted_at IS NOT NULL"
    )
    for name in _ERASED:
        op.alter_column("employees", name, nullable=True)
    there = " AND ".join(f"{name} IS NOT NULL" for name in _ERASED)
    op.create_check_constraint(
        op.f("ck_employees_particulars"), "employees", f"deleted_at IS NOT NULL OR ({there})"
    )
