"""Order is PostgreSQL's: of people, subjects, arms, papers, traits, and names in refusals. Python sorts by numbers."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import school_service.features.results as results

WING = Path(results.__file__).parent
AREAS = ("computing", "figures", "submissions", "publications", "report_cards", "transcripts")

ORDERING = {
    "sorted", "sort", "min", "max", "nlargest", "nsmallest", "merge", "insort", "insort_left", "insort_right",
    "bisect", "bisect_left", "bisect_right", "cmp_to_key",
}  # fmt: skip

# Each place that orders or compares, with its number. It is never a text: a collation orders texts.
BY_NUMBERS = {
    "computing/cards.py": {
        "max(reached, key=lambda comment: comment['lower_threshold'])": "a threshold",
    },
    "computing/compute.py": {
        "bisect_right(self.bands, percent, key=lambda band: band.threshold)": "a threshold",
        "sorted(ranked, key=ranked.__getitem__, reverse=True)": "a percent, or a total",
        "min(100 * marks_sum, FULL * present)": "a sum of marks",
        "min(counted, default=None)": "a percent",
        "max(counted, default=None)": "a percent",
    },
    "figures/answers.py": {
        "listed.sort(key=lambda each: (last_if_none(each[1][place]['position']), each[0]))": "a position, a number",
    },
    "figures/broadsheets.py": {
        "min(some)": "a percent",
        "max(some)": "a percent",
        "sorted(students, key=lambda student: last_if_none(student['position']))": "a position, stably",
        "max((figures[name] for figures in all_of_them if figures[name] is not None), default=None)":
            "a figure of the class",
    },
    "submissions/answers.py": {
        "max(done, key=lambda of: of.microseconds)": "a moment",
        "sorted(blank, key=lambda pair: (pair[0].place, pair[1].place))": "the places that PostgreSQL gives",
    },
    "publications/judging.py": {
        "sorted((member.id for member in members if member.enrolled_in != batch['id']), key=UUID)": "an id",
        "people.sort(key=lambda person: person.place)": "the place that PostgreSQL gives",
    },
    "report_cards/service.py": {
        "sorted(students or ())": "an id",
    },
    "report_cards/verifying.py": {
        "max(replacing, key=datetime.fromisoformat, default=None)": "a moment",
    },
}  # fmt: skip


def test_python_orders_by_numbers_alone():
    modules = {
        str(path.relative_to(WING)): calls
        for area in AREAS
        for path in sorted((WING / area).rglob("*.py"))
        if (calls := {ast.unparse(call) for call in ordering_calls(path)})
    }

    # A new place: by which number? By name, title, code or abbreviation PostgreSQL orders, in the SELECT.
    assert modules == {module: {*calls} for module, calls in BY_NUMBERS.items()}


def ordering_calls(path: Path) -> Iterator[ast.Call]:
    """Find the calls of a module that order values, but PostgreSQL's own functions; raises where one is handed on."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    called = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            called.add(node.func)
            if _name(node.func) in ORDERING and not _is_of_postgresql(node.func):
                yield node
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and node.id in ORDERING and node not in called:
            raise AssertionError(
                f"{path}:{node.lineno}: {node.id} is not called here, so nobody sees by which key."
            )


def _name(function: ast.expr) -> str:
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else ""


def _is_of_postgresql(function: ast.expr) -> bool:
    return isinstance(function, ast.Attribute) and ast.unparse(function.value) == "func"
