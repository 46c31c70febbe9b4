"""No reading of results changes: each is compared with the golden files.

They are made anew by `python -m tests.features.results.golden.make`.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from tests.features.results.golden.comparing import ACT, DOCUMENT, differences
from tests.features.results.golden.recordings import RECORDINGS, in_part, read_golden, record

MOST_NAMED = 20  # differences
# Each run reads one of so many readings: all of them take two minutes of a processor.
PARTS = {"school": 32}
PART_OF_A_RELEASE = 6


@pytest.mark.parametrize("name", RECORDINGS)
def test_a_part_of_what_is_read_is_what_was_read_before(app, tenancy, name):
    part = PARTS.get(name, PART_OF_A_RELEASE)

    found = differences(in_part(read_golden(name), part), record(name, app, tenancy, part=part))

    assert not found, _told(found)


@pytest.mark.release
@pytest.mark.parametrize("name", RECORDINGS)
def test_all_that_is_read_is_what_was_read_before(app, tenancy, name):
    found = differences(read_golden(name), record(name, app, tenancy))

    assert not found, _told(found)


def _told(found: list[str]) -> str:
    return "\n".join([f"{len(found)} readings differ.", *found[:MOST_NAMED]])


# Cases of the school's cards, acts and verified papers, each of which is there at least once.
CASES = {
    "COMPLETE", "TOO_FEW", "NONE", "a shared place", "no grade", "another place in all arms", "no place in the session",
    "one term", "two terms", "three terms", "a dropped subject", "a term from elsewhere", "an elective",
    "ABSENT", "EXCUSED", "a score that is not shown", "a principal's comment", "traits", "attendance", "no attendance",
    "2 places, BOTH", "2 places, NONE", "1 places, BATCH", "0 places, COHORT", "an older version", "changed",
    "changed in class figures alone", "CURRENT", "REPLACED", "WITHDRAWN", "a note", "blanks are refused",
    "not submitted", "blank since", "earlier terms", "later terms",
}  # fmt: skip


def test_the_golden_school_has_every_case():
    seen: Counter[str] = Counter()
    for one in read_golden("school"):
        if one.kind == DOCUMENT and ": card of " in one.name:
            seen.update(_of_card(json.loads(one.text)))
            seen["an older version"] += "in force False" in one.about
            seen["changed"] += "changed True" in one.about
            seen["changed in class figures alone"] += "in class figures True" in one.about
        elif "is verified, as application/json" in one.name and one.about == "200":
            told = json.loads(one.text)
            seen[told["state"]] += 1
            seen["a note"] += told["note"] is not None
        elif one.kind == ACT and one.about == "409":
            seen.update(case for case, words in _REFUSALS.items() if words in one.text)

    assert {case for case in CASES if not seen[case]} == set()


_REFUSALS = {
    "blanks are refused": "enter the scores or absences that are missing",
    "not submitted": "Not submitted yet",
    "blank since": "Something is blank since",
    "earlier terms": "rest on earlier terms",
    "later terms": "results of later terms would change",
}


def _of_card(card: dict[str, Any]) -> Iterator[str]:
    """Name the cases that a card has."""
    session, batch, cohort = card["cumulative"], card["batch_figures"], card["cohort_figures"]
    subjects = {one["subject"]["base"] for one in card["subjects"]}
    scores = [score for subject in card["subjects"] for score in subject["scores"]]
    in_terms = sum(percent is not None for one in session["subjects"] for percent in one["terms"].values())
    has = {
        card["status"]: True,
        "a shared place": batch["tied"],
        "no grade": card["average"] is not None and card["grade"] is None,
        "another place in all arms": batch["position"] != cohort["position"],
        "no place in the session": batch["position"] is not None
        and session["batch_figures"]["position"] is None,
        **{
            name: session["terms"] == number
            for number, name in enumerate(("one term", "two terms", "three terms"), 1)
        },
        "a dropped subject": any(one["base"] not in subjects for one in session["subjects"]),
        "a term from elsewhere": session["terms"] <= 1 and in_terms > len(subjects),
        "an elective": any(one["subject"]["elective"] for one in card["subjects"]),
        "a score that is not shown": not all(one["publish"] for one in scores),
        "a principal's comment": card["comments"]["principal"] is not None,
        "traits": bool(card["traits"]),
        "attendance": card["attendance"]["present"] is not None,
        "no attendance": card["attendance"]["present"] is None,
        f"{card['percent_places']} places, {card['positions']}": True,
    }
    yield from (case for case, it_has in has.items() if it_has)
    yield from (one["absence"] for one in scores if one["absence"])
