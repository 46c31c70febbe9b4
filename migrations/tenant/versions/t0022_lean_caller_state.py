"""The caller's state reads what is asked of it, and no more.

PL/pgSQL plans a statement when it first runs, and each connection keeps the plan: so what a request does not need is a
statement of its own, behind an IF. The condition of an IF is an expression that is kept, too, with 6 KB: there are few
on the way of most requests.
"""

from __future__ import annotations

from alembic import op

revision = "t0022"
down_revision = "t0021"
branch_labels = None
depends_on = None

# It answers what it did but for `student` and `children`, which are null where relations are not read.
_STATE = """
CREATE OR REPLACE FUNCTION caller_state(
    caller uuid, at timestamptz, relations boolean, session uuid, issuer text, subject text,
    OUT permissions text[], OUT own_permissions text[], OUT name text, OUT session_number integer,
    OUT must_change_password boolean, OUT student uuid, OUT children uuid[], OUT employee uuid,
    OUT form_batches uuid[], OUT taught_subjects uuid[], OUT taught_arms uuid[]
) LANGUAGE plpgsql STABLE PARALLEL SAFE SET plan_cache_mode TO force_generic_plan AS $$
DECLARE
    given_at timestamptz;
    school_roles uuid[];
    own_roles uuid[];
    more_is_asked boolean;
BEGIN
    SELECT
        u.first_name || ' ' || u.last_name,
        u.session_number,
        false,
        '{}',
        u.password_given_at,
        held.school,
        held.own,
        caller_state.session IS NOT NULL OR caller_state.subject IS NOT NULL OR relations OR held.own IS NOT NULL,
        ARRAY(
            SELECT p.access || ':' || p.section
            FROM permissions p
            WHERE p.id IN (SELECT rp.permission_id FROM role_permissions rp WHERE rp.role_id = ANY (held.school))
        )
    INTO
        name, session_number, must_change_password, own_permissions, given_at, school_roles, own_roles, more_is_asked,
        permissions
    FROM users u
    CROSS JOIN LATERAL (
        SELECT
            array_agg(r.id) FILTER (WHERE r.reach = 'SCHOOL') AS school,
            array_agg(r.id) FILTER (WHERE r.reach <> 'SCHOOL') AS own
        FROM user_roles ur
        JOIN roles r ON r.id = ur.role_id
        WHERE ur.user_id = u.id
    ) AS held
    WHERE u.id = caller AND u.deleted_at IS NULL;
    IF given_at IS NOT NULL THEN
        SELECT COALESCE(given_at >= s.must_change_password_since, false)
        INTO must_change_password
        FROM school_settings s;
    END IF;
    IF more_is_asked THEN
        IF session IS NOT NULL THEN
            PERFORM FROM user_sessions us
            WHERE us.id = caller_state.session AND us.user_id = caller AND us.idle_until > at;
            IF NOT FOUND THEN
                session_number := -1;
            END IF;
        END IF;
        IF subject IS NOT NULL THEN
            PERFORM FROM user_identities ui
            WHERE ui.issuer = caller_state.issuer AND ui.subject = caller_state.subject AND ui.user_id = caller;
            IF NOT FOUND THEN
                session_number := -1;
            END IF;
        END IF;
        IF own_roles IS NOT NULL THEN
            own_permissions := ARRAY(
                SELECT p.access || ':' || p.section
                FROM permissions p
                WHERE p.id IN (SELECT rp.permission_id FROM role_permissions rp WHERE rp.role_id = ANY (own_roles))
                    AND p.id NOT IN (
                        SELECT rp.permission_id FROM role_permissions rp WHERE rp.role_id = ANY (school_roles)
                    )
            );
        END IF;
        IF relations OR own_permissions <> '{}' THEN
            SELECT
                (SELECT st.id FROM students st WHERE st.user_id = caller),
                ARRAY(
                    SELECT sg.student_id
                    FROM guardians g
                    JOIN student_guardians sg ON sg.guardian_id = g.id AND sg.stopped_at IS NULL
                    WHERE g.user_id = caller
                ),
                (SELECT em.id FROM employees em WHERE em.user_id = caller AND em.deleted_at IS NULL),
                '{}',
                '{}',
                '{}'
            INTO student, children, employee, form_batches, taught_subjects, taught_arms;
            IF employee IS NOT NULL THEN
                DECLARE
                    today date := (at AT TIME ZONE (SELECT s.time_zone FROM school_settings s))::date;
                BEGIN
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
                END;
            END IF;
        END IF;
    END IF;
END
$$
"""


def upgrade() -> None:
    """Replace the function."""
    op.execute(_STATE)
