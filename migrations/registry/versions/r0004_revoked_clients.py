"""A revoked client is refused whatever its token says."""

from __future__ import annotations

from alembic import op

revision = "r0004"
down_revision = "r0003"
branch_labels = None
depends_on = None

REFUSE_REVOKED = """
CREATE FUNCTION registry.refuse_revoked(client text) RETURNS void
LANGUAGE plpgsql STABLE AS $$
BEGIN
    IF EXISTS (SELECT FROM registry.clients c WHERE c.id = client AND c.revoked_at IS NOT NULL) THEN
        RAISE EXCEPTION 'client revoked' USING ERRCODE = 'SC401';
    END IF;
END
$$
"""


def upgrade() -> None:
    """Add the function that the binding of tokens with claims of their own calls."""
    op.execute(REFUSE_REVOKED)
