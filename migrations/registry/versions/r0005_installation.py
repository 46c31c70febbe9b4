"""The installation's own id, which its tokens name; clients' secrets are compared, and never read, by who serves."""

from __future__ import annotations

from uuid import uuid4

import sqlalchemy as sa
from alembic import op

revision = "r0005"
down_revision = "r0004"
branch_labels = None
depends_on = None

# It runs as its owner: the login that serves can't read the column. What is compared are hashes over a number that
# nobody can foresee, so that the time it takes tells nothing; an unknown client costs the same.
COMPARE_HASHES = """
CREATE FUNCTION registry.client_secret_matches(client text, hashed text) RETURNS boolean
LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT sha256(convert_to(coalesce(c.secret_hash, '') || nonce, 'UTF8'))
            = sha256(convert_to(coalesce(hashed, '') || nonce, 'UTF8'))
        AND c.secret_hash IS NOT NULL
    FROM cast(gen_random_uuid() AS text) AS nonce
    LEFT JOIN registry.clients c ON c.id = client AND c.revoked_at IS NULL
$$
"""


def upgrade() -> None:
    """Create the table with its row, and the function."""
    installation = op.create_table(
        "installation",
        sa.Column("id", sa.Uuid, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_installation"),
        schema="registry",
    )
    op.bulk_insert(installation, [{"id": uuid4()}])
    op.execute(COMPARE_HASHES)
