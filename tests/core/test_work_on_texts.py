"""Work on texts from outside takes a time that grows as the text does: regular expressions, and Unicode's forms.

Python's regular expressions try every way to divide a text among repetitions, and Unicode's normal forms put n marks in
order in n² steps. So a repetition is bounded (`{1,64}`), possessive (`*+`) or, of a group, atomic (`(?>(?:x)*)`), and a
text is measured before it is composed (`tenants.names.is_too_long`). The exceptions are listed here, each with its
reason.
"""

from __future__ import annotations

import ast
import importlib
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
FOLDERS = ("school_service", "tenants", "migrations")
FUNCTIONS = {"compile", "search", "match", "fullmatch", "split", "findall", "finditer", "sub", "subn"}

# Files whose expressions read nothing from outside.
OWN_TEXTS = {
    "tenants/migrations/migration_rules.py": "the SQL of migrations, which are part of the program",
    "tenants/migrations/new_revision.py": "models of the program, and a draft written from them",
    "tenants/sql_scanner.py": "the SQL of migrations",
}
UNBOUNDED = {
    (
        "school_service/features/people/roles/schemas.py",
        "^[a-z][a-z0-9-]*$",
    ): "it is in the OpenAPI document, whose expressions know no possessive repetition; its text has been measured",
}
# Expressions that are put together where they are used, and hold no repetition.
PUT_TOGETHER = {
    (
        "school_service/sheets/workbook_writer.py",
        "pattern",
    ): "parts of the XML that openpyxl writes for the program",
    (
        "school_service/web/response_headers.py",
        "f'{re.escape(origin)}\\\\Z'",
    ): "an origin of the settings, escaped",
    (
        "tenants/backups/row_sums.py",
        "b'[\"\\\\\\\\(),\\\\s' + re.escape(blanks) + b']'",
    ): "one character, of a set",
}
COMPOSING = {
    "tenants/names.py": "`composed`, which measures",
    "tenants/migrations/new_revision.py": "a developer's name for a migration",
    "school_service/auth/login_throttle.py": "`hash_username`, which measures",
    "school_service/auth/passwords.py": "`strict_faults`, which measures",
    "school_service/core/sort_keys.py": "single letters, when the program starts",
    "school_service/core/texts.py": "`folded_words` and `casefolded`, which measure",
    "school_service/features/people/usernames.py": "names that are stored",
    "school_service/printing/table_fit.py": "texts that are stored, or the service's own",
    "school_service/sheets/columns.py": "headings, cells and names of traits, which have been measured",
    "school_service/web/blueprint.py": "the short name of a file that the program has made",
    "migrations/tenant/versions/t0006_passwords_and_usernames.py": "single letters",
    "migrations/tenant/versions/t0016_names_sorted_by_key.py": "single letters",
}

# Characters that are no quantifiers: escaped ones, and those within a class.
_CHARACTERS = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]", re.DOTALL)
_REPEATED = re.compile(r"(?:[*+]|\{[0-9]*,\})(\+?)")


_GROUP = re.compile(r"\((\?>)?([^()]*)\)")


def is_unbounded(pattern: str | bytes) -> bool:
    """Tell whether an expression has a repetition without end that is neither possessive nor atomic."""
    text = pattern.decode("latin-1") if isinstance(pattern, bytes) else pattern
    text = _CHARACTERS.sub("x", text)
    while group := _GROUP.search(text):
        is_atomic, inside = group.groups()
        # Of an atomic group the last repetition gives nothing back.
        if _gives_back(inside[:-1] if is_atomic and inside[-1:] in {"*", "+"} else inside):
            return True
        text = f"{text[: group.start()]}x{text[group.end() :]}"
    return _gives_back(text)


def _gives_back(text: str) -> bool:
    return any(not repetition[1] for repetition in _REPEATED.finditer(text))


def has_possessive_group(pattern: str | bytes) -> bool:
    """Tell whether an expression repeats a group possessively: Python 3.11.2, of Debian 12, loses its place there."""
    text = pattern.decode("latin-1") if isinstance(pattern, bytes) else pattern
    return re.search(r"\)(?:[*+?]|\{[0-9]*,?[0-9]*\})\+", _CHARACTERS.sub("x", text)) is not None


