"""Submissions by arm: one of a cohort subject, a batch and a term, and the batches in the row of each assessment.

What was submitted was so for every arm of its cohort: the row that is there becomes that of the first, whose id is the
cohort's, and each other arm gets one like it.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "t0014"
down_revision = "t0013"
branch_labels = None
depends_on = None

_OF_FIRST_ARM = "UPDATE submissions SET batch_id = cohort_id"

# An id of its own that follows from what the row is of: the same wherever the migration runs.
_OF_OTHER_ARMS = """\
INSERT INTO submissions
    (id, cohort_subject_id, batch_id, cohort_id, session_id, term_id, submitted_at, submitted_by, submitted_by_name)
SELECT CAST(md5(CAST(submissions.id AS text) || CAST(batches.id AS text)) AS uuid), submissions.cohort_subject_id,
    batches.id, submissions.cohort_id, submissions.session_id, submissions.term_id, submissions.submitted_at,
    submissions.submitted_by, submissions.submitted_by_name
FROM submissions JOIN batches ON batches.cohort_id = submissions.cohort_id
WHERE batches.id <> submissions.batch_id"""

_OF_ASSESSMENTS = """\
UPDATE assessments SET submitted_batches = ARRAY(
    SELECT batches.id FROM batches WHERE batches.cohort_id = assessments.cohort_id ORDER BY batches.id)
WHERE submission_id IS NOT NULL"""


def upgrade() -> None:
    """Add the columns, give each arm its submission, and drop what refers to the submission of all arms."""
    op.add_column("submissions", sa.Column("batch_id", sa.Uuid(), nullable=True))
    op.add_column(
        "assessments",
        sa.Column(
            "submitted_batches",
            postgresql.ARRAY(sa.Uuid()),
            server_default=sa.text("'{}'"),
            nullable=False,
        ),
    )
    op.drop_constraint("uq_submissions_cohort_subject_id_term_id", "submissions", type_="unique")
    op.execute(_OF_FIRST_ARM)
    op.execute(_OF_OTHER_ARMS)
    op.execute(_OF_ASSESSMENTS)
    op.alter_column("submissions", "batch_id", nullable=False)
    op.create_unique_constraint(
        "uq_submissions_cohort_subject_id_batch_id_term_id",
        "submissions",
        ["cohort_subject_id", "batch_id", "term_id"],
    )
    op.create_foreign_key(
        "fk_submissions_batch_id_cohort_id",
        "submissions",
        "batches",
        ["batch_id", "cohort_id"],
        ["id", "cohort_id"],
    )
    op.create_index("ix_submissions_batch_id_cohort_id", "submissions", ["batch_id", "cohort_id"])
    op.drop_constraint("fk_assessments_submission_id_cohort_subject_id_term_id", "assessments")
    op.drop_index("ix_assessments_submission_id_cohort_subject_id_term_id", "assessments")
    op.drop_column("assessments", "submission_id")
    op.drop_constraint("uq_submissions_id_cohort_subject_id_term_id", "submissions", type_="unique")
