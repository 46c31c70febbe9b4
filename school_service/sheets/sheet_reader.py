"""The rows of a sheet by column, each value as JSON would hold it, and what is wrong with them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from math import isfinite
from typing import Any
from uuid import UUID

from school_service.core.errors import Invalid
from school_service.sheets.columns import MAX_ROWS, CellType, Column, normalized_name
from school_service.sheets.row_errors import DUPLICATE, INVALID, REQUIRED, UNKNOWN, RowError, raise_row_errors
from school_service.sheets.xlsx_reader import NOT_COMPUTED, Cell, CellError, Workbook

DETAILS = "Details"
MAX_HEADER_LENGTH = 120  # characters of a header that are told

_NUMBER = re.compile(r"[+-]?([0-9]{1,30}(\.[0-9]{0,30})?|\.[0-9]{1,30})")


@dataclass(frozen=True, slots=True)
class Row:
    """A row: its number as in Excel, and by column what its cells hold; a blank cell is not there.

    `bad` names the columns whose cells hold what the column can't: these have no value either.
    """

    number: int
    values: dict[str, Any]
    bad: frozenset[str]


@dataclass(frozen=True, slots=True)
class SheetContent:
    """What a sheet holds: its rows but the empty ones, and what is wrong with single cells."""

    rows: list[Row]
    problems: list[RowError]


def read_sheet(
    workbook: Workbook,
    title: str,
    columns: Sequence[Column],
    *,
    refusal: Callable[[str], str] | None = None,
) -> SheetContent:
    """Read the sheet of that name, or the only one of the workbook, whatever its name.

    The first row that is not empty is the header. Columns that are not asked for are ignored, unless
    `refusal` says of their names what is wrong with them. A row with nothing else is empty. Raises Invalid
    where there is no such sheet or it has more than MOST_ROWS rows, InvalidRows where the header lacks a
    required column, has one twice or has one to be refused.
    """
    lines = _lines(workbook, title)
    header_row, header = next(lines, (1, {}))
    places = _places(header_row, header, columns, refusal)
    content = SheetContent([], [])
    for number, cells in lines:
        values: dict[str, Any] = {}
        bad: set[str] = set()
        for place, column in places.items():
            try:
                value = _value(cells.get(place), column.kind)
            except ValueError as error:
                bad.add(column.name)
                content.problems.append(RowError(number, column.name, INVALID, str(error)))
            else:
                if value is not None:
                    values[column.name] = value
        if not values and not bad:
            continue
        if len(content.rows) == MAX_ROWS:
            raise Invalid(f"The sheet has more than {MAX_ROWS:,} rows.")
        content.rows.append(Row(number, values, frozenset(bad)))
    return content


def read_details(workbook: Workbook) -> dict[str, str] | None:
    """Read the pairs of the sheet Details: what stands in its second column by the label in its first.

    Labels are as names are `compared`, and `_` is a space. None where the workbook has no such sheet. Raises Invalid.
    """
    title = _find(workbook, DETAILS)
    if title is None:
        return None
    return {
        normalized_name(_shown(cells[1])).replace("_", " "): _shown(cells.get(2, ""))
        for _, cells in workbook.rows(title)
        if 1 in cells
    }


def check_details(details: Mapping[str, str], kind: str, record_id: UUID) -> None:
    """Refuse what is the sheet of another record: its Details name one of this kind, such as `Assessment ID`.

    Details that do not name one will do. Raises Invalid.
    """
    named = details.get(normalized_name(f"{kind} ID"))
    if named is not None and named.casefold() != str(record_id):
        raise sheet_of_another(details, kind, named)


def sheet_of_another(details: Mapping[str, str], kind: str, named: str) -> Invalid:
    """Say that a sheet is that of another record, by the name that its Details give it or else as it is `named`."""
    return Invalid(
        f"The sheet is that of another {kind.lower()}: {details.get(normalized_name(kind), named)}."
    )


def _lines(workbook: Workbook, title: str) -> Iterator[tuple[int, dict[int, Cell]]]:
    """The rows of the sheet that have something in them."""
    found = _find(workbook, title)
    if found is None:
        if len(workbook.titles) != 1:
            raise Invalid(f"The workbook has no sheet named {title}.")
        found = workbook.titles[0]
    for number, cells in workbook.rows(found):
        if any(_shown(cell) for cell in cells.values()):
            yield number, cells


def _find(workbook: Workbook, title: str) -> str | None:
    return next((name for name in workbook.titles if normalized_name(name) == normalized_name(title)), None)


def _places(
    row: int,
    header: dict[int, Cell],
    columns: Sequence[Column],
    refusal: Callable[[str], str] | None,
) -> dict[int, Column]:
    """Find the columns: each by its place in the sheet."""
    named = {normalized_name(column.name): column for column in columns}
    places: dict[int, Column] = {}
    problems = []
    for place, cell in sorted(header.items()):
        name = _shown(cell)
        column = named.get(normalized_name(name))
        if column is None:
            if name and refusal:
                problems.append(RowError(row, name[:MAX_HEADER_LENGTH], UNKNOWN, refusal(name)))
            continue
        if column in places.values():
            problems.append(RowError(row, column.name, DUPLICATE, "The column is there twice."))
        places[place] = column
    for column in columns:
        if column.required and column not in places.values():
            problems.append(RowError(row, column.name, REQUIRED, "The column is missing."))
    raise_row_errors(problems)
    return places


def _value(cell: Cell | None, kind: CellType) -> Any:
    """Take a cell for what its column holds; None where it is blank. Raises ValueError, in words."""
    if cell is None or (isinstance(cell, str) and not cell.strip()):
        return None
    if cell is NOT_COMPUTED:
        raise ValueError("Holds a formula without a result: open the workbook in Excel and save it again.")
    if isinstance(cell, CellError):
        raise ValueError(f"Holds the error {cell.code}.")
    return _TAKERS[kind](cell)


def _text(cell: Any) -> str:
    if isinstance(cell, str | bool | int | float):
        return cell if isinstance(cell, str) else _shown(cell)
    raise ValueError("Is a date or a time to Excel: format the column as text and type it again.")


def _number(cell: Any) -> Decimal:
    if isinstance(cell, str) and _NUMBER.fullmatch(cell.strip()):
        return Decimal(cell.strip())
    if isinstance(cell, int | float) and not isinstance(cell, bool) and isfinite(cell):
        return _exact(cell)
    raise ValueError("Is not a number.")


def _day(cell: Any) -> str:
    if isinstance(cell, datetime):
        return cell.date().isoformat()
    if isinstance(cell, date):
        return cell.isoformat()
    if isinstance(cell, str):
        return cell.strip()
    raise ValueError("Is not a date.")


_TAKERS = {CellType.TEXT: _text, CellType.NUMBER: _number, CellType.DAY: _day}


def _shown(cell: Cell) -> str:
    """A cell as text, trimmed; a number without an exponent."""
    if isinstance(cell, str):
        return cell.strip()
    if isinstance(cell, bool):
        return "TRUE" if cell else "FALSE"
    if isinstance(cell, int | float) and isfinite(cell):
        return format(_exact(cell), "f")
    return cell.code if isinstance(cell, CellError) else str(cell)


def _exact(number: int | float) -> Decimal:
    """The number that Excel shows: it keeps 15 digits, so that 0.1 + 0.2 is 0.3."""
    if isinstance(number, int):
        return Decimal(number)
    rounded = Decimal(format(number, ".15g"))
    return Decimal(int(rounded)) if rounded == rounded.to_integral_value() else rounded
