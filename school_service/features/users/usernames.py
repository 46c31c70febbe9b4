"""Usernames made of people's names."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Container
from itertools import chain, count

from school_service.core.columns import NAME_LENGTH

FALLBACK_STEM = "user"
"""The stem of a username for a name of which nothing can be written in plain letters."""
# Leaves room for a number behind it.
MAX_STEM_LENGTH = NAME_LENGTH - 10

# Letters that Unicode does not decompose, those of Hausa and Kanuri first.
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


def plain(name: str) -> str:
    """Write a name in the letters a to z and digits alone: `yaradua` for Yar'Adua, nothing for 王."""
    letters = unicodedata.normalize("NFKD", name).casefold().translate(_PLAIN)
    return re.sub(r"[^a-z0-9]", "", unicodedata.normalize("NFKD", letters))


def stem_of(first_name: str, last_name: str) -> str:
    """Make the username of somebody, before it is known whether it is taken: `adaeze.okafor`."""
    parts = [part for part in (plain(first_name), plain(last_name)) if part]
    return ".".join(parts)[:MAX_STEM_LENGTH].rstrip(".") or FALLBACK_STEM


def first_free(stem: str, taken: Container[str]) -> str:
    """Find the first of `adaeze.okafor`, `adaeze.okafor2`, `adaeze.okafor3`, … that is not taken."""
    names = chain([stem], (f"{stem}{number}" for number in count(2)))
    return next(name for name in names if name not in taken)
