"""Searching names as a person types them: parts of words in any order, without regard to case and diacritics.

PostgreSQL indexes parts of words by an extension alone (pg_trgm), and a school's schema needs none. So an index has the
pairs of neighbouring characters of each text (GIN): a text with all pairs of a word may have the word, and only such
texts are looked at. All is written with IMMUTABLE functions, as an index demands. The index and the search are folded
alike: to change how, a migration makes the indexes anew.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import ARRAY, ColumnElement, Index, Select, Text, func, literal, select, true
from sqlalchemy import text as keyword

# Combining marks, once letters are apart from theirs (NFD); and the character that stands between pairs.
_LEFT_OUT = r"[\u0300-\u036f\u0001]"
_BETWEEN = func.chr(1)
# Letters that do not decompose, with hooks or strokes, and the apostrophes that telephones write. Capitals too, which
# lower() leaves as they are in a database whose locale is C.
_PLAIN = {
    **dict(zip("ɓɗƙƴǝɛɔŋøđł\u0131", "bdkyeeonodli", strict=True)),
    **dict(zip("ƁƊƘƳƎƐƆŊØĐŁ", "bdkyeeonodl", strict=True)),
    **dict.fromkeys("\u2018\u2019\u02bc", "'"),
}

# Kilobytes of new entries that an index has apart until they are merged. By default it is 4 MB: every search reads them
# all, and the writer of the last of them waits for the merger.
_PENDING = 256


def search_index(name: str, text: ColumnElement[str]) -> Index:
    """Make the index of a table for `may_match`, of the same text, never null."""
    options = {"gin_pending_list_limit": _PENDING}
    return Index(name, _pairs(text), postgresql_using="gin", postgresql_with=options)


def matches(search: Any, text: ColumnElement[str]) -> ColumnElement[bool]:
    """Tell whether each word of `search` is part of a text; `%` and `_` mean themselves.

    No word has a space in it: of texts joined by spaces, it is part of one.
    """
    words = _words(search).subquery()
    escaped = func.regexp_replace(words.c.word, r"([\\%_])", r"\\\1", "g")
    # In an array of its own, the patterns are made once, and not for each row.
    patterns = func.array(select(func.concat("%", escaped, "%")).scalar_subquery())
    condition: ColumnElement[bool] = folded(text).op("LIKE", is_comparison=True)(func.all(patterns))
    return condition


def may_match(search: Any, text: ColumnElement[str], *, longest: bool = False) -> ColumnElement[bool]:
    """Tell, by the index of a text, whether each word of `search` may be part of it, or its `longest` word.

    The longest alone is for texts of several tables: any of them may have it.
    """
    words = _words(search)
    if longest:
        words = words.order_by(func.length(words.selected_columns.word).desc()).limit(1)
    sought = words.subquery()
    starts = func.generate_series(1, func.length(sought.c.word) - 1).table_valued("start").render_derived()
    pairs = select(func.substr(sought.c.word, starts.c.start, 2)).select_from(sought.join(starts, true()))
    condition: ColumnElement[bool] = _pairs(text).op("@>", is_comparison=True)(
        func.array(pairs.scalar_subquery())
    )
    return condition


def _words(search: Any) -> Select[Any]:
    word = func.regexp_split_to_table(folded(search), r"\s+").column_valued("word")
    return select(word.label("word"))


def folded(text: Any) -> Any:
    """Fold a text by case and diacritics, as searches compare it."""
    letters = func.regexp_replace(func.normalize(text, keyword("NFD")), _LEFT_OUT, "", "g")
    return func.translate(func.lower(letters), "".join(_PLAIN), "".join(_PLAIN.values()))


def _pairs(text: Any) -> Any:
    """Make the array of all pairs of neighbouring characters of a text, folded."""
    whole = folded(text)
    # Those that begin at the first, third, fifth character, and those that begin at the second, fourth, sixth.
    return _divided(whole).op("||")(_divided(func.substr(whole, 2)))


def _divided(text: Any) -> Any:
    """Divide a text into pairs of characters; of an odd number, the last is alone."""
    between = literal(r"\1", Text).op("||")(_BETWEEN)
    return func.string_to_array(
        func.regexp_replace(text, "(..)(?=.)", between, "g"), _BETWEEN, type_=ARRAY(Text)
    )
