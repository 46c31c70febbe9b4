"""Employees by import, of whom little is known."""

from __future__ import annotations

from alembic import op

revision = "t0028"
down_revision = "t0027"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Apply the change."""
    op.drop_constraint("ck_employees_particulars", "employees")
    op.alter_column("employees", "department_id", nullable=True)
    op.alter_column("employees", "position_id", nullable=True)
