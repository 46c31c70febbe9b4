"""Links that are made by a password, and no invitation that somebody made for themselves."""

from __future__ import annotations

from alembic import op

revision = "t0025"
down_revision = "t0024"
branch_labels = None
depends_on = None

_NAME = "ck_user_identities_way"


def upgrade() -> None:
    """Apply the change."""
    op.drop_constraint(_NAME, "user_identities")
    op.create_check_constraint(
        op.f(_NAME), "user_identities", "way IN ('ADMINISTRATOR', 'INVITATION', 'EMAIL', 'PASSWORD')"
    )
    # Nobody invites themselves any more: such an invitation may be the work of a token that was for less.
    op.execute("DELETE FROM invitations WHERE created_by = user_id::text")
