"""Comparing the names of people as they are written by different hands."""

from __future__ import annotations

import unicodedata

# Letters that Unicode does not take apart: the hooked ones of Hausa, and some of other languages.
_PLAIN = str.maketrans("ɓɗƙƴŋɛɔıłøđ", "bdkyneoilod")
_APOSTROPHES = frozenset("'’‘ʼʻ`´")  # noqa: RUF001 -- all that people type


def folded_words(*names: str | None) -> list[str]:
    """The words of names without case, diacritics, apostrophes and signs: `Ngọzi O'Neil-Ẹ̀ze` is ngozi, oneil, eze."""
    text = " ".join(filter(None, names))
    if text.isascii():
        plain = text.casefold().replace("'", "").replace("`", "")
    else:
        # Case first: a capital may fold to letters that are taken apart only then.
        taken_apart = unicodedata.normalize("NFKD", text.casefold()).translate(_PLAIN)
        plain = "".join(
            letter
            for letter in taken_apart
            if letter not in _APOSTROPHES and unicodedata.category(letter)[0] != "M"
        )
    return "".join(letter if letter.isalnum() else " " for letter in plain).split()
