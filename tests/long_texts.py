"""The worst texts of a size that may be sent, each of its kind, and the processor time that they take."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from time import process_time
from typing import Any

import pytest

MIB = 2**20
MOST = 0.5
"""Seconds of a processor that a long text may take more than a short one."""
SHORT = "a"


def _marks(size: int) -> str:
    """Marks in the order in which putting them right takes longest, on one letter."""
    return "a" + "\u0301" * (size // 4) + "\u0316" * (size // 4)


TEXTS: dict[str, Callable[[int], str]] = {
    "marks": _marks,
    "ligatures": lambda size: "\ufdfa" * (size // 3),  # each is eighteen letters (NFKC)
    "brackets": lambda size: "(" * size,
    "spaces": lambda size: "1" + " " * (size - 2) + "1",
    "digits": lambda size: "1" * size,
    "word": lambda size: "a" * size,
    "dots": lambda size: "a@" + "a." * (size // 2),
    "backslashes": lambda size: "\\" * (size // 2),
    "quotes": lambda size: '"' * (size // 2),
    "percent": lambda size: "%" * size,
    "escapes": lambda size: "_x0041_&#" * (size // 9),
    "hidden": lambda size: "\u200b" * (size // 3),
}
"""By their kind: a text of about so many bytes in UTF-8."""

QUICK = ("marks", "brackets", "spaces")
KINDS = [
    pytest.param(QUICK, id="quick"),
    pytest.param(tuple(TEXTS), id="all", marks=pytest.mark.release),
]
"""Each run has the kinds that once took long, a release all of them."""


@dataclass
class Stopwatch:
    """Compares the processor time of requests: each may take MOST more than the same one with a short text."""

    short: Callable[[], Any]
    least: float = 0.0

    def __post_init__(self) -> None:
        # The first request of its kind imports and compiles, which is not the text's cost.
        self.short()
        self.least = seconds(self.short)

    def judge(self, what: str, send: Callable[[], Any]) -> None:
        """Assert that a request takes no longer; a slow one is sent once more: other work may have come between."""
        took = seconds(send) - self.least
        if took >= MOST:
            took = min(took, seconds(send) - self.least)
        assert took < MOST, f"{what} takes {took:.2f} s of a processor more than a short text"


def seconds(work: Callable[[], Any]) -> float:
    """Measure the processor time of this process."""
    began = process_time()
    work()
    return process_time() - began
