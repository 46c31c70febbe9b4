"""docs/glossary.md names modules that exist, in an order in which a word is found."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8")
SECTIONS = {
    title: re.findall(r"^\| (?!word \|)([^|]+) \| ([^|]+) \| ([^|]+) \|$", body, re.M)
    for title, body in re.findall(r"^## (Words of .+)\n((?:(?!## ).*\n)*)", PAGE, re.M)
}
WORDS = [row for rows in SECTIONS.values() for row in rows]


@pytest.mark.parametrize("section", SECTIONS)
def test_words_are_in_alphabetical_order_and_each_is_there_once(section):
    words = [word for word, _, _ in SECTIONS[section]]

    assert len(words) > 25
    assert words == sorted(set(words))


@pytest.mark.parametrize(("word", "meaning", "where"), WORDS, ids=[word for word, _, _ in WORDS])
def test_a_word_is_explained_in_sentences_and_has_a_module(word, meaning, where):
    places = re.findall(r"`([^`]+)`", where)

    assert meaning[0].isupper()
    assert meaning.rstrip(")").endswith(".")
    assert places
    assert [place for place in places if not (ROOT / place).exists()] == []
