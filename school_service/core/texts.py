"""Texts: words of names, names on paper, folding case, names of files, positions in words. Nothing of a database."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from string import ascii_lowercase, ascii_uppercase
from typing import Any

from tenants.names import LONGEST, TYPED_LENGTH, is_too_long

SURNAME_FIRST, GIVEN_FIRST = "SURNAME_FIRST", "GIVEN_FIRST"
"""Orders of the parts of a name on paper."""

# Letters that Unicode does not take apart: the hooked ones of Hausa, and some of other languages.
_PLAIN = str.maketrans("ɓɗƙƴŋɛɔıłøđ", "bdkyneoilod")
_APOSTROPHES = frozenset("'’‘ʼʻ`´")  # noqa: RUF001 -- all that people type


def folded_words(*names: str | None) -> list[str]:
    """The words of names without case, diacritics, apostrophes and signs: `Ngọzi O'Neil-Ẹ̀ze` is ngozi, oneil, eze.

    A text too long for a name has none.
    """
    text = " ".join(name for name in names if name and not is_too_long(name, LONGEST))
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


# Characters that are not shown (Unicode, Default_Ignorable_Code_Point).
_NOT_SHOWN = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164"
    "\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufff8\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)


def casefolded(text: str, most: int = LONGEST) -> str:
    """Fold a text by NFKC and case (Unicode, section 3.13, NFKC_Casefold).

    Texts differing only in case, in the form of letters or in invisible characters become the same: `Àda`, `ÀDA`
    written with a combining accent, and both in full-width letters. The result may be empty, or longer than the text. A
    text longer than `most` characters stays as it is.
    """
    if is_too_long(text, most):
        return text
    letters = unicodedata.normalize("NFKD", text).casefold()
    return unicodedata.normalize("NFKC", _NOT_SHOWN.sub("", letters))


_ASCII_LOWER = str.maketrans(ascii_uppercase, ascii_lowercase)


def mailbox(address: str) -> str:
    """Write an e-mail address as it is compared: ASCII letters in lower case, all others to the letter.

    Folding case would make one of two mailboxes: `ß` is folded to `ss`, and the Kelvin sign to `k`.
    """
    return address.translate(_ASCII_LOWER)


MAX_FILE_NAME_LENGTH = 150  # characters


def plain_file_name(name: str) -> str:
    """Make of any text the name of a file for every system: without path or control characters, and short.

    If nothing is left but an ending, it is `file` with this ending: systems choose the program for a file by it. Of a
    name that is too long only the end is looked at.
    """
    looked_at = name[-TYPED_LENGTH * MAX_FILE_NAME_LENGTH :]
    safe = "".join(
        "-" if letter in '\\/:*?"<>|' else letter
        for letter in looked_at
        if unicodedata.category(letter)[0] != "C"
    )
    stem, dot, ending = safe.rpartition(".")
    if dot and not stem.strip(" ."):
        safe = f"file.{ending}"
    return safe.strip(" .")[-MAX_FILE_NAME_LENGTH:] or "file"


def full_name(student: Mapping[str, Any], order: str = GIVEN_FIRST) -> str:
    """Write a student's name: first, middle, last; or, with the order SURNAME_FIRST, last, first, middle."""
    names = ("first_name", "middle_name", "last_name")
    if order == SURNAME_FIRST:
        names = ("last_name", "first_name", "middle_name")
    return " ".join(student[name] for name in names if student[name])


def term_title(term: str | None, session: str, between: str = ", ") -> str:
    """Name a term and its session: the session once, where the school has named its terms with it."""
    if term is None:
        return session
    return term if session in term else f"{term}{between}{session}"


def ordinal(number: int) -> str:
    """Write a position: 1st, 2nd, 3rd, 4th, 11th to 13th, 21st, 111th."""
    ending = "th" if number % 100 in {11, 12, 13} else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"


def position_text(position: int | None, *, tied: bool = False) -> str:
    """Write a position as it is printed: `4th`, and `2nd =` if another has it too; an empty text without a position."""
    return "" if position is None else f"{ordinal(position)} =" if tied else ordinal(position)
