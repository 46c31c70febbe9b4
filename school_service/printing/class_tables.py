"""The table of subjects of all cards of a class, which look alike: fitted once, and stored with a publication."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from school_service.printing.card_subjects import columns_of, heads_of, subjects_of
from school_service.printing.card_table import table_of, teachers_of
from school_service.printing.table_fit import fit, pieces_of
from school_service.printing.wording import Document, Words

_WHOLE = 24  # letters of a word that is not broken


def class_table(cards: Sequence[Document], rules: Document) -> dict[str, Any] | None:
    """Fit the table of a class's cards, made by `rules`; None without a subject on any.

    `points` and `total` are those in the headings, `rows` the most of a card, the sizes in points.
    """
    heads = heads_of(cards, rules)
    with_heads = {**rules, "table": heads}
    subjects = [subjects_of(card, with_heads) for card in cards]
    if not any(subjects):
        return None
    every = [subject for of_card in subjects for subject in of_card]
    columns = table_of(columns_of(cards[0], with_heads), every)
    rows = max(map(len, subjects))
    cells = [[*map(whole_words, column.cells)] for column in columns]
    teachers = [teachers_of(subject) for subject in every]
    return {**heads, "rows": rows, **fit(columns, cells, teachers, rows)._asdict()}


def whole_words(text: Words) -> Words:
    """Join the parts of a text whose words are all short enough to stand in one line of a column."""
    if isinstance(text, str):
        return text
    joined = "".join(text)
    return joined if all(len(piece) <= _WHOLE for piece in pieces_of(joined)) else text
