"""docs/contributing.md: a first view needs at most eight concepts, each where the table says."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
SECTION = (
    (ROOT / "docs" / "contributing.md").read_text(encoding="utf-8").partition("\n## Before a first view\n")[2]
)
ROWS = re.findall(r"^\| (.+?) \| (`.+?) \| ", SECTION.partition("\n## ")[0], re.M)
MOST = 8


def test_a_first_view_needs_eight_concepts_at_most():
    assert 0 < len(ROWS) <= MOST


def test_each_concept_is_where_the_table_says():
    for concept, where in ROWS:
        sources = "".join(
            (ROOT / path).read_text(encoding="utf-8") for path in re.findall(r"`([\w/]+\.py)`", where)
        )
        names = [name.removeprefix("db.") for name in re.findall(r"`([\w.]+)`", concept)]
        missing = [name for name in names if not re.search(rf"\b{name}\b", sources)]
        assert missing == [], where


def test_the_views_of_classrooms_use_every_name_of_the_table():
    area = ROOT / "school_service" / "features" / "school" / "classrooms"
    sources = "".join(path.read_text(encoding="utf-8") for path in area.glob("*.py"))

    used = [name for concept, _ in ROWS for name in re.findall(r"`(\w+)`", concept)]
    assert [name for name in used if not re.search(rf"\b{name}", sources)] == []
