"""The size of the program, the length of its functions, and the relative pronouns in its docstrings.

    python -m tests.measures

Prints JSON: lines of code in all and by package, of the functions of the program the median, the 95th percentile and
the longest, and by package the relative pronouns in 100 words of docstrings. A line of code has a token that is neither
a comment nor of a docstring; a text that stands by itself below a name, as some constants have it, is a docstring, too.
A function has the lines from its `def` to its end, with the functions within it.
"""

from __future__ import annotations

import ast
import io
import json
import re
import sys
import tokenize
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import cache, cached_property
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
PROGRAM = ("school_service", "tenants")
LONGEST = 10
"""The number of the longest functions that are printed."""
PRONOUNS = re.compile(r"\b(?:that|which|who|whose|whom|what|where|whoever|whatever)\b", re.IGNORECASE)
"""Relative pronouns, and words that can be one: *where* of a condition counts, too."""

_NO_CODE = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENCODING,
    tokenize.ENDMARKER,
}


class Function(NamedTuple):
    """A function or method, by its file and name, and its lines of code."""

    lines: int
    name: str


class Module:
    """A file: the numbers of its lines of code, its functions, and its docstrings."""

    def __init__(self, path: Path) -> None:
        """Read a file below ROOT."""
        self.name = str(path.relative_to(ROOT))
        self.source = path.read_text(encoding="utf-8")
        self.package = _package(path.relative_to(ROOT))

    @cached_property
    def tree(self) -> ast.Module:
        """The source, parsed."""
        return ast.parse(self.source)

    @cached_property
    def _statements(self) -> list[ast.Expr]:
        return list(_docstrings(self.tree))

    @cached_property
    def docstrings(self) -> list[str]:
        """The texts of the docstrings."""
        return [ast.literal_eval(statement.value) for statement in self._statements]

    @cached_property
    def code(self) -> frozenset[int]:
        """The numbers of the lines of code."""
        statements = self._statements
        lines = {line for statement in statements for line in range(statement.lineno, _end(statement) + 1)}
        return frozenset(_lines_with_tokens(self.source) - lines)

    @cached_property
    def functions(self) -> tuple[Function, ...]:
        """The functions and methods."""
        return tuple(
            Function(
                len(self.code.intersection(range(node.lineno, _end(node) + 1))), f"{self.name}:{node.name}"
            )
            for node in ast.walk(self.tree)
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        )


def modules(*packages: str) -> list[Module]:
    """Measure the files of packages below ROOT."""
    return [_module(path) for package in packages for path in sorted((ROOT / package).rglob("*.py"))]


_module = cache(Module)


def pronouns_by_package(measured: Iterable[Module]) -> dict[str, float]:
    """Count the relative pronouns in 100 words of docstrings, by package, the most first."""
    words: Counter[str] = Counter()
    pronouns: Counter[str] = Counter()
    for module in measured:
        words[module.package] += sum(len(text.split()) for text in module.docstrings)
        pronouns[module.package] += sum(len(PRONOUNS.findall(text)) for text in module.docstrings)
    averages = {package: 100 * pronouns[package] / count for package, count in words.items() if count}
    return dict(sorted(averages.items(), key=lambda item: -item[1]))


def percentile(lengths: list[int], share: float) -> int:
    """Find the length that a share of the lengths, in their order, is below."""
    return lengths[int(len(lengths) * share)]


def _package(name: Path) -> str:
    """Name the package that a file counts to: of features the wing, else the second storey."""
    folders = name.parts[:-1]
    return "/".join(folders[: 3 if folders[1:2] == ("features",) else 2])


def _lines_with_tokens(source: str) -> set[int]:
    return {
        line
        for token in tokenize.generate_tokens(io.StringIO(source).readline)
        if token.type not in _NO_CODE
        for line in range(token.start[0], token.end[0] + 1)
    }


def _docstrings(tree: ast.Module) -> Iterator[ast.Expr]:
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        for statement in body if isinstance(body, list) else ():
            match statement:
                case ast.Expr(value=ast.Constant(value=str())):
                    yield statement


def _end(node: ast.stmt) -> int:
    return node.end_lineno or node.lineno


def main() -> None:
    """Print the measures."""
    lines: Counter[str] = Counter()
    for module in modules(*PROGRAM, "tests"):
        lines[module.package] += len(module.code)
    totals = {
        top: sum(count for package, count in lines.items() if package.split("/")[0] == top)
        for top in (*PROGRAM, "tests")
    }
    functions = sorted(function for module in modules(*PROGRAM) for function in module.functions)
    lengths = [function.lines for function in functions]
    record = {
        "program": sum(totals[top] for top in PROGRAM),
        "totals": totals,
        "packages": dict(lines.most_common()),
        "functions": {
            "count": len(lengths),
            "median": percentile(lengths, 0.5),
            "p95": percentile(lengths, 0.95),
            "longest": {function.name: function.lines for function in reversed(functions[-LONGEST:])},
        },
        "pronouns": {
            package: round(count, 1) for package, count in pronouns_by_package(modules(*PROGRAM)).items()
        },
    }
    sys.stdout.write(f"{json.dumps(record, indent=1)}\n")


if __name__ == "__main__":
    main()
