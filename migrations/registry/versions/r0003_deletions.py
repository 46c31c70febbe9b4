"""Schools that are being deleted: how far that has come, and the backup that was made before."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "r0003"
down_revision = "r0002"
branch_labels = None
depends_on = None

# As before, but that a school which is being deleted is there no more.
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
        RAISE EXCEPTION 'school at another revision' USING ERRCODE = 'SC503';
    END IF;
END
$$
"""


def upgrade() -> None:
    """Add the columns, and close a school that is being deleted."""
    op.add_column("schools", sa.Column("deletion", sa.String(20)), schema="registry")
    op.add_column("schools", sa.Column("backup", sa.Text), schema="registry")
    op.create_check_constraint(
        "ck_schools_deletion", "schools", "deletion IN ('closed', 'begun')", schema="registry"
    )
    op.execute(ENTER)
