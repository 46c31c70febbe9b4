"""Signing in: sessions with their refresh tokens, links to outside identities, invitations and photos.

The caller's state tells whether the session, or the link, that a token is of still stands.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "t0020"
down_revision = "t0019"
branch_labels = None
depends_on = None

# As it was, with the session number -1, which no token has, where the session or the link is not there any more.
_STATE = """
CREATE OR REPLACE FUNCTION caller_state(
    caller uuid, at timestamptz, relations boolean, session uuid, issuer text, subject text,
    OUT permissions text[], OUT own_permissions text[], OUT name text, OUT session_number integer,
    OUT must_change_password boolean, OUT student uuid, OUT children uuid[], OUT employee uuid,
    OUT form_batches uuid[], OUT taught_subjects uuid[], OUT taught_arms uuid[]
) LANGUAGE plpgsql STABLE PARALLEL SAFE SET plan_cache_mode TO force_generic_plan AS $$
DECLARE
    today date := (at AT TIME ZONE (SELECT s.time_zone FROM school_settings s))::date;
BEGIN
    SELECT
        COALESCE(held.everywhere, '{}'),
        COALESCE(held.own, '{}'),
        u.first_name || ' ' || u.last_name,
        CASE
            WHEN (caller_state.session IS NULL OR EXISTS (
                SELECT FROM user_sessions us
                WHERE us.id = caller_state.session AND us.user_id = u.id AND us.idle_until > at
            )) AND (caller_state.subject IS NULL OR EXISTS (
                SELECT FROM user_identities ui
                WHERE ui.issuer = caller_state.issuer AND ui.subject = caller_state.subject AND ui.user_id = u.id
            )) THEN u.session_number
            ELSE -1
        END,
        COALESCE(u.password_given_at >= (SELECT s.must_change_password_since FROM school_settings s), false),
        (SELECT st.id FROM students st WHERE st.user_id = u.id),
        ARRAY(
            SELECT sg.student_id
            FROM guardians g
            JOIN student_guardians sg ON sg.guardian_id = g.id AND sg.stopped_at IS NULL
            WHERE g.user_id = u.id
        )
    INTO permissions, own_permissions, name, session_number, must_change_password, student, children
    FROM users u
    CROSS JOIN LATERAL (
        SELECT
            array_agg(each.permission) FILTER (WHERE each.everywhere) AS everywhere,
            array_agg(each.permission) FILTER (WHERE NOT each.everywhere) AS own
        FROM (
            SELECT p.access || ':' || p.section AS permission, bool_or(r.reach = 'SCHOOL') AS everywhere
            FROM user_roles ur
            JOIN roles r ON r.id = ur.role_id
            JOIN role_permissions rp ON rp.role_id = r.id
            JOIN permissions p ON p.id = rp.permission_id
            WHERE ur.user_id = u.id
            GROUP BY 1
        ) AS each
    ) AS held
    WHERE u.id = caller AND u.deleted_at IS NULL;
    IF session_number IS NOT NULL AND (relations OR own_permissions <> '{}') THEN
        SELECT em.id INTO employee FROM employees em WHERE em.user_id = caller AND em.deleted_at IS NULL;
        form_batches := ARRAY(
            SELECT ft.batch_id
            FROM form_teachers ft
            JOIN batches b ON b.id = ft.batch_id
            JOIN cohorts c ON c.id = b.cohort_id
            JOIN sessions se ON se.id = c.session_id
            WHERE ft.employee_id = employee AND (se.current OR se.end_date >= today - 60)
            ORDER BY ft.batch_id
        );
        SELECT COALESCE(array_agg(taught.subject), '{}'), COALESCE(array_agg(taught.arm), '{}')
        INTO taught_subjects, taught_arms
        FROM (
            SELECT DISTINCT st.cohort_subject_id AS subject, b.id AS arm
            FROM subject_teachers st
            JOIN cohorts c ON c.id = st.cohort_id
            JOIN sessions se ON se.id = c.session_id
            JOIN batches b ON b.cohort_id = st.cohort_id AND (st.batch_id IS NULL OR b.id = st.batch_id)
            WHERE st.employee_id = employee
                AND (st.starts_on IS NULL OR st.starts_on <= today)
                AND (st.ends_on IS NULL OR st.ends_on >= today)
                AND (se.current OR se.end_date >= today - 60)
            ORDER BY 1, 2
        ) AS taught;
    END IF;
