"""Who a request's user is and what they may do still, as a function: each connection keeps its plan."""

from __future__ import annotations

from alembic import op

revision = "t0008"
down_revision = "t0007"
branch_labels = None
depends_on = None

# Planned once for each connection and school, and not anew for the first calls, as PostgreSQL would by itself.
CALLER_STATE = """
CREATE FUNCTION caller_state(
    caller uuid, OUT permissions text[], OUT name text, OUT session_number integer, OUT must_change_password boolean
) LANGUAGE plpgsql STABLE PARALLEL SAFE SET plan_cache_mode TO force_generic_plan AS $$
BEGIN
    SELECT
        ARRAY(
            SELECT DISTINCT p.access || ':' || p.section
            FROM user_roles ur
            JOIN role_permissions rp ON rp.role_id = ur.role_id
            JOIN permissions p ON p.id = rp.permission_id
            WHERE ur.user_id = u.id
        ),
        u.first_name || ' ' || u.last_name,
        u.session_number,
        COALESCE(u.password_given_at >= (SELECT s.must_change_password_since FROM school_settings s), false)
    INTO permissions, name, session_number, must_change_password
    FROM users u WHERE u.id = caller AND u.deleted_at IS NULL;
END
$$
"""


def upgrade() -> None:
    """Create the function; it returns nulls alone for a user who is not there any more."""
    op.execute(CALLER_STATE)
