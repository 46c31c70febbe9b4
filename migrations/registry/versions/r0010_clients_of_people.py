"""Clients by which people sign in, and the short names of schools, which people type."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "r0010"
down_revision = "r0009"
branch_labels = None
depends_on = None

# A token that somebody was given by a client is refused once that client is revoked or granted anew, or its tokens were
# ended: all of that shows in the number, and in the row. NULL of a client that is not there counts as another number.
REFUSE_REVOKED = """
CREATE FUNCTION registry.refuse_revoked(client text, number integer) RETURNS void
LANGUAGE plpgsql STABLE AS $$
BEGIN
    IF NOT EXISTS (
        SELECT FROM registry.clients c WHERE c.id = client AND c.revoked_at IS NULL AND c.session_number = number
    ) THEN
        RAISE EXCEPTION 'client revoked' USING ERRCODE = 'SC401';
    END IF;
END
$$
"""


def upgrade() -> None:
    """Add the columns, with which nobody signs in by a client that is there, and the function."""
    for name in ("redirect_uris", "post_logout_uris"):
        _add(name, postgresql.ARRAY(sa.Text), nullable=False, server_default="{}")
    _add("name", sa.String(120))
    _add("is_public", sa.Boolean, nullable=False, server_default=sa.false())
    _add("user_permissions", postgresql.ARRAY(sa.Text))
    for name, default in (("idle_days", "14"), ("session_days", "90")):
        _add(name, sa.Integer, nullable=False, server_default=default)
        op.create_check_constraint(
            op.f(f"ck_clients_{name}"), "clients", f"{name} BETWEEN 1 AND 365", schema="registry"
        )
    op.add_column("schools", sa.Column("short_name", sa.String(40)), schema="registry")
    op.create_check_constraint(
        op.f("ck_schools_short_name"),
        "schools",
        "short_name ~ '^[a-z0-9][a-z0-9-]{1,38}[a-z0-9]$'",
        schema="registry",
    )
    op.create_unique_constraint(op.f("uq_schools_short_name"), "schools", ["short_name"], schema="registry")
    op.execute(REFUSE_REVOKED)


def _add(name: str, kind: sa.types.TypeEngine | type[sa.types.TypeEngine], **options: object) -> None:
    op.add_column("clients", sa.Column(name, kind, **options), schema="registry")
