"""Names in NFC, and the keys that people and accounts are sorted by, without regard to marks and case.

A name that has to be unique stays as it is where its composed form is taken already.
"""

from __future__ import annotations

import unicodedata
from itertools import chain

import sqlalchemy as sa
from alembic import op

revision = "t0016"
down_revision = "t0015"
branch_labels = None
depends_on = None

_NAMES = {
    "assessments": ("name", "abbreviation"),
    "bank_accounts": (
        "bank_name",
        "account_name",
        "account_number",
        "bank_sort_code",
        "account_type",
        "employee_no",
    ),
    "classrooms": ("level",),
    "contacts": ("phone_number",),
    "employees": ("middle_name", "title", "marital_status", "blood_group", "religion", "status"),
    "grade_configurations": ("letter_grade",),
    "graduates": ("graduation_class",),
    "letterheads": ("name", "phone_number", "motto", "principal_name", "principal_title"),
    "next_of_kin": ("full_name", "relationship", "phone_number"),
    "students": ("middle_name", "guardian_full_name", "guardian_relationship", "guardian_phone_number"),
    "subjects": ("name",),
    "terms": ("display_name",),
    "users": ("first_name", "last_name", "gender"),
}
# Those that are unique, some among the rows that have something else in common.
_UNIQUE = (
    ("batches", "name", "cohort_id, "),
    ("classrooms", "name", ""),
    ("departments", "name", ""),
    ("employee_categories", "name", ""),
    ("metric_definitions", "name", "metric_type, "),
    ("positions", "name", ""),
    ("promotion_rules", "level", ""),
    ("roles", "name", ""),
    ("sessions", "name", ""),
    ("students", "admission_number", ""),
    ("subjects", "code", ""),
    ("users", "username", ""),
)
_LENGTH = 120  # the least that one of these columns takes: composing makes some texts longer

# Two accounts whose names differed in case alone were told apart by their ids: each is found by exactly its name.
_UNLESS = {"users": " AND username_key NOT LIKE '%#' || users.id"}

_MARKS = (
    r"[\u0300-\u036f\u0483-\u0487\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0610-\u061a\u064b-\u065f\u0670"
    r"\u1ab0-\u1aff\u1dc0-\u1dff\u200c\u200d\u20d0-\u20f0\ufe00-\ufe0f\ufe20-\ufe2f\U0001e944-\U0001e94a]"
)
_LETTERS = "ɓƀɗɖđðəǝɛƒɠɣǥħɨɩ\u0131ƙłɲŋøɔɵɍŧƭʉʊʋƴƶ\u2018\u2019\u02bc"  # noqa: RUF001
_SORTED_AS = "bbddddeeefggghiiiklnnooorttuuvyz'''"


def upgrade() -> None:
    """Compose the names, then add the columns, which PostgreSQL fills."""
    for table, names in _NAMES.items():
        op.execute(_composed(table, names))
    for table, name, among in _UNIQUE:
        op.execute(_composed_once(table, name, among))
    letters, sorted_as = _translated()
    for column, name in (
        ("name_sort_key", "last_name || chr(1) || first_name"),
        ("username_sort_key", "username"),
    ):
        key = sa.Computed(_sort_key(name, letters, sorted_as), persisted=True)
        op.add_column("users", sa.Column(column, sa.Text(collation="C"), key, nullable=False))
        op.create_index(f"ix_users_{column}", "users", [column])


def _composed(table: str, names: tuple[str, ...]) -> str:
    values = ", ".join(
        f"{name} = CASE WHEN length(normalize({name}, NFC)) <= {_LENGTH} THEN normalize({name}, NFC) ELSE {name} END"
        for name in names
    )
    others = " OR ".join(f"{name} <> normalize({name}, NFC)" for name in names)
    return f"UPDATE {table} SET {values}\nWHERE {others}"  # noqa: S608 -- names of our own


def _composed_once(table: str, name: str, among: str) -> str:
    """Of the rows that would have the same name, that which has it already is left, else that of the first id."""
    return f"""\
UPDATE {table} SET {name} = normalize({name}, NFC)
WHERE {name} <> normalize({name}, NFC) AND length(normalize({name}, NFC)) <= {_LENGTH} AND id IN (
    SELECT id FROM (
        SELECT id, row_number() OVER (
            PARTITION BY {among}normalize({name}, NFC) ORDER BY {name} <> normalize({name}, NFC), id
        ) AS place FROM {table}
    ) AS named WHERE place = 1
){_UNLESS.get(table, "")}"""  # noqa: S608 -- names of our own


def _translated() -> tuple[str, str]:
    """Write the letters that are neither ASCII nor decomposed, and what each is sorted as."""
    plain = dict(zip(_LETTERS, _SORTED_AS, strict=True))
    cased = chain(range(0x80, 0x250), range(0x370, 0x530), range(0x531, 0x557), range(0x1E900, 0x1E922))
    small = {
        letter: letter.casefold()
        for letter in map(chr, cased)
        if len(letter.casefold()) == 1
        and letter.casefold() != letter
        and unicodedata.normalize("NFKD", letter) == letter
    }
    found = {**plain, **{capital: plain.get(letter, letter) for capital, letter in small.items()}, "ẞ": "ß"}
    return "".join(found), "".join(found.values()).replace("'", "''")


def _sort_key(name: str, letters: str, sorted_as: str) -> str:
    apart = f"regexp_replace(normalize({name}, NFKD), '{_MARKS}', '', 'g')"
    small = f'lower({apart} COLLATE "C")'
    folded = f"translate({small}, '{letters}', '{sorted_as}')"
    for letter, plain in {"ß": "ss", "æ": "ae", "œ": "oe", "þ": "th"}.items():
        folded = f"replace({folded}, '{letter}', '{plain}')"
    return (
        f'left(CASE WHEN octet_length({name}) = length({name}) THEN lower(({name}) COLLATE "C")\n'
        f"WHEN octet_length({apart}) = length({apart}) THEN {small}\nELSE {folded} END, 400)"
    )
