"""Files, modules, names of the code and links in README and docs exist."""

from __future__ import annotations

import re
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").rglob("*.md"))]
# Pages about the code: each word there that looks like a name of it is one.
PAGES_OF_CODE = [
    ROOT / "docs" / name for name in ("architecture.md", "contributing.md", "glossary.md", "serving.md")
]

TOP = r"school_service|tenants|tests|migrations|benchmarks|docs"
CODE = re.compile(r"`([^`\n]+)`")
FILE = re.compile(rf"(?:{TOP})/[\w./-]*|setup\.cfg|pyproject\.toml|tox\.ini|\.ci/run|wsgi\.py")
DOTTED = re.compile(r"(?:school_service|tenants|tests|migrations|benchmarks)(?:\.\w+)+")
NAME = re.compile(r"(?=\w*[a-z])(?:[a-z]\w*_\w+|[A-Z][a-z]+[A-Z]\w*)")
RUN = re.compile(r"python -m ([\w.]+)")
LINK = re.compile(r"\]\(([^)\s]+)\)")


def spans(page, pattern):
    """List the words written as code on a page that match a pattern in full."""
    return [code for code in CODE.findall(page.read_text(encoding="utf-8")) if pattern.fullmatch(code)]


def resolve(dotted):
    """Import the module of a dotted name, and look up the rest; raises ImportError or AttributeError."""
    parts = dotted.split(".")
    for length in range(len(parts), 0, -1):
        name = ".".join(parts[:length])
        if find_spec(name) is not None:
            value = import_module(name)
            for part in parts[length:]:
                value = getattr(value, part)
            return
        if length == 1:
            raise ImportError(dotted)


@cache
def words_of_the_code():
    """Every word of the project's own Python, SQL and settings."""
    files = [ROOT / "setup.cfg", ROOT / "pyproject.toml", ROOT / "tox.ini", ROOT / "wsgi.py"]
    for folder in ("school_service", "tenants", "migrations", "tests", "benchmarks"):
        files += [file for ending in ("*.py", "*.sql") for file in (ROOT / folder).rglob(ending)]
    return {word for file in files for word in re.findall(r"\w+", file.read_text(encoding="utf-8"))}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_each_file_that_a_page_names_exists(page):
    assert [name for name in spans(page, FILE) if not (ROOT / name).exists()] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_each_dotted_name_of_a_page_resolves(page):
    unknown = []
    for name in spans(page, DOTTED):
        try:
            resolve(name)
        except (ImportError, AttributeError):
            unknown.append(name)

    assert unknown == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_each_module_that_a_page_runs_is_there(page):
    modules = RUN.findall(page.read_text(encoding="utf-8"))

    assert [name for name in modules if find_spec(name) is None] == []


@pytest.mark.parametrize("page", PAGES_OF_CODE, ids=lambda page: page.name)
def test_each_name_of_the_code_that_a_page_mentions_is_in_the_code(page):
    assert [name for name in spans(page, NAME) if name not in words_of_the_code()] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_each_link_of_a_page_leads_to_a_file_and_a_heading(page):
    broken = []
    for target in LINK.findall(page.read_text(encoding="utf-8")):
        if target.startswith(("http:", "https:")):
            continue
        path, _, anchor = target.partition("#")
        file = page.parent / path if path else page
        if not file.exists() or (anchor and anchor not in headings(file)):
            broken.append(target)

    assert broken == []


def headings(page):
    """The anchors of a page's headings, as GitHub makes them."""
    titles = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.M)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}
