"""The promises of docs/serving.md have tests, and it names every module of serving and each that extends waitress."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.docs.test_private_interfaces import TABLE

ROOT = Path(__file__).parents[2]
SERVING = ROOT / "school_service" / "serving"
PAGE = (ROOT / "docs" / "serving.md").read_text(encoding="utf-8")


def rows_of(title):
    """The rows of the one table below a heading, without its head: the cells of each."""
    section = PAGE.partition(f"## {title}\n")[2].partition("\n## ")[0]
    rows = [line.strip("| ").split(" | ") for line in section.splitlines() if line.startswith("| ")]
    return rows[1:]


def modules_in(cell):
    return re.findall(r"`(\w+)`", cell)


PROPERTIES = [cells for cells in rows_of("What is guaranteed") if len(cells) == 3 and "::" in cells[2]]


def test_the_tables_are_found():
    assert len(PROPERTIES) > 30
    assert len(rows_of("What of waitress this rests on")) >= 4


@pytest.mark.parametrize("cells", PROPERTIES, ids=lambda cells: cells[2])
def test_each_property_has_its_test_and_its_modules(cells):
    _, modules, named = cells
    path, _, test = named.strip("`").partition("::")
    file = ROOT / path if path.startswith("tests/") else ROOT / "tests" / "serving" / path

    assert f"\ndef {test}(" in file.read_text(encoding="utf-8")
    assert modules_in(modules)
    assert [name for name in modules_in(modules) if not (SERVING / f"{name}.py").exists()] == []


def test_each_module_of_serving_guarantees_something():
    named = {name for _, modules, _ in PROPERTIES for name in modules_in(modules)}

    assert {file.stem for file in SERVING.glob("*.py")} - {"__init__"} == named


def test_each_module_that_extends_waitress_is_in_the_tables():
    private = {Path(file).stem for library, _, file, _ in TABLE if library == "waitress"}
    importing = {
        file.stem
        for file in SERVING.glob("*.py")
        if re.search(r"^(?:import|from) waitress", file.read_text(encoding="utf-8"), re.MULTILINE)
    }

    assert private == importing
    assert {modules_in(cells[0])[0] for cells in rows_of("What of waitress this rests on")} == private
