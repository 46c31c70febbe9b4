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
PARTS = {"school": 64}
PART_OF_A_RELEASE = 12


@pytest.mark.parametrize("name", RECORDINGS)
def test_a_part_of_the_readings_is_as_before(app, tenancy, name):
    part = PARTS.get(name, PART_OF_A_RELEASE)

    changes = differences(in_part(read_golden(name), part), record(name, app, tenancy, part=part))

    assert not changes, _summary(changes)


@pytest.mark.release
@pytest.mark.parametrize("name", RECORDINGS)
def test_all_readings_are_as_before(app, tenancy, name):
    changes = differences(read_golden(name), record(name, app, tenancy))

    assert not changes, _summary(changes)


def _summary(changes: list[str]) -> str:
    return "\n".join([f"{len(changes)} readings differ.", *changes[:MOST_NAMED]])


# Cases of the school's cards, acts and verified papers, each there at least once.
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
    for reading in read_golden("school"):
        if reading.kind == DOCUMENT and ": card of " in reading.name:
            seen.update(_of_card(json.loads(reading.text)))
            seen["an older version"] += "in force False" in reading.about
            seen["changed"] += "changed True" in reading.about
            seen["changed in class figures alone"] += "in class figures True" in reading.about
        elif "is verified, as application/json" in reading.name and reading.about == "200":
            told = json.loads(reading.text)
            seen[told["state"]] += 1
            seen["a note"] += told["note"] is not None
        elif reading.kind == ACT and reading.about == "409":
            seen.update(case for case, words in _REFUSALS.items() if words in reading.text)

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
    subjects = {row["subject"]["base"] for row in card["subjects"]}
    scores = [score for subject in card["subjects"] for score in subject["scores"]]
    in_terms = sum(percent is not None for row in session["subjects"] for percent in row["terms"].values())
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
        "a dropped subject": any(row["base"] not in subjects for row in session["subjects"]),
        "a term from elsewhere": session["terms"] <= 1 and in_terms > len(subjects),
        "an elective": any(row["subject"]["elective"] for row in card["subjects"]),
        "a score that is not shown": not all(score["publish"] for score in scores),
        "a principal's comment": card["comments"]["principal"] is not None,
        "traits": bool(card["traits"]),
        "attendance": card["attendance"]["present"] is not None,
        "no attendance": card["attendance"]["present"] is None,
        f"{card['percent_places']} places, {card['positions']}": True,
    }
    yield from (case for case, it_has in has.items() if it_has)
    yield from (score["absence"] for score in scores if score["absence"])
