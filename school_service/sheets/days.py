"""Dates in a sheet as texts, such as 31/05/2012: day first or month first, as the sheet shows or as is told."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date

from school_service.sheets.row_errors import INVALID, RowError
from school_service.sheets.sheet_reader import Row

DAY_FIRST, MONTH_FIRST = DAY_ORDERS = ("DMY", "MDY")
_WORDS = {DAY_FIRST: "the day first", MONTH_FIRST: "the month first"}

_SHOWN = 5  # rows that a warning names
_MONTHS = 12
_ISO = re.compile(r"[0-9]{4}-([0-9]{2})-([0-9]{2})")
_WRITTEN = re.compile(r"([0-9]{1,2})\s*+[/.-]\s*+([0-9]{1,2})\s*+[/.-]\s*+([0-9]{4})")


@dataclass(frozen=True, slots=True)
class ReadDays:
    """The outcome of reading a column: the errors, and the order of day and month, if any had to be found."""

    errors: list[RowError]
    order: str | None = None
    shown_by: int | None = None
    """The row with the proof of the order; None if it was told."""
    count: int = 0
    beside: tuple[int, ...] = ()
    """The rows with dates proper, beside such texts: with day and month exchanged they would be other dates."""

    def warnings(self, column: str) -> list[str]:
        """Say how the texts were read, if the sheet itself showed it, and name dates perhaps read wrongly before."""
        said = [self._reading(column)] if self.shown_by is not None and self.count else []
        if self.beside:
            rows = ", ".join(map(str, self.beside[:_SHOWN])) + ", …" * (len(self.beside) > _SHOWN)
            said.append(
                f"{column}: the sheet has dates and texts that look like dates. The spreadsheet program may have taken "
                f"the month of the first for the day: compare {'row' if len(self.beside) == 1 else 'rows'} {rows}."
            )
        return said

    def _reading(self, column: str) -> str:
        dates = "date was" if self.count == 1 else "dates were"
        words = _WORDS[self.order or DAY_FIRST]
        return f"{column}: {self.count:,} {dates} read with {words}, as row {self.shown_by} shows."


def read_days(rows: Sequence[Row], column: str, order: str | None) -> ReadDays:
    """Replace dates such as 31/05/2012, written as texts of a column, by YYYY-MM-DD.

    `order` is DMY or MDY. Without it a date readable in one way alone is read so, and shows the order of the others,
    unless such dates contradict each other. Any other value stays as it is; a cell with an error loses its value.
    """
    dates = [(row, ways) for row in rows if (ways := _ways(row.values.get(column))) is not None]
    beside = tuple(row.number for row in rows if dates and _may_be_exchanged(row.values.get(column)))
    shown = {way: row.number for row, ways in reversed(dates) for way in ways if len(ways) == 1}
    by_sheet = next(iter(shown)) if len(shown) == 1 and order is None else None
    errors = []
    for row, ways in dates:
        way = order or (next(iter(ways)) if len(ways) == 1 else by_sheet)
        if way is not None and way in ways:
            row.values[column] = ways[way].isoformat()
        elif len(set(ways.values())) == 1 and order is None:
            row.values[column] = next(iter(ways.values())).isoformat()
        else:
            errors.append(_error(row, column, ways, order))
            del row.values[column]
    shown_by = shown[by_sheet] if by_sheet else None
    return ReadDays(errors, by_sheet, shown_by, len(dates) - len(errors), beside)


def _may_be_exchanged(written: object) -> bool:
    """Tell whether a day, YYYY-MM-DD, would be another with day and month exchanged."""
    match = _ISO.fullmatch(written) if isinstance(written, str) else None
    return match is not None and match[1] != match[2] and int(match[2]) <= _MONTHS


def _ways(written: object) -> dict[str, date] | None:
    """Read a date in both ways, as far as they give dates; None for a value of another form."""
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
        day_first, other = ways.values()
        problem = (
            f"is {day_first.isoformat()} with the day first, and {other.isoformat()} with the month first"
        )
        remedy = "send the sheet with dates=DMY or dates=MDY, or write it as year-month-day"
    else:
        problem, remedy = "is no date", "write it as year-month-day, such as 2012-05-31"
    return RowError(row.number, column, INVALID, problem, written, remedy)
