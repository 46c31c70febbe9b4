"""Guardians as people, each of whom may look after several students.

Who stands in the record of a student becomes a person: students whose guardians are equal to the letter, and have a
phone number or an e-mail address, have one guardian. The columns that held them are emptied, and dropped with the next
release.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "t0022"
down_revision = "t0014"
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


def upgrade() -> None:
    """Add the tables, and move the guardians into them."""
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


def _folded(text: str) -> str:
    letters = rf"regexp_replace(normalize({text}, NFD), '[\u0300-\u036f\u0001]', '', 'g')"
    return f"translate(lower({letters}), '{_WHOLE}', '{_PLAIN}')"


def _pairs(text: str) -> str:
    return f"({_divided(_folded(text))} || {_divided(f'substr({_folded(text)}, 2)')})"


def _divided(text: str) -> str:
    return rf"string_to_array(regexp_replace({text}, '(..)(?=.)', '\1' || chr(1), 'g'), chr(1))"
