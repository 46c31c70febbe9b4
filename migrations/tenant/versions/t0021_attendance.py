"""Attendance: settings, codes, school days, registers and the marks in them, and who may read and write them."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from migrations.tenant.permissions import add_permissions

revision = "t0021"
down_revision = "t0020"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the tables, of which none refers to a row that is there, and the permissions."""
    add_permissions(
        "delete:attendance", "read:attendance", "write:attendance", "write:attendance-corrections"
    )
    op.create_table(
        "attendance_codes",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("position", sa.SmallInteger(), nullable=False),
        sa.Column("code", sa.String(length=4), nullable=False),
        sa.Column("name", sa.String(length=60), nullable=False),
        sa.Column("kind", sa.String(length=20), nullable=False),
        sa.CheckConstraint(
            "kind IN ('PRESENT', 'LATE', 'ABSENT', 'EXCUSED')", name=op.f("ck_attendance_codes_kind")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_attendance_codes")),
        sa.UniqueConstraint("code", name=op.f("uq_attendance_codes_code")),
        sa.UniqueConstraint("position", name=op.f("uq_attendance_codes_position")),
    )
    op.create_table(
        "attendance_settings",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("singleton", sa.Boolean(), nullable=False),
        sa.Column("parts", sa.String(length=20), nullable=False),
        sa.Column("weekdays", sa.ARRAY(sa.SmallInteger()), nullable=False),
        sa.Column("roll_up", sa.String(length=20), nullable=False),
        sa.Column("lock_after", sa.SmallInteger(), nullable=True),
        sa.Column("chronic_percent", sa.SmallInteger(), nullable=False),
        sa.Column("families_read", sa.String(length=20), nullable=False),
        sa.CheckConstraint(
            "families_read IN ('MARKS', 'SUMS', 'NOTHING')", name=op.f("ck_attendance_settings_families_read")
        ),
        sa.CheckConstraint("parts IN ('DAY', 'HALF_DAYS')", name=op.f("ck_attendance_settings_parts")),
        sa.CheckConstraint("roll_up IN ('TYPED', 'REGISTERS')", name=op.f("ck_attendance_settings_roll_up")),
        sa.CheckConstraint(
            "cardinality(weekdays) > 0 AND weekdays <@ ARRAY[1, 2, 3, 4, 5, 6, 7]::smallint[]",
            name=op.f("ck_attendance_settings_weekdays"),
        ),
        sa.CheckConstraint(
            "chronic_percent BETWEEN 1 AND 100", name=op.f("ck_attendance_settings_chronic_percent")
        ),
        sa.CheckConstraint("lock_after BETWEEN 0 AND 60", name=op.f("ck_attendance_settings_lock_after")),
        sa.CheckConstraint("singleton", name=op.f("ck_attendance_settings_singleton")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_attendance_settings")),
        sa.UniqueConstraint("singleton", name=op.f("uq_attendance_settings_singleton")),
    )
    op.create_table(
        "school_days",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("date", sa.Date(), nullable=False),
        sa.Column("part", sa.String(length=20), nullable=False),
        sa.Column("status", sa.String(length=20), nullable=False),
        sa.Column("name", sa.String(length=60), nullable=True),
        sa.CheckConstraint("part IN ('DAY', 'MORNING', 'AFTERNOON')", name=op.f("ck_school_days_part")),
        sa.CheckConstraint("status IN ('OPEN', 'CLOSED')", name=op.f("ck_school_days_status")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_school_days")),
        sa.UniqueConstraint("date", "part", name=op.f("uq_school_days_date_part")),
    )
    op.create_table(
        "registers",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("batch_id", sa.Uuid(), nullable=False),
        sa.Column("cohort_id", sa.Uuid(), nullable=False),
        sa.Column("session_id", sa.Uuid(), nullable=False),
        sa.Column("term_id", sa.Uuid(), nullable=False),
        sa.Column("cohort_subject_id", sa.Uuid(), nullable=True),
        sa.Column("date", sa.Date(), nullable=False),
        sa.Column("part", sa.String(length=20), nullable=False),
        sa.Column("period", sa.SmallInteger(), nullable=True),
        sa.Column("state", sa.String(length=20), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("taken_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("changed_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("changed_by", sa.String(length=255), nullable=True),
        sa.Column("changed_by_name", sa.String(length=255), nullable=True),
        sa.CheckConstraint(
            "CASE WHEN part = 'LESSON' THEN cohort_subject_id IS NOT NULL AND period IS NOT NULL"
            " ELSE cohort_subject_id IS NULL AND period IS NULL END",
            name=op.f("ck_registers_lesson"),
        ),
        sa.CheckConstraint(
            "part IN ('DAY', 'MORNING', 'AFTERNOON', 'LESSON')", name=op.f("ck_registers_part")
        ),
        sa.CheckConstraint("state IN ('NOT_TAKEN', 'DRAFT', 'SUBMITTED')", name=op.f("ck_registers_state")),
        sa.CheckConstraint("period BETWEEN 1 AND 20", name=op.f("ck_registers_period")),
        sa.CheckConstraint("version >= 0", name=op.f("ck_registers_version")),
        sa.ForeignKeyConstraint(
            ["batch_id", "cohort_id"],
            ["batches.id", "batches.cohort_id"],
            name=op.f("fk_registers_batch_id_cohort_id"),
        ),
        sa.ForeignKeyConstraint(
            ["cohort_id", "session_id"],
            ["cohorts.id", "cohorts.session_id"],
            name=op.f("fk_registers_cohort_id_session_id"),
        ),
        sa.ForeignKeyConstraint(
            ["cohort_subject_id", "cohort_id"],
            ["cohort_subjects.id", "cohort_subjects.cohort_id"],
            name=op.f("fk_registers_cohort_subject_id_cohort_id"),
        ),
        sa.ForeignKeyConstraint(
            ["term_id", "session_id"],
            ["terms.id", "terms.session_id"],
            name=op.f("fk_registers_term_id_session_id"),
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_registers")),
    )
    op.create_index(
        op.f("ix_registers_batch_id_cohort_id"), "registers", ["batch_id", "cohort_id"], unique=False
    )
    op.create_index(
        op.f("ix_registers_cohort_id_session_id"), "registers", ["cohort_id", "session_id"], unique=False
    )
    op.create_index(
        op.f("ix_registers_cohort_subject_id_cohort_id"),
        "registers",
        ["cohort_subject_id", "cohort_id"],
        unique=False,
    )
    op.create_index(op.f("ix_registers_date"), "registers", ["date"], unique=False)
    op.create_index(
        op.f("ix_registers_term_id_session_id"), "registers", ["term_id", "session_id"], unique=False
    )
    op.create_index(
        "uq_registers_batch_id_date_part",
        "registers",
        ["batch_id", "date", "part"],
        unique=True,
        postgresql_where=sa.text("part <> 'LESSON'"),
    )
    op.create_index(
        "uq_registers_cohort_subject_id_batch_id_date_period",
        "registers",
        ["cohort_subject_id", "batch_id", "date", "period"],
        unique=True,
        postgresql_where=sa.text("part = 'LESSON'"),
    )
    op.create_table(
        "marks",
        sa.Column("register_id", sa.Uuid(), nullable=False),
        sa.Column("student_id", sa.Uuid(), nullable=False),
        sa.Column("code", sa.String(length=4), nullable=True),
        sa.Column("kind", sa.String(length=20), nullable=True),
        sa.Column("note", sa.String(length=200), nullable=True),
        sa.Column("arrived", sa.Time(), nullable=True),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("correction_code", sa.String(length=4), nullable=True),
        sa.Column("correction_kind", sa.String(length=20), nullable=True),
        sa.Column("reason", sa.String(length=500), nullable=True),
        sa.Column("corrected_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("corrected_by", sa.String(length=255), nullable=True),
        sa.Column("corrected_by_name", sa.String(length=255), nullable=True),
        sa.CheckConstraint("arrived IS NULL OR kind = 'LATE'", name=op.f("ck_marks_arrived")),
        sa.CheckConstraint(
            "num_nulls(code, kind) IN (0, 2) AND kind IN ('PRESENT', 'LATE', 'ABSENT', 'EXCUSED')",
            name=op.f("ck_marks_kind"),
        ),
        sa.CheckConstraint(
            "num_nulls(correction_code, correction_kind, corrected_at, corrected_by, corrected_by_name) IN (0, 5)"
            " AND correction_kind IN ('PRESENT', 'LATE', 'ABSENT', 'EXCUSED')"
            " AND (reason IS NULL OR correction_code IS NOT NULL)",
            name=op.f("ck_marks_correction"),
        ),
        sa.CheckConstraint("code IS NOT NULL OR correction_code IS NOT NULL", name=op.f("ck_marks_code")),
        sa.CheckConstraint("note IS NULL OR code IS NOT NULL", name=op.f("ck_marks_note")),
        sa.CheckConstraint("version >= 0", name=op.f("ck_marks_version")),
        sa.ForeignKeyConstraint(["register_id"], ["registers.id"], name=op.f("fk_marks_register_id")),
        sa.ForeignKeyConstraint(["student_id"], ["students.id"], name=op.f("fk_marks_student_id")),
        sa.PrimaryKeyConstraint("register_id", "student_id", name=op.f("pk_marks")),
    )
    op.create_index(op.f("ix_marks_student_id"), "marks", ["student_id"], unique=False)
