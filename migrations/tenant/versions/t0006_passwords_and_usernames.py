"""Usernames that are unique without regard to case, passwords that others gave, and what a school has switched on.

Of two accounts whose names differ in case alone, the older gets the plain key. The later one gets its id behind it and
is found by exactly its name.
"""

from __future__ import annotations

import unicodedata

import sqlalchemy as sa
from alembic import op

revision = "t0006"
down_revision = "t0005"
branch_labels = None
depends_on = None

# Those that are not shown (Default_Ignorable_Code_Point).
_NOT_SHOWN = "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u3164\ufeff\uffa0" + "".join(
    chr(code)
    for first, last in (
        (0x180B, 0x180F),
        (0x200B, 0x200F),
        (0x202A, 0x202E),
        (0x2060, 0x206F),
        (0xFE00, 0xFE0F),
    )
    for code in range(first, last + 1)
)


def _literal(text: str) -> str:
    """Write a text as a literal of SQL in plain ASCII: what is not shown, or runs from right to left, is seen there."""
    return "E'" + "".join(c if c.isascii() else f"\\u{ord(c):04x}" for c in text) + "'"


def _key() -> str:
    """Write the SQL that folds a username.

    In here, as each look at the history imports this file, and few go through all characters.
    """
    # The characters of Unicode 3.2 whose folding is one other: a set that never changes (Unicode, "Case Folding
    # Stability"), whichever Unicode Python knows. Of the others only ß becomes two, once all are decomposed.
    letters = [
        letter
        for letter in map(chr, range(0x80, 0x1_0000))
        if (folded := letter.casefold()) != letter
        and len(folded) == 1
        and unicodedata.ucd_3_2_0.category(letter) != "Cn"
        and unicodedata.normalize("NFKD", letter) == letter
    ]
    capitals = "ABCDEFGHIJKLMNOPQRSTUVWXYZ" + "".join(letters)
    small = "".join(letter.casefold() for letter in capitals)
    translated = (
        f"translate(normalize(username, NFKD), {_literal(capitals + _NOT_SHOWN)},\n{_literal(small)})"
    )
    return f"normalize(replace({translated}, {_literal('ß')}, 'ss'), NFKC)"


_SET_KEYS = """\
UPDATE users SET username_key = keyed.key || CASE WHEN keyed.place = 1 THEN '' ELSE '#' || users.id END
FROM (
    SELECT id, key, row_number() OVER (PARTITION BY key ORDER BY created_at, id) AS place
    FROM (
        SELECT id, created_at, CASE WHEN length(folded) <= 240 THEN folded
            ELSE left(folded, 176) || encode(sha256(convert_to(folded, 'UTF8')), 'hex') END AS key
        FROM (SELECT id, created_at, KEY AS folded FROM users) AS named
    ) AS bounded
) AS keyed
WHERE keyed.id = users.id"""


def upgrade() -> None:
    """Add the columns and the table; accounts that are there have passwords of their own."""
    op.create_table(
        "school_settings",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("must_change_password_since", sa.DateTime(timezone=True), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_school_settings")),
    )
    op.execute(
        "INSERT INTO school_settings (id)\n"
        "SELECT gen_random_uuid()\n"
        "WHERE EXISTS (SELECT FROM counters WHERE name = 'students')"
    )
    op.add_column("users", sa.Column("password_given_at", sa.DateTime(timezone=True), nullable=True))
    op.add_column("users", sa.Column("username_key", sa.Text(), server_default="", nullable=False))
    op.execute(_SET_KEYS.replace("KEY", _key()))
    op.alter_column("users", "username_key", server_default=None)
    op.create_unique_constraint(op.f("uq_users_username_key"), "users", ["username_key"])
