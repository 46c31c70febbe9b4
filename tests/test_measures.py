"""Functions of the program are short, and the program that counts does as it says."""

from __future__ import annotations

import json

import pytest

from tests import measures
from tests.measures import PROGRAM, modules, percentile

MOST = 70  # lines of code of a function
MEDIAN, P95 = 7, 30


@pytest.fixture(scope="module")
def functions():
    return [function for module in modules(*PROGRAM) for function in module.functions]


def test_no_function_is_longer_than_a_screen(functions):
    assert {function.name for function in functions if function.lines > MOST} == set()


def test_most_functions_are_short(functions):
    lengths = sorted(function.lines for function in functions)

    assert len(lengths) > 4000
    assert percentile(lengths, 0.5) <= MEDIAN
    assert percentile(lengths, 0.95) <= P95


SOURCE = '''"""A module.

With a docstring."""

# A comment.
LIMIT = 3
"""How many."""


def outer(x):
    """Do it."""

    def inner():  # counts to both
        return """a text
        of two lines"""

    return (
        x,
        # why
        inner(),
    )
'''


def test_a_line_of_code_has_a_token_that_is_neither_comment_nor_docstring(tmp_path, monkeypatch):
    monkeypatch.setattr(measures, "ROOT", tmp_path)
    path = tmp_path / "school_service" / "features" / "people" / "guardians" / "service.py"
    path.parent.mkdir(parents=True)
    path.write_text(SOURCE, encoding="utf-8")

    (module,) = modules("school_service")

    assert module.package == "school_service/features/people"
    assert sorted(module.code) == [6, 10, 13, 14, 15, 17, 18, 20, 21]
    name = "school_service/features/people/guardians/service.py"
    assert set(module.functions) == {(8, f"{name}:outer"), (3, f"{name}:inner")}


def test_the_printed_counts_add_up(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(measures, "ROOT", tmp_path)
    monkeypatch.setattr(measures, "LONGEST", 3)
    for folder in ("school_service/web", "school_service/core", "tenants", "tests"):
        (tmp_path / folder).mkdir(parents=True, exist_ok=True)
        (tmp_path / folder / "module.py").write_text(SOURCE, encoding="utf-8")

    measures.main()

    report = json.loads(capsys.readouterr().out)
    assert report["totals"] == {"school_service": 18, "tenants": 9, "tests": 9}
    assert report["program"] == 27
    assert sum(report["packages"].values()) == 36
    assert list(report["functions"]["longest"].values()) == [8, 8, 8]
