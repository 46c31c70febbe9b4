"""The registry: schools, clients and their grants, geography, and the check of who may enter a school."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "r0001"
down_revision = None
branch_labels = None
depends_on = None

# One function asks all that must be known before a transaction may enter a school, and refuses with a
# SQLSTATE of its own: the message that binds a transaction can't look at an answer half-way, an error stops
# it there.
ENTER = """
CREATE FUNCTION registry.enter(school uuid, serves text[], client text) RETURNS void
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
    SELECT s.status, s.revision INTO found_status, found_revision FROM registry.schools s WHERE s.id = school;
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
    """Create the registry's tables and the function `registry.enter`."""
    op.create_table(
        "schools",
        sa.Column("id", sa.Uuid, nullable=False),
        sa.Column("name", sa.String(120), nullable=False),
        sa.Column("status", sa.String(20), nullable=False),
        sa.Column("revision", sa.String(40), nullable=False),
        sa.Column("address", sa.Text),
        sa.Column("phone_number", sa.String(120)),
        sa.Column("email_address", sa.String(254)),
        sa.Column("motto", sa.Text),
        sa.Column("logo_url", sa.Text),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_schools"),
        sa.CheckConstraint("status IN ('active', 'suspended')", name="ck_schools_status"),
        schema="registry",
    )
    op.create_table(
        "clients",
        sa.Column("id", sa.String(120), nullable=False),
        sa.Column("secret_hash", sa.String(64)),
        sa.Column("all_schools", sa.Boolean, nullable=False),
        sa.Column("all_permissions", sa.Boolean, nullable=False),
        sa.Column("permissions", sa.ARRAY(sa.Text), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("revoked_at", sa.DateTime(timezone=True)),
        sa.PrimaryKeyConstraint("id", name="pk_clients"),
        schema="registry",
    )
    op.create_table(
        "client_schools",
        sa.Column("client_id", sa.String(120), nullable=False),
        sa.Column("school_id", sa.Uuid, nullable=False),
        sa.PrimaryKeyConstraint("client_id", "school_id", name="pk_client_schools"),
        sa.ForeignKeyConstraint(
            ["client_id"], ["registry.clients.id"], name="fk_client_schools_client_id", ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["school_id"], ["registry.schools.id"], name="fk_client_schools_school_id", ondelete="CASCADE"
        ),
        schema="registry",
    )
    op.create_index("ix_client_schools_school_id", "client_schools", ["school_id"], schema="registry")
    op.create_table(
        "nationalities",
        sa.Column("id", sa.Uuid, nullable=False),
        sa.Column("name", sa.String(120), nullable=False),
        sa.Column("code", sa.String(2), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_nationalities"),
        sa.UniqueConstraint("name", name="uq_nationalities_name"),
        sa.UniqueConstraint("code", name="uq_nationalities_code"),
        schema="registry",
    )
    op.create_table(
        "states",
        sa.Column("id", sa.Uuid, nullable=False),
        sa.Column("name", sa.String(120), nullable=False),
        sa.Column("code", sa.String(3), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_states"),
        sa.UniqueConstraint("name", name="uq_states_name"),
        sa.UniqueConstraint("code", name="uq_states_code"),
        schema="registry",
    )
    op.create_table(
        "lgas",
        sa.Column("id", sa.Uuid, nullable=False),
        sa.Column("name", sa.String(120), nullable=False),
        sa.Column("state_id", sa.Uuid, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_lgas"),
        sa.ForeignKeyConstraint(["state_id"], ["registry.states.id"], name="fk_lgas_state_id"),
        sa.UniqueConstraint("state_id", "name", name="uq_lgas_state_id_name"),
        schema="registry",
    )
    op.execute(ENTER)
