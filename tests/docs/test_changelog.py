"""The changelog's releases: dated, the newest is this one, and *Upgrading* is true of each."""

from __future__ import annotations

import re
from datetime import date
from pathlib import Path

import pytest

from migrations import registry, tenant
from school_service import __version__
from tenants.migrations.migration_sql import head, registry_head, registry_revisions, revisions

CHANGELOG = (Path(__file__).parents[2] / "CHANGELOG.md").read_text(encoding="utf-8")
ROWS = ("from", "registry", "schools")
LATER_ROWS = (
    "serves schools of the release before",
    "its migrated schools are served by the release before",
    "order",
    "ends",
    "back",
)


def releases() -> list[tuple[str, date, dict[str, str]]]:
    """List the releases, the newest first: version, day, and the rows of *Upgrading*."""
    sections = []
    for part in CHANGELOG.split("\n## ")[1:]:
        title, _, text = part.partition("\n")
        version, _, day = title.partition(" - ")
        upgrading = text.partition("### Upgrading\n")[2].partition("\n### ")[0]
        rows = dict(re.findall(r"^\| ([^|]+?) \| ([^|]+?) \|$", upgrading, re.M))
        sections.append((version, date.fromisoformat(day), rows))
    return sections


def span(row: str) -> tuple[str, str]:
    """Read the first and the last revision of a row."""
    named = re.findall(r"`([rt]\d{4})`", row)
    return named[0], named[-1]


def test_the_newest_release_is_this_one_and_the_others_follow_by_number_and_day():
    sections = releases()

    assert sections[0][0] == __version__
    assert len(sections) > 2
    versions = [tuple(map(int, version.split("."))) for version, _, _ in sections]
    assert versions == sorted(versions, reverse=True)
    days = [day for _, day, _ in sections]
    assert days == sorted(days, reverse=True)


def test_each_release_names_its_revisions_from_the_release_before():
    sections = releases()

    for (version, _, rows), before in zip(sections, [*sections[1:], None], strict=True):
        assert set(ROWS) <= rows.keys(), version
        for kind, known in (("registry", registry_revisions()), ("schools", tuple(revisions()))):
            first, last = span(rows[kind])
            assert known.index(first) <= known.index(last), version
            if before is not None:
                assert first == span(before[2][kind])[1], (version, kind)
        if before is not None:
            assert rows["from"] == before[0]
            assert set(LATER_ROWS) <= rows.keys(), version
    newest = sections[0][2]
    assert (span(newest["registry"])[1], span(newest["schools"])[1]) == (registry_head(), head())


@pytest.mark.parametrize(
    ("row", "served"),
    [
        ("serves schools of the release before", tenant.ALSO_SERVED),
        ("its migrated schools are served by the release before", tenant.SERVED_BY_EARLIER),
    ],
)
def test_the_newest_release_says_which_releases_serve_together(row, served):
    (_, _, rows), (_, _, before), *_ = releases()

    assert rows[row].partition(":")[0] == ("yes" if span(before["schools"])[1] in served else "no")
    assert set(served) <= set(revisions())
    assert set(registry.SERVED_BY_EARLIER) <= set(registry_revisions())
