"""Cohorts, enrollment, cohort subjects, assessments, gradebooks and the audit log."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "t0002"
down_revision = "t0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Create the tables."""
    op.create_unique_constraint("uq_terms_id_session_id", "terms", ["id", "session_id"])
    op.create_table(
        "cohorts",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("classroom_id", sa.Uuid(), nullable=False),
        sa.Column("session_id", sa.Uuid(), nullable=False),
        sa.ForeignKeyConstraint(["classroom_id"], ["classrooms.id"], name=op.f("fk_cohorts_classroom_id")),
        sa.ForeignKeyConstraint(["session_id"], ["sessions.id"], name=op.f("fk_cohorts_session_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_cohorts")),
        sa.UniqueConstraint("classroom_id", "session_id", name=op.f("uq_cohorts_classroom_id_session_id")),
        sa.UniqueConstraint("id", "session_id", name=op.f("uq_cohorts_id_session_id")),
    )
    op.create_index(op.f("ix_cohorts_session_id"), "cohorts", ["session_id"], unique=False)
    op.create_table(
        "batches",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("cohort_id", sa.Uuid(), nullable=False),
        sa.Column("name", sa.String(length=120), nullable=False),
        sa.ForeignKeyConstraint(["cohort_id"], ["cohorts.id"], name=op.f("fk_batches_cohort_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_batches")),
        sa.UniqueConstraint("cohort_id", "name", name=op.f("uq_batches_cohort_id_name")),
        sa.UniqueConstraint("id", "cohort_id", name=op.f("uq_batches_id_cohort_id")),
        sa.UniqueConstraint("number", name=op.f("uq_batches_number")),
    )
    op.create_table(
        "cohort_subjects",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("cohort_id", sa.Uuid(), nullable=False),
        sa.Column("subject_id", sa.Uuid(), nullable=False),
        sa.Column("elective", sa.Boolean(), nullable=False),
        sa.ForeignKeyConstraint(["cohort_id"], ["cohorts.id"], name=op.f("fk_cohort_subjects_cohort_id")),
        sa.ForeignKeyConstraint(["subject_id"], ["subjects.id"], name=op.f("fk_cohort_subjects_subject_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_cohort_subjects")),
        sa.UniqueConstraint("cohort_id", "subject_id", name=op.f("uq_cohort_subjects_cohort_id_subject_id")),
        sa.UniqueConstraint("id", "cohort_id", name=op.f("uq_cohort_subjects_id_cohort_id")),
    )
    op.create_index(op.f("ix_cohort_subjects_subject_id"), "cohort_subjects", ["subject_id"], unique=False)
    op.create_table(
        "enrollments",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("student_id", sa.Uuid(), nullable=False),
        sa.Column("batch_id", sa.Uuid(), nullable=False),
        sa.Column("cohort_id", sa.Uuid(), nullable=False),
        sa.Column("session_id", sa.Uuid(), nullable=False),
        sa.Column("started_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("ended_at", sa.DateTime(timezone=True), nullable=True),
        sa.ForeignKeyConstraint(
            ["batch_id", "cohort_id"],
            ["batches.id", "batches.cohort_id"],
            name=op.f("fk_enrollments_batch_id_cohort_id"),
        ),
        sa.ForeignKeyConstraint(
            ["cohort_id", "session_id"],
            ["cohorts.id", "cohorts.session_id"],
            name=op.f("fk_enrollments_cohort_id_session_id"),
        ),
        sa.ForeignKeyConstraint(["student_id"], ["students.id"], name=op.f("fk_enrollments_student_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_enrollments")),
    )
    op.create_index(
        op.f("ix_enrollments_batch_id_cohort_id"), "enrollments", ["batch_id", "cohort_id"], unique=False
    )
    op.create_index(
        op.f("ix_enrollments_cohort_id_session_id"), "enrollments", ["cohort_id", "session_id"], unique=False
    )
    op.create_index(
        op.f("ix_enrollments_student_id_started_at"),
        "enrollments",
        ["student_id", "started_at"],
        unique=False,
    )
    op.create_index(
        "uq_enrollments_student_id_session_id",
        "enrollments",
        ["student_id", "session_id"],
        unique=True,
        postgresql_where=sa.text("ended_at IS NULL"),
    )
    op.create_table(
        "subject_enrollments",
        sa.Column("cohort_subject_id", sa.Uuid(), nullable=False),
        sa.Column("student_id", sa.Uuid(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(
            ["cohort_subject_id"],
            ["cohort_subjects.id"],
            name=op.f("fk_subject_enrollments_cohort_subject_id"),
        ),
        sa.ForeignKeyConstraint(
            ["student_id"], ["students.id"], name=op.f("fk_subject_enrollments_student_id")
        ),
        sa.PrimaryKeyConstraint("cohort_subject_id", "student_id", name=op.f("pk_subject_enrollments")),
    )
    op.create_index(
        op.f("ix_subject_enrollments_student_id"), "subject_enrollments", ["student_id"], unique=False
    )
    op.create_table(
        "audit_entries",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("actor", sa.String(length=255), nullable=False),
        sa.Column("actor_name", sa.String(length=255), nullable=False),
        sa.Column("action", sa.String(length=20), nullable=False),
        sa.Column("entity", sa.String(length=40), nullable=False),
        sa.Column("entity_id", sa.Uuid(), nullable=False),
        sa.Column("old", postgresql.JSONB(), nullable=True),
        sa.Column("new", postgresql.JSONB(), nullable=True),
        sa.Column("request_id", sa.String(length=64), nullable=True),
        sa.CheckConstraint("action IN ('create', 'update', 'delete')", name=op.f("ck_audit_entries_action")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_audit_entries")),
    )
    op.create_index(
        op.f("ix_audit_entries_actor_at_id"), "audit_entries", ["actor", "at", "id"], unique=False
    )
    op.create_index(op.f("ix_audit_entries_at_id"), "audit_entries", ["at", "id"], unique=False)
    op.create_index(
        op.f("ix_audit_entries_entity_at_id"), "audit_entries", ["entity", "at", "id"], unique=False
    )
    op.create_index(
        op.f("ix_audit_entries_entity_id_at_id"), "audit_entries", ["entity_id", "at", "id"], unique=False
    )
    op.create_table(
        "assessments",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("cohort_subject_id", sa.Uuid(), nullable=False),
        sa.Column("cohort_id", sa.Uuid(), nullable=False),
        sa.Column("session_id", sa.Uuid(), nullable=False),
        sa.Column("term_id", sa.Uuid(), nullable=False),
        sa.Column("name", sa.String(length=120), nullable=False),
        sa.Column("abbreviation", sa.String(length=120), nullable=False),
        sa.Column("due_date", sa.Date(), nullable=False),
        sa.Column("total_points", sa.Numeric(precision=7, scale=2), nullable=False),
        sa.Column("description", sa.String(length=2000), nullable=False),
        sa.Column("category", sa.String(length=20), nullable=False),
        sa.Column("file_name", sa.String(length=255), nullable=False),
        sa.Column("include_in_final", sa.Boolean(), nullable=False),
        sa.Column("publish_scores", sa.Boolean(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("deleted_at", sa.DateTime(timezone=True), nullable=True),
        sa.CheckConstraint(
            "category IN ('CA1', 'CA2', 'CA3', 'EXAM', 'FIRST_TERM', 'SECOND_TERM', 'THIRD_TERM')",
            name=op.f("ck_assessments_category"),
        ),
        sa.CheckConstraint("total_points > 0", name=op.f("ck_assessments_total_points")),
        sa.ForeignKeyConstraint(
            ["cohort_id", "session_id"],
            ["cohorts.id", "cohorts.session_id"],
            name=op.f("fk_assessments_cohort_id_session_id"),
        ),
        sa.ForeignKeyConstraint(
            ["cohort_subject_id", "cohort_id"],
            ["cohort_subjects.id", "cohort_subjects.cohort_id"],
            name=op.f("fk_assessments_cohort_subject_id_cohort_id"),
        ),
        sa.ForeignKeyConstraint(
            ["term_id", "session_id"],
            ["terms.id", "terms.session_id"],
            name=op.f("fk_assessments_term_id_session_id"),
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_assessments")),
    )
    op.create_index(
        op.f("ix_assessments_cohort_id_session_id"), "assessments", ["cohort_id", "session_id"], unique=False
    )
    op.create_index(
        op.f("ix_assessments_cohort_subject_id_cohort_id"),
        "assessments",
        ["cohort_subject_id", "cohort_id"],
        unique=False,
    )
    op.create_index(
        op.f("ix_assessments_term_id_session_id"), "assessments", ["term_id", "session_id"], unique=False
    )
    op.create_table(
        "gradebook_entries",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("assessment_id", sa.Uuid(), nullable=False),
        sa.Column("student_id", sa.Uuid(), nullable=False),
        sa.Column("batch_id", sa.Uuid(), nullable=False),
        sa.Column("score", sa.Numeric(precision=7, scale=2), nullable=False),
        sa.Column("sheet", sa.String(length=255), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("updated_at", sa.DateTime(timezone=True), nullable=False),
        sa.CheckConstraint("score >= 0", name=op.f("ck_gradebook_entries_score")),
        sa.ForeignKeyConstraint(
            ["assessment_id"], ["assessments.id"], name=op.f("fk_gradebook_entries_assessment_id")
        ),
        sa.ForeignKeyConstraint(["batch_id"], ["batches.id"], name=op.f("fk_gradebook_entries_batch_id")),
        sa.ForeignKeyConstraint(
            ["student_id"], ["students.id"], name=op.f("fk_gradebook_entries_student_id")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_gradebook_entries")),
        sa.UniqueConstraint(
            "assessment_id", "student_id", name=op.f("uq_gradebook_entries_assessment_id_student_id")
        ),
        postgresql_with={"fillfactor": 70},
    )
    op.create_index(
        op.f("ix_gradebook_entries_batch_id_created_at_id"),
        "gradebook_entries",
        ["batch_id", "created_at", "id"],
        unique=False,
    )
    op.create_index(
        op.f("ix_gradebook_entries_created_at_id"), "gradebook_entries", ["created_at", "id"], unique=False
    )
    op.create_index(
        op.f("ix_gradebook_entries_student_id"), "gradebook_entries", ["student_id"], unique=False
    )
