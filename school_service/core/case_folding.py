"""Texts that are the same but for case and form: how usernames and passwords are compared."""

from __future__ import annotations

import re
import unicodedata

# Characters that are not shown (Unicode, Default_Ignorable_Code_Point).
_NOT_SHOWN = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164"
    "\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufff8\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)


def casefolded(text: str) -> str:
    """Fold a text by NFKC and case (Unicode, section 3.13, NFKC_Casefold).

    What differs in case, in the form of its letters or in characters that are not shown is then the same: `Àda`,
    `ÀDA` written with a combining accent, and both in full-width letters. The result may be empty, or longer than the
    text.
    """
    letters = unicodedata.normalize("NFKD", text).casefold()
    return unicodedata.normalize("NFKC", _NOT_SHOWN.sub("", letters))
