"""Words for people to read, printed and answered by the program."""

from __future__ import annotations

from collections.abc import Sequence

MOST_SAID = 10
"""The most parts of a list that are named."""


def counted(number: int, noun: str) -> str:
    """Write how many there are: `1 school`, `2 schools`. The noun's plural ends in s."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def some(parts: Sequence[str]) -> str:
    """Name the first of a list, and count the others: `a, b and 2 more`."""
    more = f" and {len(parts) - MOST_SAID} more" if len(parts) > MOST_SAID else ""
    return f"{', '.join(parts[:MOST_SAID])}{more}"
