"""Dates that a sheet has as texts, such as 31/05/2012: day first or month first, as the sheet shows or as is told."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date

from school_service.sheets.row_errors import INVALID, RowError
from school_service.sheets.sheet_reader import Row

DAY_FIRST, MONTH_FIRST = DAY_ORDERS = ("DMY", "MDY")
_WORDS = {DAY_FIRST: "the day first", MONTH_FIRST: "the month first"}

_WRITTEN = re.compile(r"([0-9]{1,2})\s*[/.-]\s*([0-9]{1,2})\s*[/.-]\s*([0-9]{4})")


@dataclass(frozen=True, slots=True)
class ReadDays:
    """What was read of a column: the errors, and by which order of day and month, if any had to be found."""

    errors: list[RowError]
    order: str | None = None
    shown_by: int | None = None
    """The row that shows the order; None where it was told."""
    count: int = 0

    def warning(self, column: str) -> str | None:
        """Say how the texts were read; None where the sheet has none, or said nothing of itself."""
        if self.order is None or self.shown_by is None or not self.count:
            return None
        dates = "date was" if self.count == 1 else "dates were"
        return (
            f"{column}: {self.count:,} {dates} read with {_WORDS[self.order]}, as row {self.shown_by} shows."
        )


def read_days(rows: Sequence[Row], column: str, order: str | None) -> ReadDays:
    """Replace the texts of a column that are dates such as 31/05/2012 by YYYY-MM-DD.

    `order` is DMY or MDY. Without it a date that can be read in one way alone is, and shows the order of the others,
    unless such dates contradict each other. Whatever is not such a text stays as it is; a cell with an error loses its
    value.
    """
    found = [(row, ways) for row in rows if (ways := _ways(row.values.get(column))) is not None]
    shown = {way: row.number for row, ways in reversed(found) for way in ways if len(ways) == 1}
    by_sheet = next(iter(shown)) if len(shown) == 1 and order is None else None
    errors = []
    for row, ways in found:
        way = order or (next(iter(ways)) if len(ways) == 1 else by_sheet)
        if way is not None and way in ways:
            row.values[column] = ways[way].isoformat()
        elif len(set(ways.values())) == 1 and order is None:
            row.values[column] = next(iter(ways.values())).isoformat()
        else:
            errors.append(_error(row, column, ways, order))
            del row.values[column]
    return ReadDays(errors, by_sheet, shown.get(by_sheet) if by_sheet else None, len(found) - len(errors))


def _ways(written: object) -> dict[str, date] | None:
    """Read a date in both ways, those that are dates; None for what is no such text."""
    match = _WRITTEN.fullmatch(written.strip()) if isinstance(written, str) else None
    if match is None:
        return None
    first, second, year = map(int, match.groups())
    ways = {}
    for way, day, month in ((DAY_FIRST, first, second), (MONTH_FIRST, second, first)):
        try:
            ways[way] = date(year, month, day)
        except ValueError:
            continue
    return ways


def _error(row: Row, column: str, ways: dict[str, date], order: str | None) -> RowError:
    written = row.values[column]
    if order is not None and ways:
        (way,) = ways.values()
        problem, remedy = f"is no date with {_WORDS[order]}", f"write it as year-month-day: {way.isoformat()}"
    elif ways:
        one, other = ways.values()
        problem = f"is {one.isoformat()} with the day first, and {other.isoformat()} with the month first"
        remedy = "send the sheet with dates=DMY or dates=MDY, or write it as year-month-day"
    else:
        problem, remedy = "is no date", "write it as year-month-day, such as 2012-05-31"
    return RowError(row.number, column, INVALID, problem, written, remedy)