END
$$
"""


def upgrade() -> None:
    """Add the tables, and let the caller's state judge the session and the link of a token."""
    op.create_table(
        "user_sessions",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("handle", sa.Uuid(), nullable=False),
        sa.Column("user_id", sa.Uuid(), nullable=False),
        sa.Column("client_id", sa.String(length=120), nullable=False),
        sa.Column("client_session_number", sa.Integer(), nullable=False),
        sa.Column("session_number", sa.Integer(), nullable=False),
        sa.Column("scope", sa.Text(), nullable=False),
        sa.Column("permissions", postgresql.JSONB(), nullable=True),
        sa.Column("redirect_uri", sa.String(length=2000), nullable=False),
        sa.Column("nonce", sa.String(length=500), nullable=True),
        sa.Column("code_hash", sa.String(length=64), nullable=False),
        sa.Column("code_challenge", sa.String(length=43), nullable=False),
        sa.Column("code_used", sa.Boolean(), nullable=False),
        sa.Column("token_hash", sa.String(length=64), nullable=True),
        sa.Column("previous_hash", sa.String(length=64), nullable=True),
        sa.Column("salt", sa.String(length=64), nullable=True),
        sa.Column("rotated_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("last_used_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("idle_until", sa.DateTime(timezone=True), nullable=False),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("address", postgresql.INET(), nullable=True),
        sa.Column("user_agent", sa.String(length=200), nullable=True),
        sa.CheckConstraint("code_used = (token_hash IS NOT NULL)", name=op.f("ck_user_sessions_exchanged")),
        sa.CheckConstraint("idle_until <= expires_at", name=op.f("ck_user_sessions_ends")),
        sa.ForeignKeyConstraint(
            ["user_id"], ["users.id"], name=op.f("fk_user_sessions_user_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_user_sessions")),
        sa.UniqueConstraint("handle", name=op.f("uq_user_sessions_handle")),
        sa.UniqueConstraint("code_hash", name=op.f("uq_user_sessions_code_hash")),
    )
    op.create_index(op.f("ix_user_sessions_user_id"), "user_sessions", ["user_id"])
    op.create_index(op.f("ix_user_sessions_idle_until"), "user_sessions", ["idle_until"])
    op.create_table(
        "user_identities",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("user_id", sa.Uuid(), nullable=False),
        sa.Column("issuer", sa.String(length=1000), nullable=False),
        sa.Column("subject", sa.String(length=255), nullable=False),
        sa.Column("way", sa.String(length=20), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("created_by", sa.String(length=255), nullable=False),
        sa.Column("created_by_name", sa.String(length=255), nullable=False),
        sa.CheckConstraint(
            "way IN ('ADMINISTRATOR', 'INVITATION', 'EMAIL')", name=op.f("ck_user_identities_way")
        ),
        sa.ForeignKeyConstraint(
            ["user_id"], ["users.id"], name=op.f("fk_user_identities_user_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_user_identities")),
        sa.UniqueConstraint("issuer", "subject", name=op.f("uq_user_identities_issuer_subject")),
    )
    op.create_index(op.f("ix_user_identities_user_id"), "user_identities", ["user_id"])
    op.create_table(
        "invitations",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("user_id", sa.Uuid(), nullable=False),
        sa.Column("code_hash", sa.String(length=64), nullable=False),
        sa.Column("email", sa.String(length=254), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("created_by", sa.String(length=255), nullable=False),
        sa.Column("created_by_name", sa.String(length=255), nullable=False),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(
            ["user_id"], ["users.id"], name=op.f("fk_invitations_user_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_invitations")),
        sa.UniqueConstraint("user_id", name=op.f("uq_invitations_user_id")),
        sa.UniqueConstraint("code_hash", name=op.f("uq_invitations_code_hash")),
    )
    op.create_index(op.f("ix_invitations_email"), "invitations", ["email"])
    op.create_index(op.f("ix_invitations_expires_at"), "invitations", ["expires_at"])
    op.create_table(
        "user_photos",
        sa.Column("user_id", sa.Uuid(), nullable=False),
        sa.Column("image", sa.LargeBinary(), nullable=False),
        sa.Column("width", sa.Integer(), nullable=False),
        sa.Column("height", sa.Integer(), nullable=False),
        sa.Column("sha256", sa.String(length=64), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(
            ["user_id"], ["users.id"], name=op.f("fk_user_photos_user_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("user_id", name=op.f("pk_user_photos")),
    )
    op.execute(_STATE)
