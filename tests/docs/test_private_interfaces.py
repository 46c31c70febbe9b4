"""The table "Private interfaces we use" of docs/architecture.md is true and complete, and each has its upper bound."""

from __future__ import annotations

import ast
import re
from configparser import ConfigParser
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from tests.measures import PROGRAM, modules

ROOT = Path(__file__).parents[2]
TITLE = "## Private interfaces we use"
# Private in name alone: SQLAlchemy documents the first, Flask and Werkzeug the second, Python the names of named
# tuples and of enumerations.
DOCUMENTED = {"_mapping", "_get_current_object", "_asdict", "_replace", "_value_"}


def read_table():
    """The rows of the table: library, bound, file, names."""
    section = (ROOT / "docs/architecture.md").read_text(encoding="utf-8").partition(TITLE)[2]
    rows = [line.strip("| ").split(" | ") for line in section.splitlines() if line.startswith("| ")]
    return [
        (library, bound, file.strip("`"), re.findall("`([^`]+)`", names))
        for library, bound, file, names, _why in rows[1:]
    ]


def required():
    """The requirements of setup.cfg, by name."""
    settings = ConfigParser()
    settings.read(ROOT / "setup.cfg", encoding="utf-8")
    lines = settings["options"]["install_requires"].split("\n")
    requirements = [Requirement(line) for line in lines if line.strip()]
    return {requirement.name: requirement for requirement in requirements}


TABLE = read_table()


def test_the_table_is_found():
    assert {library for library, *_ in TABLE} >= {"waitress", "sqlalchemy", "flask-smorest"}


@pytest.mark.parametrize(("library", "bound"), sorted({row[:2] for row in TABLE}))
def test_each_library_has_the_upper_bound_that_the_table_names(library, bound):
    upper = [str(bound) for bound in required()[library].specifier if bound.operator == "<"]

    assert upper == [bound.replace(" ", "")], f"write the upper bound into setup.cfg: {library} {bound}"


@pytest.mark.parametrize(
    ("file", "names"), [row[2:] for row in TABLE], ids=[f"{row[0]}-{row[2]}" for row in TABLE]
)
def test_each_name_of_the_table_is_used_in_its_file(file, names):
    text = (ROOT / file).read_text(encoding="utf-8")

    assert names
    assert [name for name in names if name not in text] == []


def test_each_private_attribute_of_a_library_is_in_the_table():
    own, used = set(), {}
    for module in modules(*PROGRAM):
        for node in ast.walk(module.tree):
            match node:
                case (
                    ast.FunctionDef(name=name) | ast.ClassDef(name=name) | ast.Name(id=name, ctx=ast.Store())
                ):
                    own.add(name)
                case ast.Attribute(attr=name, ctx=ast.Store(), value=ast.Name(id="self")):
                    own.add(name)
                case ast.Attribute(attr=name) if name.startswith("_") and not name.startswith("__"):
                    used.setdefault(name, module.name)
    listed = {name for *_, names in TABLE for name in names}

    unlisted = {name: file for name, file in used.items() if name not in own | listed | DOCUMENTED}

    assert unlisted == {}, "list it in docs/architecture.md, with an upper bound in setup.cfg"
