"""Papers: the school's time zone, the order of names and who signs, and transcripts as they were issued."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "t0018"
down_revision = "t0017"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the columns, with what a school has that has chosen nothing, and the table."""
    op.add_column(
        "school_settings",
        sa.Column("time_zone", sa.String(120), server_default="Africa/Lagos", nullable=False),
    )
    op.alter_column("school_settings", "time_zone", server_default=None)
    for name, default in (("name_order", "GIVEN_FIRST"), ("signatures", "PICTURES")):
        op.add_column(
            "result_settings", sa.Column(name, sa.String(20), server_default=default, nullable=False)
        )
        op.alter_column("result_settings", name, server_default=None)
    op.create_check_constraint(
        op.f("ck_result_settings_name_order"),
        "result_settings",
        "name_order IN ('SURNAME_FIRST', 'GIVEN_FIRST')",
    )
    op.create_check_constraint(
        op.f("ck_result_settings_signatures"),
        "result_settings",
        "signatures IN ('NONE', 'LINES', 'PICTURES')",
    )
    op.create_table(
        "issued_transcripts",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("student_id", sa.Uuid(), nullable=False),
        sa.Column("code", sa.Uuid(), nullable=False),
        sa.Column("digest", sa.String(64), nullable=False),
        sa.Column("issued_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("card_ids", postgresql.ARRAY(sa.Uuid()), nullable=False),
        sa.Column("transcript", postgresql.JSONB(), nullable=False),
        sa.ForeignKeyConstraint(
            ["student_id"], ["students.id"], name=op.f("fk_issued_transcripts_student_id")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_issued_transcripts")),
        sa.UniqueConstraint("student_id", "digest", name=op.f("uq_issued_transcripts_student_id_digest")),
        sa.UniqueConstraint("code", name=op.f("uq_issued_transcripts_code")),
    )
