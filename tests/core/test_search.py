"""Search: parts of words in any order, folded, and found by the pairs that the index has."""

from __future__ import annotations

import pytest
from sqlalchemy import ARRAY, Text, column, func, literal, select

from school_service.core.database import db
from school_service.core.search import matches, may_match
from school_service.web.transactions import in_transaction
from tenants.connections.binding import SchoolBinding


@pytest.fixture(autouse=True)
def in_school(api):
    """A transaction in a school."""
    with api.app.app_context(), in_transaction(SchoolBinding(api.school, read_only=True)):
        yield


def judged(cases):
    """Judge (search, text) cases in one statement: whether each matches, and may match by all and the longest word."""
    searches, texts = zip(*cases, strict=True)
    arrays = (literal([*each], ARRAY(Text)) for each in (searches, texts))
    columns = column("sought", Text), column("read", Text)
    given = func.unnest(*arrays).table_valued(*columns, with_ordinality="place").render_derived()
    sought, read = given.c.sought, given.c.read
    judging = matches(sought, read), may_match(sought, read), may_match(sought, read, longest=True)
    rows = db.session.execute(select(*judging).select_from(given).order_by(given.c.place))
    return [tuple(row) for row in rows]


@pytest.mark.parametrize("text", ["ada o'eze a/1", "abcdefg hij", "nnnn nn", "x", "日本 語𠮷野"])
def test_every_part_of_every_word_is_found(text):
    cases = [
        (word[start:end], text)
        for word in text.split(" ")
        for start in range(len(word))
        for end in range(start + 1, len(word) + 1)
    ]

    assert set(judged(cases)) == {(True, True, True)}


@pytest.mark.parametrize(
    ("search", "text"),
    [
        ("Ngozi", "Ngọzi"),
        ("NGỌ́ZI", "ngozi"),
        ("ife", "Ifẹ\u0301"),
        ("isil", "I\u015f\u0131l"),
        ("ibrahim", "\u0130brahim"),
        ("danladi karfi", "Ƙarfi Ɗanladi"),
        ("ŊƆƎ", "noe"),
        ("o'neil", "O\u2019Neil"),
        ("a\u0001da", "Ada"),
        ("", "Ada"),
        ("\u0301", "Ada"),
        ("   ", "Ada"),
        ("a_b %", "a_b 100%"),
        ("\\", "a\\b"),
    ],
)
def test_both_sides_are_folded(search, text):
    assert judged([(search, text)]) == [(True, True, True)]


@pytest.mark.parametrize(
    ("search", "text"),
    [
        ("ngozi", "ngoz i"),
        ("ada bola", "ada"),
        ("a_b", "axb"),
        ("a%b", "axxb"),
        ("adaeze", "ada eze"),
        ("\\", "ab"),
        # All of its pairs are there, and not the word.
        ("abab", "ab xbax"),
    ],
)
def test_a_text_that_is_no_part_is_not_found(search, text):
    ((matched, _, _),) = judged([(search, text)])
    assert not matched


def test_the_pairs_leave_out_people_without_all_of_them():
    assert judged([("ngozi", "Ngo Ozim"), ("ngozi eze", "ngozi"), ("ezekiel ng", "ezekiel")]) == [
        (False, True, True),
        (False, False, True),
        (False, False, True),
    ]
