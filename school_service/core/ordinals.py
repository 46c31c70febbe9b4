"""Places in words: 1st, 2nd, 3rd, 4th."""

from __future__ import annotations


def ordinal(number: int) -> str:
    """Write a number as a place: 1st, 2nd, 3rd, 4th, 11th to 13th, 21st, 111th."""
    ending = "th" if number % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"


def shared_place(number: int, *, tied: bool) -> str:
    """Write a place, with ` =` behind it where others share it: `2nd =`."""
    return f"{ordinal(number)} =" if tied else ordinal(number)
