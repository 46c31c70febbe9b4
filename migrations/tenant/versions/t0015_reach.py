"""To whose records a role reaches, who teaches which subject, and the caller's state with both.

Every role that is there reaches the whole school, as before.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "t0015"
down_revision = "t0014"
branch_labels = None
depends_on = None

# As it was, of the roles that reach the whole school: it is dropped with the next release.
_BEFORE = """
CREATE OR REPLACE FUNCTION caller_state(
    caller uuid, OUT permissions text[], OUT name text, OUT session_number integer, OUT must_change_password boolean
) LANGUAGE plpgsql STABLE PARALLEL SAFE SET plan_cache_mode TO force_generic_plan AS $$
BEGIN
    SELECT
        ARRAY(
            SELECT DISTINCT p.access || ':' || p.section
            FROM user_roles ur
            JOIN roles r ON r.id = ur.role_id AND r.reach = 'SCHOOL'
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

# What is read of everybody is one statement; relations are read of whom they limit, or where they are asked for. The
# school's day is that of its time zone, a column that a later revision adds: the body is read when it is run, and only
# the newest revision is served. The three last parameters say by which identity somebody signed in elsewhere; nothing
# reads them yet.
_STATE = """
CREATE FUNCTION caller_state(
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
        u.session_number,
        COALESCE(u.password_given_at >= (SELECT s.must_change_password_since FROM school_settings s), false),
        (SELECT st.id FROM students st WHERE st.user_id = u.id),
        '{}'
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
    """Add the columns and the table; the function of before answers what it did, and one beside it what is new."""
    op.add_column(
        "roles",
        sa.Column("reach", sa.String(length=20), server_default=sa.text("'SCHOOL'"), nullable=False),
    )
    op.add_column("roles", sa.Column("given_to", sa.String(length=20), nullable=True))
    op.create_check_constraint(op.f("ck_roles_reach"), "roles", "reach IN ('SCHOOL', 'OWN')")
    op.create_check_constraint(
        op.f("ck_roles_given_to"),
        "roles",
        "given_to IS NULL OR given_to IN ('STUDENTS', 'GUARDIANS') AND reach = 'OWN'",
    )
    op.create_unique_constraint(op.f("uq_roles_given_to"), "roles", ["given_to"])
    op.create_table(
        "subject_teachers",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("cohort_subject_id", sa.Uuid(), nullable=False),
        sa.Column("cohort_id", sa.Uuid(), nullable=False),
        sa.Column("batch_id", sa.Uuid(), nullable=True),
        sa.Column("employee_id", sa.Uuid(), nullable=False),
        sa.Column("starts_on", sa.Date(), nullable=True),
        sa.Column("ends_on", sa.Date(), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.CheckConstraint("starts_on <= ends_on", name=op.f("ck_subject_teachers_dates")),
        sa.ForeignKeyConstraint(
            ["batch_id", "cohort_id"],
            ["batches.id", "batches.cohort_id"],
            name=op.f("fk_subject_teachers_batch_id_cohort_id"),
        ),
        sa.ForeignKeyConstraint(
            ["cohort_subject_id", "cohort_id"],
            ["cohort_subjects.id", "cohort_subjects.cohort_id"],
            name=op.f("fk_subject_teachers_cohort_subject_id_cohort_id"),
        ),
        sa.ForeignKeyConstraint(
            ["employee_id"], ["employees.id"], name=op.f("fk_subject_teachers_employee_id")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_subject_teachers")),
    )
    op.create_index(
        op.f("ix_subject_teachers_cohort_subject_id_cohort_id"),
        "subject_teachers",
        ["cohort_subject_id", "cohort_id"],
    )
    op.create_index(
        op.f("ix_subject_teachers_batch_id_cohort_id"), "subject_teachers", ["batch_id", "cohort_id"]
    )
    op.create_index(op.f("ix_subject_teachers_employee_id"), "subject_teachers", ["employee_id"])
    op.create_index(
        "uq_subject_teachers_cohort_subject_id_employee_id_batch_id",
        "subject_teachers",
        ["cohort_subject_id", "employee_id", "batch_id"],
        unique=True,
        postgresql_where=sa.text("batch_id IS NOT NULL"),
    )
    op.create_index(
        "uq_subject_teachers_cohort_subject_id_employee_id",
        "subject_teachers",
        ["cohort_subject_id", "employee_id"],
        unique=True,
        postgresql_where=sa.text("batch_id IS NULL"),
    )
    op.add_column(
        "result_settings",
        sa.Column("show_teachers", sa.Boolean(), server_default=sa.text("false"), nullable=False),
    )
    op.execute(_BEFORE)
    op.execute(_STATE)
