"""Guardians as people, each of whom may look after several students.

Who stands in the record of a student becomes a person: students whose guardians are equal to the letter, and have a
phone number or an e-mail address, have one guardian. The columns that held them are emptied, and dropped with the next
release.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "t0019"
down_revision = "t0018"
branch_labels = None
depends_on = None

_WHOLE = "ɓɗƙƴǝɛɔŋøđł\u0131ƁƊƘƳƎƐƆŊØĐŁ\u2018\u2019\u02bc"
_PLAIN = "bdkyeeonodlibdkyeeonodl" + 3 * "''"

# An id that follows from what the row is of: the same wherever the migration runs.
_ID = """\
CAST(md5(CASE WHEN guardian_phone_number IS NULL AND guardian_email_address IS NULL THEN CAST(students.id AS text)
    ELSE guardian_full_name || coalesce(chr(1) || guardian_phone_number, '')
        || coalesce(chr(2) || guardian_email_address, '') END) AS uuid)"""

_PEOPLE = f"""\
INSERT INTO guardians (id, full_name, phone_number, email_address, created_at)
SELECT {_ID}, min(guardian_full_name), min(guardian_phone_number), min(guardian_email_address), min(students.created_at)
FROM students WHERE guardian_full_name IS NOT NULL GROUP BY 1"""  # noqa: S608 -- of constants

_LINKS = f"""\
INSERT INTO student_guardians (student_id, guardian_id, relationship, is_primary, receives_reports, created_at)
SELECT students.id, {_ID}, guardian_relationship, true, true, students.created_at
FROM students WHERE guardian_full_name IS NOT NULL"""  # noqa: S608 -- of constants

_EMPTIED = """\
UPDATE students SET guardian_full_name = NULL, guardian_relationship = NULL, guardian_phone_number = NULL,
    guardian_email_address = NULL
WHERE guardian_full_name IS NOT NULL"""


# As it was, with the children of a guardian: without those for whom they are stopped.
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
        u.session_number,
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
    """Add the tables, move the guardians into them, and let the caller's state have the children."""
    op.create_table(
        "guardians",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("user_id", sa.Uuid(), nullable=True),
        sa.Column("full_name", sa.String(length=120), nullable=False),
        sa.Column("phone_number", sa.String(length=120), nullable=True),
        sa.Column("email_address", sa.String(length=254), nullable=True),
        sa.Column("physical_address", sa.String(length=2000), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("erased_at", sa.DateTime(timezone=True), nullable=True),
        sa.ForeignKeyConstraint(["user_id"], ["users.id"], name=op.f("fk_guardians_user_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_guardians")),
        sa.UniqueConstraint("user_id", name=op.f("uq_guardians_user_id")),
    )
    op.create_index("ix_guardians_folded_name", "guardians", [sa.literal_column(_folded("full_name"))])
    searched = "full_name || ' ' || coalesce(phone_number, '') || ' ' || coalesce(email_address, '')"
    op.create_index(
        "ix_guardians_search",
        "guardians",
        [sa.literal_column(_pairs(searched))],
        postgresql_using="gin",
        postgresql_with={"gin_pending_list_limit": 256},
    )
    op.create_table(
        "student_guardians",
        sa.Column("student_id", sa.Uuid(), nullable=False),
        sa.Column("guardian_id", sa.Uuid(), nullable=False),
        sa.Column("relationship", sa.String(length=120), nullable=True),
        sa.Column("is_primary", sa.Boolean(), nullable=False),
        sa.Column("receives_reports", sa.Boolean(), nullable=False),
        sa.Column("stopped_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("stopped_by", sa.String(length=255), nullable=True),
        sa.Column("stopped_by_name", sa.String(length=255), nullable=True),
        sa.Column("stop_reason", sa.String(length=500), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.CheckConstraint(
            "num_nulls(stopped_at, stopped_by, stopped_by_name, stop_reason) IN (0, 4)"
            " AND NOT (is_primary AND stopped_at IS NOT NULL)",
            name=op.f("ck_student_guardians_stopped"),
        ),
        sa.ForeignKeyConstraint(
            ["guardian_id"], ["guardians.id"], name=op.f("fk_student_guardians_guardian_id")
        ),
        sa.ForeignKeyConstraint(
            ["student_id"], ["students.id"], name=op.f("fk_student_guardians_student_id")
        ),
        sa.PrimaryKeyConstraint("student_id", "guardian_id", name=op.f("pk_student_guardians")),
    )
    op.create_index(op.f("ix_student_guardians_guardian_id"), "student_guardians", ["guardian_id"])
    op.create_index(
        "uq_student_guardians_student_id",
        "student_guardians",
        ["student_id"],
        unique=True,
        postgresql_where=sa.text("is_primary"),
    )
    op.execute(_PEOPLE)
    op.execute(_LINKS)
    op.execute(_EMPTIED)
    op.execute(_STATE)


def _folded(text: str) -> str:
    letters = rf"regexp_replace(normalize({text}, NFD), '[\u0300-\u036f\u0001]', '', 'g')"
    return f"translate(lower({letters}), '{_WHOLE}', '{_PLAIN}')"


def _pairs(text: str) -> str:
    return f"({_divided(_folded(text))} || {_divided(f'substr({_folded(text)}, 2)')})"


def _divided(text: str) -> str:
    return rf"string_to_array(regexp_replace({text}, '(..)(?=.)', '\1' || chr(1), 'g'), chr(1))"
