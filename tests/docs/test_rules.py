"""The pages of docs/rules: ids, sections and their tests; the pages of docs/why that they lead to."""

from __future__ import annotations

import re
from collections import Counter
from itertools import pairwise
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
RULES, WHY = ROOT / "docs" / "rules", ROOT / "docs" / "why"
PAGES = sorted(set(RULES.glob("*.md")) - {RULES / "README.md"})
REASONS = sorted(set(WHY.glob("*.md")) - {WHY / "README.md"})
FEATURES = ROOT / "tests" / "features"

MOST_RULES = 20  # of a section
MOST_BY_REVIEW = 0.05  # of all rules
MOST_WORDS = 250  # of a reason

RULE = re.compile(r"^- \*\*([a-z-]+-\d+)\*\* (.+(?:\n {2}.+)*)$", re.M)
ITEM = re.compile(r"^[-*] ", re.M)
TESTS = re.compile(r"^Tests: (.+(?:\n.+)*)$", re.M)
GONE = re.compile(r"^Gone: (.+(?:\n.+)*)$", re.M)
ID = re.compile(r"[a-z-]+-\d+")
PATH = re.compile(r"`([^`\n]+)`")
WHY_LINK = re.compile(r"\]\(\.\./why/([^)#\s]+)\)")

each_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
each_reason = pytest.mark.parametrize("page", REASONS, ids=lambda page: page.stem)


def read(page):
    return page.read_text(encoding="utf-8")


def sections(page):
    """The sections of a page: the text of each by its heading."""
    parts = re.split(r"^## (.+)$", read(page), flags=re.M)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def rules(text):
    """The rules of a text: the ids in their order, each with its words."""
    return RULE.findall(text)


def removed_ids(page):
    """The ids of the rules that have left a page."""
    return ID.findall("".join(re.sub(r"\(.*?\)", "", ids) for ids in GONE.findall(read(page))))


def named_tests(text):
    """The modules and folders that a section names as the tests of its rules."""
    return [path for paths in TESTS.findall(text) for path in PATH.findall(paths)]


def test_the_list_has_each_page_of_rules():
    listed = set(re.findall(r"\]\(([\w-]+)\.md\)", read(RULES / "README.md")))

    assert listed == {page.stem for page in PAGES}


@each_page
def test_each_item_of_a_page_is_a_rule_of_a_section(page):
    in_sections = [rule for text in sections(page).values() for rule in rules(text)]

    assert len(ITEM.findall(read(page))) == len(in_sections) > 0


@each_page
def test_an_id_is_given_once_with_the_prefix_of_the_page_and_leaves_its_number(page):
    given = [name for name, _ in rules(read(page))] + removed_ids(page)

    assert [name for name, times in Counter(given).items() if times > 1] == []
    assert sorted(given, key=number) == [f"{page.stem}-{place + 1}" for place in range(len(given))]


@each_page
def test_ids_count_up_within_a_section(page):
    for title, text in sections(page).items():
        ids = [name for name, _ in rules(text)]
        assert [later for first, later in pairwise(ids) if number(first) >= number(later)] == [], title


def number(name):
    return int(name.rpartition("-")[2])


@each_page
def test_a_section_has_rules_and_no_more_than_twenty(page):
    many = {title: len(rules(text)) for title, text in sections(page).items()}

    assert {title: count for title, count in many.items() if not 1 <= count <= MOST_RULES} == {}


@each_page
def test_a_section_names_its_tests_and_they_are_there(page):
    for title, text in sections(page).items():
        assert named_tests(text), title
        lost = [path for path in named_tests(text) if not (ROOT / path).exists() or path[:6] != "tests/"]
        assert lost == [], title


def test_few_rules_are_held_by_review_alone():
    words = [words for page in PAGES for _, words in rules(read(page))]
    by_review = [rule for rule in words if rule.rstrip(".").endswith("(by review)")]

    assert len(by_review) <= MOST_BY_REVIEW * len(words)


def test_each_test_module_of_features_is_named_by_a_section():
    named = {ROOT / path for page in PAGES for text in sections(page).values() for path in named_tests(text)}
    modules = [file for file in FEATURES.rglob("test_*.py") if not named & {file, *file.parents}]

    assert [str(file.relative_to(ROOT)) for file in sorted(modules)] == []


@each_reason
def test_a_reason_is_dated_short_and_led_to_by_a_rule(page):
    text = read(page)
    leading = {name for rule_page in PAGES for name in WHY_LINK.findall(read(rule_page))}

    assert re.match(r"# .+\n\nDecided \d{4}-\d{2}-\d{2}\.\n\n", text)
    assert len(text.split()) <= MOST_WORDS + 20  # the title and the date
    assert page.name in leading
