"""Which report card of a student's term is in force, and who was left out of a batch's results.

Of two cards in force of a term, as of who had changed arm, the one that was published later stays in force: it is the
one that was read. Every other row keeps what it says.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "t0013"
down_revision = "t0012"
branch_labels = None
depends_on = None

_FILL = """
UPDATE report_cards SET term_id = publications.term_id,
    in_force = publications.state IN ('PUBLISHED', 'REOPENED') AND NOT EXISTS (
        SELECT 1 FROM report_cards AS other
        JOIN publications AS later ON later.id = other.publication_id
        WHERE other.student_id = report_cards.student_id AND later.term_id = publications.term_id
        AND later.state IN ('PUBLISHED', 'REOPENED')
        AND (later.published_at > publications.published_at
            OR later.published_at = publications.published_at AND later.id < publications.id))
FROM publications WHERE publications.id = report_cards.publication_id
"""


def upgrade() -> None:
    """Add the columns, the index and the table."""
    op.create_unique_constraint(op.f("uq_publications_id_term_id"), "publications", ["id", "term_id"])
    op.add_column("report_cards", sa.Column("term_id", sa.Uuid(), nullable=True))
    for name in ("in_force", "class_figures_changed"):
        op.add_column(
            "report_cards", sa.Column(name, sa.Boolean(), server_default=sa.text("false"), nullable=False)
        )
    op.execute(_FILL)
    op.alter_column("report_cards", "term_id", nullable=False)
    for name in ("in_force", "class_figures_changed"):
        op.alter_column("report_cards", name, server_default=None)
    op.create_foreign_key(
        op.f("fk_report_cards_publication_id_term_id"),
        "report_cards",
        "publications",
        ["publication_id", "term_id"],
        ["id", "term_id"],
    )
    op.create_index(
        op.f("ix_report_cards_publication_id_term_id"), "report_cards", ["publication_id", "term_id"]
    )
    op.create_index(
        "uq_report_cards_student_id_term_id",
        "report_cards",
        ["student_id", "term_id"],
        unique=True,
        postgresql_where=sa.text("in_force"),
    )
    op.create_table(
        "left_out_students",
        sa.Column("student_id", sa.Uuid(), nullable=False),
        sa.Column("batch_id", sa.Uuid(), nullable=False),
        sa.Column("term_id", sa.Uuid(), nullable=False),
        sa.ForeignKeyConstraint(["batch_id"], ["batches.id"], name=op.f("fk_left_out_students_batch_id")),
        sa.ForeignKeyConstraint(
            ["student_id"], ["students.id"], name=op.f("fk_left_out_students_student_id")
        ),
        sa.ForeignKeyConstraint(["term_id"], ["terms.id"], name=op.f("fk_left_out_students_term_id")),
        sa.PrimaryKeyConstraint("student_id", "batch_id", "term_id", name=op.f("pk_left_out_students")),
    )
    op.create_index(
        op.f("ix_left_out_students_batch_id_term_id"), "left_out_students", ["batch_id", "term_id"]
    )
    op.create_index(op.f("ix_left_out_students_term_id"), "left_out_students", ["term_id"])
