"""Usernames: their comparison, and their making from people's names."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Container, Iterator
from itertools import chain, count

from school_service.core.columns import NAME_LENGTH
from school_service.core.texts import casefolded

MAX_KEY_LENGTH = 240
"""The most characters of a username's key; folding can make a text eighteen times as long."""
_DIGEST_LENGTH = 64

FALLBACK_STEM = "user"
"""The stem of a username for a name without anything to write in plain letters."""
# Shorter than a name may be, so that a number can follow.
MAX_STEM_LENGTH = NAME_LENGTH - 10

# Letters that Unicode does not decompose, Hausa's and Kanuri's first.
_PLAIN = str.maketrans(
    {
        "ɓ": "b",
        "ɗ": "d",
        "ƙ": "k",
        "ƴ": "y",
        "ǝ": "e",
        "ə": "e",
        "ŋ": "n",
        "æ": "ae",
        "œ": "oe",
        "ø": "o",
        "đ": "d",
        "ð": "d",
        "þ": "th",
        "ł": "l",
        "\u0131": "i",
    }
)


def username_key(username: str) -> str:
    """Write a username for comparison: two names differing in case or form alone have the same key (NFKC_Casefold).

    A key longer than MAX_KEY_LENGTH is cut, and ends in a SHA-256 of all of it: an index takes no longer ones.
    """
    key = casefolded(username)
    if len(key) <= MAX_KEY_LENGTH:
        return key
    return key[: MAX_KEY_LENGTH - _DIGEST_LENGTH] + hashlib.sha256(key.encode()).hexdigest()


def plain(name: str) -> str:
    """Write a name in the letters a to z and digits alone: `yaradua` for Yar'Adua, nothing for 王."""
    letters = unicodedata.normalize("NFKD", name).casefold().translate(_PLAIN)
    return re.sub(r"[^a-z0-9]", "", unicodedata.normalize("NFKD", letters))


def stem_of(first_name: str, last_name: str) -> str:
    """Make the username of somebody, before it is known whether it is taken: `adaeze.okafor`."""
    parts = [part for part in (plain(first_name), plain(last_name)) if part]
    return ".".join(parts)[:MAX_STEM_LENGTH].rstrip(".") or FALLBACK_STEM


def written_as(stem: str) -> Iterator[str]:
    """Write the names of a stem in their order: `adaeze.okafor`, `adaeze.okafor2`, `adaeze.okafor3`, …"""
    return chain([stem], (f"{stem}{number}" for number in count(2)))


def without_number(name: str) -> str:
    """Leave out the digits at the end of a name: names of one stem are alike then."""
    return name.rstrip("0123456789")


def first_free(stem: str, taken: Container[str]) -> str:
    """Find the first of the names of a stem with a key not taken; in plain letters a name is its own key."""
    return next(name for name in written_as(stem) if name not in taken)
