"""The words for a gender: one vocabulary of imports, forms of students, papers and exports."""

from __future__ import annotations

FEMALE, MALE = GENDERS = ("FEMALE", "MALE")

WORDS = {
    **dict.fromkeys(("f", "female", "girl", "woman"), FEMALE),
    **dict.fromkeys(("m", "male", "boy", "man"), MALE),
}
"""The gender of each word; the words are in small letters."""


def listed_gender(written: str) -> str | None:
    """Find the gender of a word: `F`, `girl` and `Female.` are FEMALE; None for any other text."""
    return WORDS.get(written.strip().rstrip(".").casefold())