@cache
def nodes() -> list[tuple[str, ast.AST]]:
    """List the nodes of the program's syntax, each with its file."""
    return [
        (path.relative_to(ROOT).as_posix(), node)
        for folder in FOLDERS
        for path in sorted((ROOT / folder).rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call | ast.ImportFrom)
    ]


def calls() -> Iterator[tuple[str, ast.Call]]:
    """Go through the calls of the program, each with its file."""
    return ((file, node) for file, node in nodes() if isinstance(node, ast.Call))


def is_expression(call: ast.Call) -> bool:
    """Tell whether a call takes a regular expression: a function of `re`, or marshmallow's validator."""
    function = call.func
    if not isinstance(function, ast.Attribute):
        return False
    of_re = isinstance(function.value, ast.Name) and function.value.id == "re"
    return (of_re and function.attr in FUNCTIONS) or function.attr == "Regexp"


def evaluated(file: str, expression: ast.expr) -> Any:
    """Compute the pattern as its module does; raises NameError where it is made of variables of a function."""
    module = importlib.import_module(file.removesuffix(".py").replace("/", "."))
    return eval(compile(ast.Expression(expression), file, "eval"), dict(vars(module)))


@cache
def expressions() -> list[tuple[str, str, Any]]:
    """List the regular expressions: file, source, and pattern, or None where it is put together later."""
    return [*_expressions()]


def _expressions() -> Iterator[tuple[str, str, Any]]:
    for file, call in calls():
        if is_expression(call) and file not in OWN_TEXTS:
            source = ast.unparse(call.args[0])
            try:
                yield file, source, evaluated(file, call.args[0])
            except NameError:
                yield file, source, None


@pytest.mark.parametrize(
    ("pattern", "unbounded"),
    [
        ("a*", True),
        ("a+b", True),
        ("a*?", True),
        ("a{2,}", True),
        ("(?:a|b)+", True),
        (b"[ab]+", True),
        ("a*+", False),
        ("a++b", False),
        ("(?:a{2,}+)*+", False),
        ("(?>(?:a{2,}+)*)b", False),
        ("(?>(?:a{2,})*)b", True),
        ("(?>a*b)", True),
        ("a{,3}", False),
        ("a{1,64}", False),
        (r"\*\+[*+]x?", False),
        (r"[]*]\[+", True),
    ],
)
def test_an_unbounded_repetition_is_told_from_others(pattern, unbounded):
    assert is_unbounded(pattern) is unbounded


def test_every_repetition_in_an_expression_is_bounded_or_possessive():
    faults = {
        (file, pattern)
        for file, _, pattern in expressions()
        if pattern is not None and is_unbounded(pattern) and (file, pattern) not in UNBOUNDED
    }

    assert not faults, "bound it, {0,64}, or make it possessive, *+ and ++, a group atomic, (?>(?:x)*)"


@pytest.mark.parametrize(
    ("pattern", "possessive"),
    [("(?:ab)*+c", True), ("(?:ab){2,}+", True), ("(?>(?:ab)*)c", False), ("[(a)]*+", False)],
)
def test_a_possessive_group_is_told_from_others(pattern, possessive):
    assert has_possessive_group(pattern) is possessive


def test_no_group_is_repeated_possessively():
    faults = {
        (file, pattern)
        for file, _, pattern in expressions()
        if pattern is not None and has_possessive_group(pattern)
    }

    assert not faults, "make it atomic: (?>(?:x)*)"


def test_every_expression_that_is_put_together_where_it_is_used_is_known():
    assert {(file, source) for file, source, pattern in expressions() if pattern is None} == {*PUT_TOGETHER}


def test_the_exceptions_are_still_there():
    assert {(file, pattern) for file, _, pattern in expressions()} >= {*UNBOUNDED}
    assert {file for file, call in calls() if is_expression(call)} >= {*OWN_TEXTS}


def test_expressions_and_forms_are_made_where_this_test_finds_them():
    """By the module's name and not by a function's that was imported."""
    imported = {
        (file, name.name)
        for file, node in nodes()
        if isinstance(node, ast.ImportFrom) and node.module in {"re", "unicodedata"}
        for name in node.names
    }

    assert {name for _, name in imported}.isdisjoint({*FUNCTIONS, "normalize"}), imported


def test_a_text_is_measured_before_it_is_composed():
    composing = {file for file, call in calls() if ast.unparse(call.func).endswith("unicodedata.normalize")}

    assert composing == {*COMPOSING}, "measure it, by tenants.names.composed or is_too_long"
