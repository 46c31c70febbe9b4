"""docs/security.md names requirements, modules and tests that there are."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "security.md").read_text(encoding="utf-8")
REPORTING = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
STATES = {"met", "in part", "not met", "not applicable"}

# The requirements of levels 1 and 2 in ASVS 5.0, by section: how many of them, or which.
REQUIREMENTS: dict[str, list[int]] = {
    "2.1": [1, 2, 3],
    "2.2": [1, 2, 3],
    "2.3": [1, 2, 3, 4],
    "2.4": [1],
    "5.1": [1],
    "5.2": [1, 2, 3],
    "5.3": [1, 2],
    "5.4": [1, 2, 3],
    "6.1": [1, 2, 3],
    "6.2": [*range(1, 13)],
    "6.3": [1, 2, 3, 4],
    "6.4": [1, 2, 3, 4],
    "6.5": [1, 2, 3, 4, 5],
    "6.6": [1, 2, 3],
    "6.8": [1, 2, 3, 4],
    "7.1": [1, 2, 3],
    "7.2": [1, 2, 3, 4],
    "7.3": [1, 2],
    "7.4": [1, 2, 3, 4, 5],
    "7.5": [1, 2],
    "7.6": [1, 2],
    "8.1": [1, 2],
    "8.2": [1, 2, 3],
    "8.3": [1],
    "8.4": [1],
    "10.1": [1, 2],
    "10.2": [1, 2],
    "10.3": [1, 2, 3, 4],
    "10.4": [*range(1, 12)],
    "10.5": [1, 2, 3, 4, 5],
    "10.6": [1, 2],
    "10.7": [1, 2, 3],
    "14.1": [1, 2],
    "14.2": [1, 2, 3, 4],
    "14.3": [1, 2, 3],
    "15.1": [1, 2, 3],
    "15.2": [1, 2, 3],
    "15.3": [*range(1, 8)],
    "16.1": [1],
    "16.2": [*range(1, 6)],
    "16.3": [1, 2, 3, 4],
    "16.4": [1, 2, 3],
    "16.5": [1, 2, 3],
}

ROWS = [
    [cell.strip() for cell in line.strip("|").split(" | ")]
    for line in PAGE.splitlines()
    if re.match(r"\| \d", line)
]
NAMED = re.findall(r"`([\w/.-]+\.py)(?:::([\w:]+))?`", PAGE)


def test_every_requirement_of_these_chapters_is_judged_once():
    wanted = [f"{section}.{number}" for section, numbers in REQUIREMENTS.items() for number in numbers]

    assert [row[0] for row in ROWS] == wanted
    assert {row[2] for row in ROWS} == STATES
    assert all(len(row) == 4 for row in ROWS)


def test_every_chapter_is_there():
    chapters = [int(number) for number in re.findall(r"^## V(\d+) ", PAGE, re.MULTILINE)]

    assert chapters == [*range(1, 18)]


def test_a_met_requirement_names_its_place_and_each_other_its_reason():
    for number, _, state, where in ROWS:
        assert len(where) > 3, number
        if state == "met":
            assert "`" in where or "](" in where or "there is no" in where, f"{number} names nothing"


@pytest.mark.parametrize(("path", "test"), sorted(set(NAMED)), ids=lambda value: value or "-")
def test_every_module_and_test_that_is_named_is_there(path, test):
    file = ROOT / path

    assert file.is_file(), path
    assert path.startswith("tests/") or not test
    source = file.read_text(encoding="utf-8")
    for name in filter(None, test.split("::")):
        assert re.search(rf"^ *(?:def|class) {name}\b", source, re.MULTILINE), f"{path} has no {name}"


def test_enough_is_named():
    assert len({test for _, test in NAMED if test}) > 70
    assert len({path for path, _ in NAMED if not path.startswith("tests/")}) > 20


@pytest.mark.parametrize("page", [PAGE, REPORTING], ids=["docs/security.md", "SECURITY.md"])
def test_the_links_lead_somewhere(page):
    folder = ROOT if page is REPORTING else ROOT / "docs"
    for target in re.findall(r"\]\(([^)\s]+)\)", page):
        if not target.startswith("http"):
            path, _, heading = target.partition("#")
            file = folder / path
            assert file.is_file(), target
            if heading:
                titles = re.findall(r"^#+ (.*)$", file.read_text(encoding="utf-8"), re.MULTILINE)
                anchors = {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles}
                assert heading in anchors, target


def test_reporting_names_no_address_of_a_person():
    assert not re.search(r"\S+@\S+\.\w+", REPORTING)
    assert "docs/security.md" in REPORTING
