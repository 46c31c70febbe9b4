"""The rows of a sheet by column, each value as in JSON, and the errors in them."""

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
MAX_HEADER_LENGTH = 120  # characters of a header that an error names

_NUMBER = re.compile(r"[+-]?([0-9]{1,30}(\.[0-9]{0,30})?|\.[0-9]{1,30})")


@dataclass(frozen=True, slots=True)
class Row:
    """A row: its number as in Excel, and the values of its cells by column; a blank cell has none.

    `bad` names the columns whose cells do not have the column's type: these have no value either.
    """

    number: int
    values: dict[str, Any]
    bad: frozenset[str]


@dataclass(frozen=True, slots=True)
class SheetContent:
    """The rows of a sheet but the empty ones, and the errors of single cells."""

    rows: list[Row]
    errors: list[RowError]


def read_sheet(
    workbook: Workbook,
    title: str,
    columns: Sequence[Column],
    *,
    unknown_column: Callable[[str], str] | None = None,
) -> SheetContent:
    """Read the sheet of that name, or the only one of the workbook, whatever its name.

    The first row that is not empty is the header. Columns that are not among `columns` are ignored, unless
    there is `unknown_column`, which makes the error message from their name. A row that has values in none
    of `columns` is empty. Raises Invalid where there is no such sheet or it has more than MAX_ROWS rows,
    InvalidRows where the header lacks a required column, has one twice or has one that is refused.
    """
    filled = _filled_rows(workbook, title)
    header_number, header = next(filled, (1, {}))
    by_position = _find_columns(header_number, header, columns, unknown_column)
    to_convert = [
        (position, column.name, _CONVERTERS[column.cell_type]) for position, column in by_position.items()
    ]
    content = SheetContent([], [])
    for number, cells in filled:
        values: dict[str, Any] = {}
        bad: set[str] = set()
        for position, name, convert in to_convert:
            try:
                value = _value(cells.get(position), convert)
            except ValueError as error:
                bad.add(name)
                content.errors.append(RowError(number, name, INVALID, str(error)))
            else:
                if value is not None:
                    values[name] = value
        if not values and not bad:
            continue
        if len(content.rows) == MAX_ROWS:
            raise Invalid(f"The sheet has more than {MAX_ROWS:,} rows.")
        content.rows.append(Row(number, values, frozenset(bad)))
    return content


def read_details(workbook: Workbook) -> dict[str, str] | None:
    """Read the pairs of the sheet Details: the text in its second column by the label in its first.

    Labels are as `normalized_name` makes them, and `_` is a space. None where the workbook has no such sheet.
    Raises Invalid.
    """
    title = _find_sheet(workbook, DETAILS)
    if title is None:
        return None
    return {
        normalized_name(_as_text(cells[1])).replace("_", " "): _as_text(cells.get(2, ""))
        for _, cells in workbook.rows(title)
        if 1 in cells
    }


def check_details(details: Mapping[str, str], record: str, record_id: UUID) -> None:
    """Refuse the sheet of another record: `record` is such as `Assessment`, and Details name its `Assessment ID`.

    Details without that label will do. Raises Invalid.
    """
    named = details.get(normalized_name(f"{record} ID"))
    if named is not None and named.casefold() != str(record_id):
        raise sheet_of_another(details, record, named)


def sheet_of_another(details: Mapping[str, str], record: str, named: str) -> Invalid:
    """Make the error of the sheet of another record, by the name that its Details give it, else by `named`."""
    return Invalid(
        f"The sheet is that of another {record.lower()}: {details.get(normalized_name(record), named)}."
    )


def _filled_rows(workbook: Workbook, title: str) -> Iterator[tuple[int, dict[int, Cell]]]:
    """The rows of the sheet that are not empty."""
    found = _find_sheet(workbook, title)
    if found is None:
        if len(workbook.titles) != 1:
            raise Invalid(f"The workbook has no sheet named {title}.")
        found = workbook.titles[0]
    for number, cells in workbook.rows(found):
        if any(_as_text(cell) for cell in cells.values()):
            yield number, cells


def _find_sheet(workbook: Workbook, title: str) -> str | None:
    return next((name for name in workbook.titles if normalized_name(name) == normalized_name(title)), None)


def _find_columns(
    row: int,
    header: dict[int, Cell],
    columns: Sequence[Column],
    unknown_column: Callable[[str], str] | None,
) -> dict[int, Column]:
    """Find the columns by their names in the header; each by its position in the sheet."""
    by_name = {normalized_name(column.name): column for column in columns}
    by_position: dict[int, Column] = {}
    errors = []
    for position, cell in sorted(header.items()):
        name = _as_text(cell)
        column = by_name.get(normalized_name(name))
        if column is None:
            if name and unknown_column:
                errors.append(RowError(row, name[:MAX_HEADER_LENGTH], UNKNOWN, unknown_column(name)))
            continue
        if column in by_position.values():
            errors.append(RowError(row, column.name, DUPLICATE, "The column is there twice."))
        by_position[position] = column
    for column in columns:
        if column.required and column not in by_position.values():
            errors.append(RowError(row, column.name, REQUIRED, "The column is missing."))
    raise_row_errors(errors)
    return by_position


def _value(cell: Cell | None, convert: Callable[[Any], Any]) -> Any:
    """Convert a cell to the type of its column; None where it is blank. Raises ValueError with the message."""
    if cell is None or (isinstance(cell, str) and not cell.strip()):
        return None
    if cell is NOT_COMPUTED:
        raise ValueError("Holds a formula without a result: open the workbook in Excel and save it again.")
    if isinstance(cell, CellError):
        raise ValueError(f"Holds the error {cell.code}.")
    return convert(cell)


def _text(cell: Any) -> str:
    if isinstance(cell, str | bool | int | float):
        return cell if isinstance(cell, str) else _as_text(cell)
    raise ValueError("Is a date or a time to Excel: format the column as text and type it again.")


def _number(cell: Any) -> Decimal:
    if isinstance(cell, str) and _NUMBER.fullmatch(cell.strip()):
        return Decimal(cell.strip())
    if isinstance(cell, int | float) and not isinstance(cell, bool) and isfinite(cell):
        return _to_decimal(cell)
    raise ValueError("Is not a number.")


def _day(cell: Any) -> str:
    if isinstance(cell, datetime):
        return cell.date().isoformat()
    if isinstance(cell, date):
        return cell.isoformat()
    if isinstance(cell, str):
        return cell.strip()
    raise ValueError("Is not a date.")


_CONVERTERS: dict[CellType, Callable[[Any], Any]] = {
    CellType.TEXT: _text,
    CellType.NUMBER: _number,
    CellType.DAY: _day,
}


def _as_text(cell: Cell) -> str:
    """A cell as text, trimmed; a number without an exponent."""
    if isinstance(cell, str):
        return cell.strip()
    if isinstance(cell, bool):
        return "TRUE" if cell else "FALSE"
    if isinstance(cell, int | float) and isfinite(cell):
        return format(_to_decimal(cell), "f")
    return cell.code if isinstance(cell, CellError) else str(cell)


def _to_decimal(number: int | float) -> Decimal:
    """The number that Excel shows: it keeps 15 digits, so that 0.1 + 0.2 is 0.3."""
    if isinstance(number, int):
        return Decimal(number)
    rounded = Decimal(format(number, ".15g"))
    return Decimal(int(rounded)) if rounded == rounded.to_integral_value() else rounded
