"""Clients that are refused are told so by a value: an error would be logged with the whole statement batch."""

from __future__ import annotations

from alembic import op

revision = "r0006"
down_revision = "r0005"
branch_labels = None
depends_on = None

ENTER_AS_CLIENT = """
CREATE FUNCTION registry.enter_as_client(school uuid, serves text[], client text, granted boolean) RETURNS text
LANGUAGE plpgsql STABLE AS $$
DECLARE
    revoked boolean;
    covered boolean;
BEGIN
    SELECT c.revoked_at IS NOT NULL, c.all_schools OR EXISTS (
        SELECT FROM registry.client_schools s WHERE s.client_id = c.id AND s.school_id = school
    )
    INTO revoked, covered FROM registry.clients c WHERE c.id = client;
    IF revoked OR (granted AND revoked IS NULL) THEN
        RETURN 'SC401';
    ELSIF granted AND NOT covered THEN
        RETURN 'SC403';
    END IF;
    PERFORM registry.enter(school, serves, NULL);
    RETURN NULL;
END
$$
"""


def upgrade() -> None:
    """Add the function that the binding of clients' tokens calls."""
    op.execute(ENTER_AS_CLIENT)
