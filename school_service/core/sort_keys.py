"""Sorting names as a person looks them up, for any locale of the server: by a key with marks and case folded.

The key is made of IMMUTABLE functions, and compared code point by code point (collation C): so a generated column may
hold it, and an index of the column serves the order. To change the key, a migration makes the columns anew.
"""

from __future__ import annotations

import unicodedata
from functools import reduce
from itertools import chain
from typing import Any

from sqlalchemy import ColumnElement, case, func
from sqlalchemy import text as keyword

# Characters without a letter of their own, once letters and marks are apart (NFKD): the marks of Latin, Greek,
# Cyrillic, Hebrew, Arabic and Adlam, ZWNJ and ZWJ, and selectors of a letter's form.
_MARKS = (
    r"[\u0300-\u036f\u0483-\u0487\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0610-\u061a\u064b-\u065f\u0670"
    r"\u1ab0-\u1aff\u1dc0-\u1dff\u200c\u200d\u20d0-\u20f0\ufe00-\ufe0f\ufe20-\ufe2f\U0001e944-\U0001e94a]"
)
# Letters with hooks and strokes, which do not decompose, by the letter that they are sorted as; and the apostrophes
# that telephones write.
_SORTED_AS = {
    "b": "ɓƀ",
    "d": "ɗɖđð",
    "e": "əǝɛ",
    "f": "ƒ",
    "g": "ɠɣǥ",
    "h": "ħ",
    "i": "ɨɩ\u0131",
    "k": "ƙ",
    "l": "ł",
    "n": "ɲŋ",
    "o": "øɔɵ",
    "r": "ɍ",
    "t": "ŧƭ",
    "u": "ʉʊ",
    "v": "ʋ",  # noqa: RUF001 -- a letter of Ewe
    "y": "ƴ",
    "z": "ƶ",
    "'": "\u2018\u2019\u02bc",
}
_PLAIN = {letter: plain for plain, letters in _SORTED_AS.items() for letter in letters}
# Letters that are sorted as two.
_LIGATURES = {"ß": "ss", "æ": "ae", "œ": "oe", "þ": "th"}
# Where the capitals are of Latin, Greek, Cyrillic, Armenian and Adlam: which letter is small to which is as Unicode
# promised never to change it.
_CASED = chain(range(0x80, 0x250), range(0x370, 0x530), range(0x531, 0x557), range(0x1E900, 0x1E922))


def _translated() -> dict[str, str]:
    """Map each letter, neither ASCII nor decomposed, to the letter it is sorted as."""
    small = {
        letter: letter.casefold()
        for letter in map(chr, _CASED)
        if len(letter.casefold()) == 1
        and letter.casefold() != letter
        and unicodedata.normalize("NFKD", letter) == letter
    }
    return {**_PLAIN, **{capital: _PLAIN.get(letter, letter) for capital, letter in small.items()}, "ẞ": "ß"}


# Characters of a key: an index takes any key of so many.
_MOST = 400

_TRANSLATED = _translated()
_FROM, _TO = "".join(_TRANSLATED), "".join(_TRANSLATED.values())


def sort_key(name: ColumnElement[str], *names: ColumnElement[str]) -> ColumnElement[str]:
    """Make the sort key of a name; of several names, by the first, then by the next.

    Names differing only in marks, case or the form of letters have the same key.
    """
    # A name goes before all names that begin with it, with any next name.
    whole: Any = reduce(lambda before, after: before.op("||")(func.chr(1)).op("||")(after), names, name)
    letters = func.regexp_replace(func.normalize(whole, keyword("NFKD")), _MARKS, "", "g")
    small = func.lower(letters.collate("C"))
    folded: Any = func.translate(small, _FROM, _TO)
    for letter, plain in _LIGATURES.items():
        folded = func.replace(folded, letter, plain)
    # Most names are plain ASCII, or are once their marks are left out: the many other letters take the longest.
    small_of_plain = case(
        (_is_ascii(whole), func.lower(whole.collate("C"))), (_is_ascii(letters), small), else_=folded
    )
    return func.left(small_of_plain, _MOST)


def _is_ascii(text: Any) -> ColumnElement[bool]:
    condition: ColumnElement[bool] = func.octet_length(text) == func.length(text)
    return condition
