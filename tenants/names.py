"""Names of schools, people and anything else: their length, and the characters permitted in them."""

from __future__ import annotations

import re
import unicodedata

LONGEST = 120  # characters of a name
TYPED_LENGTH = 4
"""The most characters typed for a letter: itself and three marks. Unicode takes no letter apart into more (NFD)."""
TYPED_BYTES = 4 * TYPED_LENGTH
"""The same in bytes of UTF-8, for a text measured before it is decoded."""

# Spaces, and letters and marks that are not shown (Unicode, Default_Ignorable_Code_Point): the fillers of Hangul above
# all, with which people write names that look empty. And the pattern of Braille without dots.
_BLANK = re.compile(
    r"[\s\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180d\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]++"
)

_NOT_STORED = re.compile("[\0\ud800-\udfff]")

# Zero width non-joiner and joiner: Persian and Indian scripts are not written well without, nor are many emoji.
_JOINERS = "\u200c\u200d"


def is_too_long(text: str, most: int) -> bool:
    """Tell of a text from outside whether it has more than `most` letters, in any way of typing them.

    It is asked before anything else looks at the text, and takes no time. A text let through has at most four
    characters for each letter (a Mac sends letters and marks apart), and so sixteen bytes of UTF-8, and few marks
    without a letter: to put n marks in order takes Unicode's algorithm n² steps, and the interpreter does nothing else
    meanwhile. Its length proper is the length of the `composed` text.
    """
    if len(text) <= most:
        return False
    return len(text) > TYPED_LENGTH * most or (not text.isascii() and _marks_to_spare(text) > most)


def composed(text: str, most: int = LONGEST, *, trim: bool = True) -> str:
    """Write a text as it is stored: without space around it, and its letters composed with their marks (NFC).

    A text too long for `most` characters stays as it is: it is never stored.
    """
    if is_too_long(text, most):
        return text
    return unicodedata.normalize("NFC", text.strip() if trim else text)


def _marks_to_spare(text: str) -> int:
    """Count the marks that no letter takes: they stay characters of their own when the text is composed."""
    spare = in_a_row = 0
    for letter in text:
        in_a_row = in_a_row + 1 if unicodedata.combining(letter) else 0
        spare += in_a_row >= TYPED_LENGTH
    return spare


def is_visible(text: str) -> bool:
    """Tell whether a text has no character by which two lookalikes differ, and does not look empty.

    Characters of Unicode's category C (control, format, surrogate, private use, unassigned) and the separators of lines
    and paragraphs are refused. ZWNJ and ZWJ may stand within a word: between letters, marks, digits or symbols. A text
    of invisible letters and marks alone is refused, too. The empty text is for others to judge.
    """
    if _BLANK.fullmatch(text):
        return False
    padded = f" {text} "
    return not any(
        _is_hidden(letter) and not (letter in _JOINERS and _is_of_word(before) and _is_of_word(after))
        for before, letter, after in zip(padded, text, padded[2:], strict=False)
    )


def is_storable(text: str) -> bool:
    """Tell whether PostgreSQL takes a text: no NUL, no half of a surrogate pair (Python's reading of broken UTF-8)."""
    return not _NOT_STORED.search(text)


def _is_hidden(letter: str) -> bool:
    category = unicodedata.category(letter)
    return category[0] == "C" or category in {"Zl", "Zp"}


def _is_of_word(letter: str) -> bool:
    return unicodedata.category(letter)[0] in "LMNS"
