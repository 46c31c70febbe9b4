"""Indexes that searches read: the pairs of neighbouring characters of names, without regard to case and diacritics."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "t0010"
down_revision = "t0009"
branch_labels = None
depends_on = None

_WHOLE = "ɓɗƙƴǝɛɔŋøđł\u0131ƁƊƘƳƎƐƆŊØĐŁ\u2018\u2019\u02bc"
_PLAIN = "bdkyeeonodlibdkyeeonodl" + 3 * "''"

_SEARCHED = {
    "students": "admission_number || ' ' || coalesce(middle_name, '')",
    "users": "username || ' ' || first_name || ' ' || last_name",
}


def upgrade() -> None:
    """Apply the change."""
    for table, text in _SEARCHED.items():
        op.create_index(
            f"ix_{table}_search",
            table,
            [sa.literal_column(_pairs(text))],
            postgresql_using="gin",
            postgresql_with={"gin_pending_list_limit": 256},
        )


def _pairs(text: str) -> str:
    letters = rf"regexp_replace(normalize({text}, NFD), '[\u0300-\u036f\u0001]', '', 'g')"
    folded = f"translate(lower({letters}), '{_WHOLE}', '{_PLAIN}')"
    return f"({_divided(folded)} || {_divided(f'substr({folded}, 2)')})"


def _divided(text: str) -> str:
    return rf"string_to_array(regexp_replace({text}, '(..)(?=.)', '\1' || chr(1), 'g'), chr(1))"
