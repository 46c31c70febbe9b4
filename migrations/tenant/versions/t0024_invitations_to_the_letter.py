"""Open invitations end whose address may have been another when it was written.

Addresses were stored with their case folded, by which `ß` became `ss` and two mailboxes one; now ASCII letters alone
are compared without regard to case. What was written can't be told any more.
"""

from __future__ import annotations

from alembic import op

revision = "t0024"
down_revision = "t0023"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Delete them: whoever is to sign in by such an address is invited once more."""
    op.execute("DELETE FROM invitations WHERE email LIKE '%ss%' OR octet_length(email) > char_length(email)")
