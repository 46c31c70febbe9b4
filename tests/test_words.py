"""Docstrings are in plain words, at most 3 relative pronouns in 100 words of a package, and names are nouns."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

import pytest

from tests import measures
from tests.measures import PROGRAM, modules, pronouns_by_package

MOST = 3  # in 100 words, in the average of a package
VALUES = {"found", "one"}
"""Names that fit each value, so they say nothing of it."""
FUNCTIONS = VALUES | {
    "asked", "done", "given", "gone", "held", "kept", "known", "made", "meant", "named", "needed", "said", "seen",
    "shown", "taken", "told", "used", "wanted",
}  # fmt: skip
"""Names that say nothing of the answer of a function."""
PERMITTED = {"school_service/core/facts.py": {"shown()"}}
"""`shown` of a column is a word of the house, in each read model of people."""


def test_docstrings_have_few_relative_pronouns():
    averages = pronouns_by_package(modules(*PROGRAM))

    assert averages.keys() >= {"school_service", "school_service/features/people", "tenants"}
    assert {package: round(count, 2) for package, count in averages.items() if count > MOST} == {}


SOURCE = '''"""What a pupil has: the letters of thatcher are none."""

LIMIT = "that which who"  # what is no docstring
"""Whose, below a name."""


class Pupil:
    """A pupil, WHOEVER."""

    name: str
    """Which."""

    def show(self):
        """Show whatever."""
        return """who"""
'''


def test_pronouns_of_every_docstring_count_and_of_no_other_text(tmp_path, monkeypatch):
    monkeypatch.setattr(measures, "ROOT", tmp_path)
    sources = {
        "tenants/names.py": SOURCE,
        "tenants/registry/empty.py": "",
        "school_service/features/people/models.py": '"""A b c d that."""',
        "school_service/features/people/users/models.py": '"""E f g h i."""',
        "school_service/app.py": '"""A b c d."""',
    }
    for name, source in sources.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(source, encoding="utf-8")

    assert pronouns_by_package(modules(*PROGRAM)) == {
        "tenants": 100 * 5 / 20,
        "school_service/features/people": 10,
        "school_service": 0,
    }


# A name that is given, unlike a word of a docstring, has a sign behind it, or `in`. To parse all modules takes long.
SUSPECT = re.compile(
    rf"\b_*(?:{'|'.join(VALUES)})_*\b(?=\s*(?:[^\s\w.]|in\b))|\bdef\s+_*(?:{'|'.join(FUNCTIONS)})_*\b"
)


def empty_names(source: str) -> Iterator[str]:
    """Find the empty names that a module gives to values, and to functions as `told()`."""
    for node in ast.walk(ast.parse(source)) if SUSPECT.search(source) else ():
        match node:
            case ast.Name(id=name, ctx=ast.Store()) | ast.arg(arg=name) if name.strip("_") in VALUES:
                yield name
            case ast.FunctionDef(name=name) if name.strip("_") in FUNCTIONS:
                yield f"{name}()"


def test_values_and_functions_are_named_by_a_noun():
    all_modules = modules(*PROGRAM, "benchmarks", "docs", "examples", "tests")
    names = {module.name: set(empty_names(module.source)) for module in all_modules}

    assert len(all_modules) > 1000
    assert {name: each for name, each in names.items() if each} == PERMITTED


@pytest.mark.parametrize(
    "source",
    [
        "one = 1",
        "for one in students: pass",
        "[one for one in students]",
        "key = lambda one: 1",
        "def names(found): pass",
        "def names(students, *, found=None): pass",
        "if found := students: pass",
        "class Students:\n    def _told(self): pass",
        "def found(): pass",
    ],
)
def test_an_empty_name_is_found_wherever_it_is_given(source):
    assert len(list(empty_names(source))) == 1


@pytest.mark.parametrize(
    "source",
    [
        "print(one, record.found)",
        "def told_by(student): pass",
        "def rounded(): pass",
        "made = record.made()",
    ],
)
def test_a_name_of_another_module_and_one_that_says_more_may_be(source):
    assert list(empty_names(source)) == []
