"""The worked example of subject results (docs/rules/results.md), through the API.

Points 10, 10, 20 and 60:

                CA1   CA2   CA3   EXAM    points         percent   grade   position
    Ada         8     9     15.5  44      76.5 of 100    76.50     A1      1st
    Bọ́lá        0     EXC   12    40      52 of 90       57.78     C5      2nd
    Chidi       7     8     ABS   40      55 of 100      55.00     C5      3rd =
    Ɗanladi     7     8     10    blank   25             null      null    null, INCOMPLETE
    Ẹfẹ́         5     5     10    35      55 of 100      55.00     C5      3rd =

Of 4; average (76.50 + 57.78 + 55 + 55) ÷ 4 = 61.07, lowest 55, highest 76.50.
With no decimal places: 77, 58, 55, 55, average 61.25.
"""

from __future__ import annotations

import json

import pytest

NAMES = ("Ada", "Bọ́lá", "Chidi", "Ɗanladi", "Ẹfẹ́")
POINTS = {"CA1": 10, "CA2": 10, "CA3": 20, "EXAM": 60}
SCORES = {
    "Ada": (8, 9, 15.5, 44),
    "Bọ́lá": (0, "EXCUSED", 12, 40),
    "Chidi": (7, 8, "ABSENT", 40),
    "Ɗanladi": (7, 8, 10, None),
    "Ẹfẹ́": (5, 5, 10, 35),
}


class Worked:
    """The class of the example."""

    def __init__(self, make):
        self.make, self.api = make, make.api
        self.taught = make.taught(0)
        self.cohort, self.subject, self.term = self.taught.cohort, self.taught.subject, self.taught.term
        made = [make.student(first_name=name, last_name="Bàlógun") for name in NAMES]
        make.enrolled(self.cohort, *made)
        self.ids = {name: student["id"] for name, student in zip(NAMES, made, strict=True)}
        for position, (category, points) in enumerate(POINTS.items()):
            paper = make.assessment(self.subject, self.term, category=category, total_points=points)
            for name, marks in SCORES.items():
                if isinstance(marks[position], str):
                    self.away(paper, name, marks[position])
                elif marks[position] is not None:
                    make.entry(paper, self.ids[name], self.cohort["id"], marks[position])

    def away(self, paper, name, status):
        absences = [{"student": self.ids[name], "status": status}]
        self.api.ok(self.api.put(f"/assessments/{paper['id']}/absences", {"absences": absences}))

    def results(self):
        """The results of the subject, with figures as they are written."""
        answer = self.api.get(f"/cohort-subjects/{self.subject['id']}/results?term=FIRST")
        assert answer.status_code == 200, answer.get_data(as_text=True)
        return json.loads(answer.data, parse_float=str, parse_int=str)


@pytest.fixture
def worked(make):
    return Worked(make)


FIGURES = {
    "Ada": ("GRADED", "76.50", "100.00", "76.50", "A1", "Excellent", "1", False),
    "Bọ́lá": ("GRADED", "52.00", "90.00", "57.78", "C5", "Credit", "2", False),
    "Chidi": ("GRADED", "55.00", "100.00", "55.00", "C5", "Credit", "3", True),
    "Ẹfẹ́": ("GRADED", "55.00", "100.00", "55.00", "C5", "Credit", "3", True),
    "Ɗanladi": ("INCOMPLETE", "25.00", "40.00", None, None, None, None, False),
}
CLASS = {"average": "61.07", "lowest": "55.00", "highest": "76.50"}


def test_the_figures_equal_the_worked_example(worked):
    results = worked.results()

    # By position, then by name; students without position come last.
    assert [result["student"]["first_name"] for result in results] == list(FIGURES)
    for result in results:
        figures = tuple(result[name] for name in ("status", "score", "points", "percent", "grade", "remark"))
        place = result["batch"]
        assert (*figures, place["position"], place["tied"]) == FIGURES[result["student"]["first_name"]]
        assert place["of"] == ("4" if place["position"] else None)
        assert {name: place[name] for name in CLASS} == CLASS
        assert result["cohort"] == place
        assert (result["state"], result["version"]) == ("PROVISIONAL", None)


def test_each_score_is_there_with_its_absence_or_blank(worked):
    scores = {result["student"]["first_name"]: result["scores"] for result in worked.results()}

    shown = {
        name: [(row["category"], row["score"], row["absence"]) for row in of] for name, of in scores.items()
    }

    assert shown["Bọ́lá"] == [
        ("CA1", "0.00", None), ("CA2", None, "EXCUSED"), ("CA3", "12.00", None), ("EXAM", "40.00", None),
    ]  # fmt: skip
    assert shown["Chidi"][2] == ("CA3", None, "ABSENT")
    assert shown["Ɗanladi"][3] == ("EXAM", None, None)
    assert [row["total_points"] for row in scores["Ada"]] == ["10.00", "10.00", "20.00", "60.00"]


def test_without_decimal_places_each_percent_is_a_whole_number(worked):
    worked.api.ok(worked.api.patch("/result-settings", {"percent_places": 0, "percent_from": "EXACT"}))

    results = worked.results()

    assert [result["percent"] for result in results] == ["77", "58", "55", "55", None]
    assert results[0]["batch"] == {
        "position": "1", "tied": False, "of": "4", "average": "61.25", "lowest": "55", "highest": "77",
    }  # fmt: skip
