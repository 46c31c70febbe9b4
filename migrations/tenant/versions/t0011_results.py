"""Results: settings, letterhead, calendars, absences, comments, submissions, publications and their frozen cards.

Tables alone, and the column by which a submission holds its assessments: no row is added or changed.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "t0011"
down_revision = "t0010"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Create the tables, and the column."""
    op.create_table(
        "pictures",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("sha256", sa.String(length=64), nullable=False),
        sa.Column("media_type", sa.String(length=20), nullable=False),
        sa.Column("width", sa.SmallInteger(), nullable=False),
        sa.Column("height", sa.SmallInteger(), nullable=False),
        sa.Column("image", sa.LargeBinary(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.CheckConstraint("media_type IN ('image/png', 'image/jpeg')", name=op.f("ck_pictures_media_type")),
        sa.CheckConstraint(
            "width BETWEEN 16 AND 2000 AND height BETWEEN 16 AND 2000", name=op.f("ck_pictures_size")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_pictures")),
        sa.UniqueConstraint("sha256", name=op.f("uq_pictures_sha256")),
    )
    op.create_table(
        "result_settings",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("singleton", sa.Boolean(), nullable=False),
        sa.Column("weighting", sa.String(length=20), nullable=False),
        sa.Column("weights", postgresql.JSONB(astext_type=sa.Text()), nullable=False),
        sa.Column("percent_places", sa.SmallInteger(), nullable=False),
        sa.Column("pass_mark", sa.Numeric(precision=5, scale=2), nullable=False),
        sa.Column("minimum_subjects", sa.SmallInteger(), nullable=False),
        sa.Column("minimum_terms", sa.SmallInteger(), nullable=False),
        sa.Column("rank_by", sa.String(length=20), nullable=False),
        sa.Column("first_term_weight", sa.Numeric(precision=5, scale=2), nullable=False),
        sa.Column("second_term_weight", sa.Numeric(precision=5, scale=2), nullable=False),
        sa.Column("third_term_weight", sa.Numeric(precision=5, scale=2), nullable=False),
        sa.Column("positions", sa.String(length=20), nullable=False),
        sa.Column("principal_comments", postgresql.JSONB(astext_type=sa.Text()), nullable=False),
        sa.Column("verification", sa.Boolean(), nullable=False),
        sa.CheckConstraint(
            "positions IN ('BOTH', 'BATCH', 'COHORT', 'NONE')", name=op.f("ck_result_settings_positions")
        ),
        sa.CheckConstraint("rank_by IN ('AVERAGE', 'TOTAL')", name=op.f("ck_result_settings_rank_by")),
        sa.CheckConstraint(
            "weighting IN ('POINTS', 'CATEGORIES')", name=op.f("ck_result_settings_weighting")
        ),
        sa.CheckConstraint(
            "first_term_weight >= 0 AND second_term_weight >= 0 AND third_term_weight >= 0"
            " AND first_term_weight + second_term_weight + third_term_weight > 0",
            name=op.f("ck_result_settings_term_weights"),
        ),
        sa.CheckConstraint(
            "minimum_subjects BETWEEN 1 AND 40", name=op.f("ck_result_settings_minimum_subjects")
        ),
        sa.CheckConstraint("minimum_terms BETWEEN 1 AND 3", name=op.f("ck_result_settings_minimum_terms")),
        sa.CheckConstraint("singleton", name=op.f("ck_result_settings_singleton")),
        sa.CheckConstraint("pass_mark BETWEEN 0 AND 100", name=op.f("ck_result_settings_pass_mark")),
        sa.CheckConstraint("percent_places BETWEEN 0 AND 2", name=op.f("ck_result_settings_percent_places")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_result_settings")),
        sa.UniqueConstraint("singleton", name=op.f("uq_result_settings_singleton")),
    )
    op.create_table(
        "letterheads",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("singleton", sa.Boolean(), nullable=False),
        sa.Column("name", sa.String(length=120), nullable=True),
        sa.Column("address", sa.String(length=2000), nullable=True),
        sa.Column("phone_number", sa.String(length=120), nullable=True),
        sa.Column("email_address", sa.String(length=254), nullable=True),
        sa.Column("website", sa.String(length=254), nullable=True),
        sa.Column("motto", sa.String(length=250), nullable=True),
        sa.Column("principal_name", sa.String(length=120), nullable=True),
        sa.Column("principal_title", sa.String(length=120), nullable=True),
        sa.Column("logo_id", sa.Uuid(), nullable=True),
        sa.Column("signature_id", sa.Uuid(), nullable=True),
        sa.CheckConstraint("singleton", name=op.f("ck_letterheads_singleton")),
        sa.ForeignKeyConstraint(["logo_id"], ["pictures.id"], name=op.f("fk_letterheads_logo_id")),
        sa.ForeignKeyConstraint(["signature_id"], ["pictures.id"], name=op.f("fk_letterheads_signature_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_letterheads")),
        sa.UniqueConstraint("singleton", name=op.f("uq_letterheads_singleton")),
    )
    op.create_index(op.f("ix_letterheads_logo_id"), "letterheads", ["logo_id"], unique=False)
    op.create_index(op.f("ix_letterheads_signature_id"), "letterheads", ["signature_id"], unique=False)
    op.create_table(
        "term_calendars",
        sa.Column("term_id", sa.Uuid(), nullable=False),
        sa.Column("start_date", sa.Date(), nullable=True),
        sa.Column("end_date", sa.Date(), nullable=True),
        sa.Column("times_opened", sa.SmallInteger(), nullable=True),
        sa.Column("next_term_begins", sa.Date(), nullable=True),
        sa.Column("notice", sa.String(length=500), nullable=True),
        sa.CheckConstraint("start_date <= end_date", name=op.f("ck_term_calendars_dates")),
        sa.CheckConstraint("times_opened BETWEEN 0 AND 400", name=op.f("ck_term_calendars_times_opened")),
        sa.ForeignKeyConstraint(["term_id"], ["terms.id"], name=op.f("fk_term_calendars_term_id")),
        sa.PrimaryKeyConstraint("term_id", name=op.f("pk_term_calendars")),
    )
    op.create_table(
        "publications",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("batch_id", sa.Uuid(), nullable=False),
        sa.Column("cohort_id", sa.Uuid(), nullable=False),
        sa.Column("session_id", sa.Uuid(), nullable=False),
        sa.Column("term_id", sa.Uuid(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("state", sa.String(length=20), nullable=False),
        sa.Column("rules", postgresql.JSONB(astext_type=sa.Text()), nullable=False),
        sa.Column("logo_id", sa.Uuid(), nullable=True),
        sa.Column("signature_id", sa.Uuid(), nullable=True),
        sa.Column("published_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("published_by", sa.String(length=255), nullable=False),
        sa.Column("published_by_name", sa.String(length=255), nullable=False),
        sa.Column("reopened_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("reopened_by", sa.String(length=255), nullable=True),
        sa.Column("reopened_by_name", sa.String(length=255), nullable=True),
        sa.Column("reason", sa.String(length=2000), nullable=True),
        sa.CheckConstraint(
            "CASE WHEN state = 'PUBLISHED'"
            " THEN reopened_at IS NULL AND reopened_by IS NULL AND reopened_by_name IS NULL AND reason IS NULL"
            " ELSE reopened_at IS NOT NULL AND reopened_by IS NOT NULL AND reopened_by_name IS NOT NULL"
            " AND reason IS NOT NULL END",
            name=op.f("ck_publications_reopened"),
        ),
        sa.CheckConstraint(
            "state IN ('PUBLISHED', 'REOPENED', 'WITHDRAWN', 'SUPERSEDED')",
            name=op.f("ck_publications_state"),
        ),
        sa.CheckConstraint("version > 0", name=op.f("ck_publications_version")),
        sa.ForeignKeyConstraint(
            ["batch_id", "cohort_id"],
            ["batches.id", "batches.cohort_id"],
            name=op.f("fk_publications_batch_id_cohort_id"),
        ),
        sa.ForeignKeyConstraint(
            ["cohort_id", "session_id"],
            ["cohorts.id", "cohorts.session_id"],
            name=op.f("fk_publications_cohort_id_session_id"),
        ),
        sa.ForeignKeyConstraint(["logo_id"], ["pictures.id"], name=op.f("fk_publications_logo_id")),
        sa.ForeignKeyConstraint(["signature_id"], ["pictures.id"], name=op.f("fk_publications_signature_id")),
        sa.ForeignKeyConstraint(
            ["term_id", "session_id"],
            ["terms.id", "terms.session_id"],
            name=op.f("fk_publications_term_id_session_id"),
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_publications")),
        sa.UniqueConstraint(
            "batch_id", "term_id", "version", name=op.f("uq_publications_batch_id_term_id_version")
        ),
    )
    op.create_index(
        op.f("ix_publications_batch_id_cohort_id"), "publications", ["batch_id", "cohort_id"], unique=False
    )
    op.create_index(
        op.f("ix_publications_cohort_id_session_id"),
        "publications",
        ["cohort_id", "session_id"],
        unique=False,
    )
    op.create_index(op.f("ix_publications_logo_id"), "publications", ["logo_id"], unique=False)
    op.create_index(
        op.f("ix_publications_published_at_id"), "publications", ["published_at", "id"], unique=False
    )
    op.create_index(
        op.f("ix_publications_session_id_published_at_id"),
        "publications",
        ["session_id", "published_at", "id"],
        unique=False,
    )
    op.create_index(op.f("ix_publications_signature_id"), "publications", ["signature_id"], unique=False)
    op.create_index(
        op.f("ix_publications_term_id_session_id"), "publications", ["term_id", "session_id"], unique=False
    )
    op.create_index(
        "uq_publications_batch_id_term_id",
        "publications",
        ["batch_id", "term_id"],
        unique=True,
        postgresql_where=sa.text("state IN ('PUBLISHED', 'REOPENED')"),
    )
    op.create_table(
        "submissions",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("cohort_subject_id", sa.Uuid(), nullable=False),
        sa.Column("cohort_id", sa.Uuid(), nullable=False),
        sa.Column("session_id", sa.Uuid(), nullable=False),
        sa.Column("term_id", sa.Uuid(), nullable=False),
        sa.Column("submitted_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("submitted_by", sa.String(length=255), nullable=False),
        sa.Column("submitted_by_name", sa.String(length=255), nullable=False),
        sa.ForeignKeyConstraint(
            ["cohort_id", "session_id"],
            ["cohorts.id", "cohorts.session_id"],
            name=op.f("fk_submissions_cohort_id_session_id"),
        ),
        sa.ForeignKeyConstraint(
            ["cohort_subject_id", "cohort_id"],
            ["cohort_subjects.id", "cohort_subjects.cohort_id"],
            name=op.f("fk_submissions_cohort_subject_id_cohort_id"),
        ),
        sa.ForeignKeyConstraint(
            ["term_id", "session_id"],
            ["terms.id", "terms.session_id"],
            name=op.f("fk_submissions_term_id_session_id"),
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_submissions")),
        sa.UniqueConstraint(
            "cohort_subject_id", "term_id", name=op.f("uq_submissions_cohort_subject_id_term_id")
        ),
        sa.UniqueConstraint(
            "id", "cohort_subject_id", "term_id", name=op.f("uq_submissions_id_cohort_subject_id_term_id")
        ),
    )
    op.create_index(
        op.f("ix_submissions_cohort_id_session_id"), "submissions", ["cohort_id", "session_id"], unique=False
    )
    op.create_index(
        op.f("ix_submissions_cohort_subject_id_cohort_id"),
        "submissions",
        ["cohort_subject_id", "cohort_id"],
        unique=False,
    )
    op.create_index(
        op.f("ix_submissions_term_id_session_id"), "submissions", ["term_id", "session_id"], unique=False
    )
    op.create_table(
        "term_comments",
        sa.Column("student_id", sa.Uuid(), nullable=False),
        sa.Column("term_id", sa.Uuid(), nullable=False),
        sa.Column("batch_id", sa.Uuid(), nullable=False),
        sa.Column("cohort_id", sa.Uuid(), nullable=False),
        sa.Column("session_id", sa.Uuid(), nullable=False),
        sa.Column("times_present", sa.SmallInteger(), nullable=True),
        sa.Column("form_teacher_comment", sa.String(length=500), nullable=True),
        sa.Column("principal_comment", sa.String(length=500), nullable=True),
        sa.Column("sheet", sa.String(length=255), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("updated_at", sa.DateTime(timezone=True), nullable=False),
        sa.CheckConstraint("times_present BETWEEN 0 AND 400", name=op.f("ck_term_comments_times_present")),
        sa.ForeignKeyConstraint(
            ["batch_id", "cohort_id"],
            ["batches.id", "batches.cohort_id"],
            name=op.f("fk_term_comments_batch_id_cohort_id"),
        ),
        sa.ForeignKeyConstraint(
            ["cohort_id", "session_id"],
            ["cohorts.id", "cohorts.session_id"],
            name=op.f("fk_term_comments_cohort_id_session_id"),
        ),
        sa.ForeignKeyConstraint(["student_id"], ["students.id"], name=op.f("fk_term_comments_student_id")),
        sa.ForeignKeyConstraint(
            ["term_id", "session_id"],
            ["terms.id", "terms.session_id"],
            name=op.f("fk_term_comments_term_id_session_id"),
        ),
        sa.PrimaryKeyConstraint("student_id", "term_id", name=op.f("pk_term_comments")),
    )
    op.create_index(
        op.f("ix_term_comments_batch_id_cohort_id"), "term_comments", ["batch_id", "cohort_id"], unique=False
    )
    op.create_index(
        op.f("ix_term_comments_cohort_id_session_id"),
        "term_comments",
        ["cohort_id", "session_id"],
        unique=False,
    )
    op.create_index(
        op.f("ix_term_comments_term_id_session_id"), "term_comments", ["term_id", "session_id"], unique=False
    )
    op.create_table(
        "report_cards",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("publication_id", sa.Uuid(), nullable=False),
        sa.Column("student_id", sa.Uuid(), nullable=False),
        sa.Column("code", sa.Uuid(), nullable=False),
        sa.Column("average", sa.Numeric(precision=5, scale=2), nullable=True),
        sa.Column("position", sa.Integer(), nullable=True),
        sa.Column("changed", sa.Boolean(), nullable=False),
        sa.Column("card", postgresql.JSONB(astext_type=sa.Text()), nullable=False),
        sa.ForeignKeyConstraint(
            ["publication_id"], ["publications.id"], name=op.f("fk_report_cards_publication_id")
        ),
        sa.ForeignKeyConstraint(["student_id"], ["students.id"], name=op.f("fk_report_cards_student_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_report_cards")),
        sa.UniqueConstraint("code", name=op.f("uq_report_cards_code")),
        sa.UniqueConstraint(
            "publication_id", "student_id", name=op.f("uq_report_cards_publication_id_student_id")
        ),
    )
    op.create_index(op.f("ix_report_cards_student_id"), "report_cards", ["student_id"], unique=False)
    op.create_table(
        "absences",
        sa.Column("assessment_id", sa.Uuid(), nullable=False),
        sa.Column("student_id", sa.Uuid(), nullable=False),
        sa.Column("status", sa.String(length=20), nullable=False),
        sa.Column("note", sa.String(length=2000), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.CheckConstraint("status IN ('ABSENT', 'EXCUSED')", name=op.f("ck_absences_status")),
        sa.ForeignKeyConstraint(
            ["assessment_id"], ["assessments.id"], name=op.f("fk_absences_assessment_id")
        ),
        sa.ForeignKeyConstraint(["student_id"], ["students.id"], name=op.f("fk_absences_student_id")),
        sa.PrimaryKeyConstraint("assessment_id", "student_id", name=op.f("pk_absences")),
    )
    op.create_index(op.f("ix_absences_student_id"), "absences", ["student_id"], unique=False)
    op.add_column("assessments", sa.Column("submission_id", sa.Uuid(), nullable=True))
    op.create_index(
        op.f("ix_assessments_submission_id_cohort_subject_id_term_id"),
        "assessments",
        ["submission_id", "cohort_subject_id", "term_id"],
        unique=False,
    )
    op.create_foreign_key(
        op.f("fk_assessments_submission_id_cohort_subject_id_term_id"),
        "assessments",
        "submissions",
        ["submission_id", "cohort_subject_id", "term_id"],
        ["id", "cohort_subject_id", "term_id"],
    )
