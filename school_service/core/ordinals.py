"""Positions in words: 1st, 2nd =, 3rd. Printers use them, too, which import nothing of a database."""

from __future__ import annotations


def ordinal(number: int) -> str:
    """Write a position: 1st, 2nd, 3rd, 4th, 11th to 13th, 21st, 111th."""
    ending = "th" if number % 100 in {11, 12, 13} else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"


def position_text(position: int | None, *, tied: bool = False) -> str:
    """Write a position as it is printed: `4th`, and `2nd =` where another has it too; nothing without one."""
    return "" if position is None else f"{ordinal(position)} =" if tied else ordinal(position)
