"""Words for people to read, printed and answered by the program."""

from __future__ import annotations


def counted(number: int, noun: str) -> str:
    """Write how many there are: `1 school`, `2 schools`. The noun's plural ends in s."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
