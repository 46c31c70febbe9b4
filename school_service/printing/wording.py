"""How figures, dates and names are written on paper."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping
from datetime import date, datetime
from decimal import ROUND_HALF_UP, Decimal
from typing import Any
from zoneinfo import ZoneInfo

from school_service.core.texts import position_text

Document = Mapping[str, Any]
"""The content of a paper, or a part of it, as JSON has it."""

NOT_THERE = "\N{EN DASH}"
"""Stands for a figure that there is none of."""

OUTCOMES = {
    "PROMOTED": "Promoted",
    "PROMOTED_ON_TRIAL": "Promoted on trial",
    "REPEATED": "Repeats the class",
    "GRADUATED": "Graduated",
}
"""The outcomes of a student at the end of a session, as they are printed."""

_OUTCOMES_IN = {
    "PROMOTED": "Promoted to",
    "PROMOTED_ON_TRIAL": "Promoted on trial to",
    "REPEATED": "Repeats",
}
"""The same, before the class the student goes to."""

TERMS = {"FIRST": "1st", "SECOND": "2nd", "THIRD": "3rd"}
"""The terms in their order, as a column is headed."""

MOST_MARKS = 3  # on a letter; more would be drawn across the lines above and below
_DOTTED_CIRCLE = "\N{DOTTED CIRCLE}"  # carries marks that are on no letter
MOST_OF_HEAD = 140  # characters: two lines, of the widest letters
LONGEST_WORD = 14  # characters; a longer word may be divided
_PART = 4  # characters between which it may be
_JOINERS = ("\u200c", "\u200d")
_WORDS = re.compile(r"\S++|\s++")

Words = str | list[str]


def words(text: str | None, longest: int = LONGEST_WORD) -> Words | None:
    """Prepare a typed text for the templates: a list of parts if a word is too long for a line.

    `longest` is how many characters of a word fit into a line of the text's place. A line may break between two parts;
    no letter is parted from its marks. A letter keeps its first MOST_MARKS marks, and further ones are printed beside
    it, on dotted circles. Answers None for None or a blank text.
    """
    if text is None or not text.strip():
        return None
    if not text.isascii():
        text = _with_few_marks(text)
    if all(len(word) <= longest for word in text.split()):
        return text
    parts = [""]
    for word in _WORDS.findall(text):
        if len(word) > longest:
            parts += [*_divided(word), ""]
        else:
            parts[-1] += word
    return [part for part in parts if part]


def _with_few_marks(text: str) -> str:
    written: list[str] = []
    marks = 0
    for character in text:
        marks = marks + 1 if unicodedata.combining(character) else 0
        if marks > MOST_MARKS:
            written.append(_DOTTED_CIRCLE)
            marks = 1
        written.append(character)
    return "".join(written)


def _divided(word: str) -> list[str]:
    """Divide a word into parts of _PART letters, each letter with its marks."""
    parts = [""]
    letters = 0
    for character in word:
        begins = not (unicodedata.combining(character) or character in _JOINERS or parts[-1][-1:] in _JOINERS)
        if begins and letters == _PART:
            parts.append("")
            letters = 0
        parts[-1] += character
        letters += begins
    return parts


def class_name(of: Mapping[str, Any]) -> str:
    """Write the class of a result: SSS 2 A, or SSS 2 if it was published in a cohort with a single arm."""
    return of.get("class_name") or f"{of['classroom']} {of['batch_name']}"


def mark(figure: Any) -> str:
    """Write a score or points without zeros at the end of the fraction: 8, 15.5. Takes a text or a whole number."""
    written = f"{Decimal(figure):f}"
    return written.rstrip("0").rstrip(".") if "." in written else written


def decimals(figure: Any, places: int | None) -> str:
    """Write a percent with so many decimal places, or more if it has more: none is rounded. None: as it is."""
    if places is None:
        return str(figure)
    exact = Decimal(figure)
    return f"{exact:.{max(places, -int(exact.as_tuple().exponent))}f}"


def rounded(figure: Decimal, places: int) -> str:
    """Round a figure half up, and write it with so many decimal places."""
    return str(figure.quantize(Decimal(1).scaleb(-places), ROUND_HALF_UP))


def text_of(figure: Any) -> str | None:
    """Write a figure as it is; None if there is none."""
    return None if figure is None else str(figure)


def place(figures: Mapping[str, Any]) -> str | None:
    """Write a position and how many were ranked: `2nd = of 40`; answers None without a position."""
    if figures["position"] is None:
        return None
    return f"{position_text(figures['position'], tied=figures['tied'])} of {figures['of']}"


def long_date(text: str | None, time_zone: str | None = None) -> str | None:
    """Write a date, or the day of a time in a time zone, or as it is without one: 19 December 2025."""
    if text is None:
        return None
    day = datetime.fromisoformat(text)
    if time_zone is not None and day.tzinfo is not None:
        day = day.astimezone(ZoneInfo(time_zone))
    return f"{day.day} {day:%B} {day.year}"


def outcome_text(outcome: str | None, of_class: str | None) -> str | None:
    """Write the outcome of a student at the end of a session, with the class: Promoted to SSS 2."""
    if outcome is None or outcome not in OUTCOMES:
        return outcome
    return (
        f"{_OUTCOMES_IN[outcome]} {of_class}" if of_class and outcome in _OUTCOMES_IN else OUTCOMES[outcome]
    )


def age(born: str, on: str, time_zone: str | None = None) -> int:
    """Count the whole years between somebody's day of birth and another day, or the day of a time."""
    birth, moment = date.fromisoformat(born), datetime.fromisoformat(on)
    day = moment if time_zone is None or moment.tzinfo is None else moment.astimezone(ZoneInfo(time_zone))
    return day.year - birth.year - ((day.month, day.day) < (birth.month, birth.day))


def in_line(parts: Iterable[str | None]) -> str | None:
    """Write several texts in one line, without empty ones; answers None if all are empty."""
    return "  ·  ".join(part for part in parts if part) or None


def running_head(parts: Iterable[str | None]) -> Words | None:
    """Write several texts in one line, for the top of each further page, cut to MOST_OF_HEAD."""
    text = in_line(part and " ".join(part.split()) for part in parts) or ""
    if len(text) > MOST_OF_HEAD:
        end = MOST_OF_HEAD - 1
        while end and unicodedata.combining(text[end]):
            end -= 1
        text = f"{text[:end].rstrip()}\N{HORIZONTAL ELLIPSIS}"
    return words(text)


def sentence_case(text: str) -> str:
    """Write a name chosen by the school with a capital letter at its start: Self control."""
    return text[:1].upper() + text[1:]
