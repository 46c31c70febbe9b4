"""Revisions that programs of earlier ones serve, too; and which release brought the registry to its revision."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "r0011"
down_revision = "r0010"
branch_labels = None
depends_on = None

# The table is read only for a school at a revision that the program does not name: who is up to date pays nothing.
ENTER = """
CREATE OR REPLACE FUNCTION registry.enter(school uuid, serves text[], client text) RETURNS void
LANGUAGE plpgsql STABLE AS $$
DECLARE
    found_status text;
    found_revision text;
    covered boolean;
BEGIN
    IF client IS NOT NULL THEN
        SELECT c.all_schools OR EXISTS (
            SELECT FROM registry.client_schools s WHERE s.client_id = c.id AND s.school_id = school
        )
        INTO covered FROM registry.clients c WHERE c.id = client AND c.revoked_at IS NULL;
        IF covered IS NULL THEN
            RAISE EXCEPTION 'no such client' USING ERRCODE = 'SC401';
        ELSIF NOT covered THEN
            RAISE EXCEPTION 'school not covered' USING ERRCODE = 'SC403';
        END IF;
    END IF;
    SELECT s.status, s.revision INTO found_status, found_revision
    FROM registry.schools s WHERE s.id = school AND s.deletion IS NULL;
    IF found_status IS NULL THEN
        RAISE EXCEPTION 'no such school' USING ERRCODE = 'SC404';
    ELSIF found_status = 'suspended' THEN
        RAISE EXCEPTION 'school suspended' USING ERRCODE = 'SC423';
    ELSIF found_revision <> ALL (serves) THEN
        IF NOT EXISTS (
            SELECT FROM registry.also_served a WHERE a.revision = found_revision AND a.served_by = ANY (serves)
        ) THEN
            RAISE EXCEPTION 'school at another revision' USING ERRCODE = 'SC503';
        END IF;
    END IF;
END
$$
"""


def upgrade() -> None:
    """Create the table, add the column, and let schools in that the table names."""
    op.create_table(
        "also_served",
        sa.Column("revision", sa.String(40), nullable=False),
        sa.Column("served_by", sa.String(40), nullable=False),
        sa.PrimaryKeyConstraint("revision", "served_by", name="pk_also_served"),
        schema="registry",
    )
    op.add_column("installation", sa.Column("release", sa.Text), schema="registry")
    op.execute(ENTER)
