"""The rows of a sheet by column, each value as in JSON, and the errors in them."""

from __future__ import annotations

import re
from bisect import bisect_left
from calendar import monthrange
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from decimal import Decimal
from functools import partial
from itertools import chain, islice
from math import isfinite
from typing import Any, NamedTuple
from uuid import UUID

from openpyxl.utils import column_index_from_string, get_column_letter

from school_service.core.errors import SAID_BACK, Invalid
from school_service.sheets.columns import (
    MAX_ROWS,
    CellType,
    Column,
    NumberRange,
    heading_of,
    normalized_name,
    words_of,
)
from school_service.sheets.csv_reader import CsvTable
from school_service.sheets.row_errors import (
    DUPLICATE,
    INVALID,
    REQUIRED,
    UNKNOWN,
    RowError,
    raise_row_errors,
)
from school_service.sheets.sheet_files import SheetFile
from school_service.sheets.xlsx_reader import NOT_COMPUTED, Cell, CellError, Percentage
from school_service.sheets.xml_stream import TOO_MUCH_CONTENT
from tenants.names import is_too_long

DETAILS = "Details"
ANY_NUMBER = "write a number such as 12.5, or leave the cell blank"
"""The remedy for a text in a column of numbers."""
_NO_NUMBER = "is no number"
_ANY_DAY = "write it as year-month-day, such as 2012-05-31"
MAX_HEADER_LENGTH = 120  # characters of a heading, which may be a name that a school gave
MAX_TITLE_ROWS = 10  # rows that are not empty, among which the header is looked for
MAX_EMPTY_ROWS = 100_000  # among the rows of a sheet, and behind them
MAX_IGNORED = 50  # unknown columns that an answer names
MAX_HEADINGS = 30  # headings that an error lists

_RANGE = re.compile(r"\$?([A-Z]{1,3})\$?([0-9]{1,7}):\$?([A-Z]{1,3})\$?([0-9]{1,7})")
_NUMBER = re.compile(r"[+-]?([0-9]{1,30}(\.[0-9]{0,30})?|\.[0-9]{1,30})")
_NUMBERS = (float, int)  # types of cells; a truth value, too, is an int to isinstance
_WITH_COMMA = re.compile(r"[0-9]{1,30},[0-9]{1,30}")
_PERCENTAGE = re.compile(r"[0-9.,]{1,30} ?%")
_DAY_FIRST = re.compile(r"([0-9]{1,2})[/.-]([0-9]{1,2})[/.-]([0-9]{4})")
_WITHOUT_A_NUMBER = frozenset(
    {
        "absent",
        "abs",
        "ab",
        "a",
        "x",
        "-",
        "--",
        "–",  # noqa: RUF001 -- dashes, as people type them
        "—",
        "?",
        "nil",
        "none",
        "n/a",
        "na",
        "sick",
        "exempt",
        "excused",
    }
)


class Row(NamedTuple):
    """A row: its number as in Excel, and the values of its cells by column; a blank cell has none.

    `bad` names the columns with cells not of the column's type: these have no value either.
    """

    number: int
    values: dict[str, Any]
    bad: frozenset[str]


@dataclass(frozen=True, slots=True)
class SheetContent:
    """The rows of a sheet, without empty ones, and the errors of single cells.

    `letters`: of the columns in the sheet, by name. `ignored`: the columns not known, by their texts in the header.
    """

    rows: list[Row]
    errors: list[RowError]
    letters: Mapping[str, str] = field(default_factory=dict)
    ignored: list[str] = field(default_factory=list)

    def with_columns_named(self, names: Mapping[str, str]) -> SheetContent:
        """Give columns other names, by their present ones; columns not named keep theirs."""

        def of(column: str) -> str:
            return names.get(column, column)

        return SheetContent(
            [
                Row(
                    row.number,
                    {of(name): value for name, value in row.values.items()},
                    frozenset(map(of, row.bad)),
                )
                for row in self.rows
            ],
            [replace(error, column=of(error.column)) for error in self.errors],
            {of(name): letter for name, letter in self.letters.items()},
            self.ignored,
        )


class CellFault(ValueError):
    """The fault of a cell and its remedy; `value` is None if the cell has none to show in the message."""

    def __init__(self, problem: str, remedy: str, value: str | None = None) -> None:
        super().__init__(problem)
        self.problem, self.remedy, self.value = problem, remedy, value


def read_sheet(
    workbook: SheetFile,
    title: str,
    columns: Sequence[Column],
    *,
    unknown_column: Callable[[str], str] | None = None,
) -> SheetContent:
    """Read the sheet of that name, or the only one of the workbook, of any name.

    The header may have rows above it, such as a title. A column is found by its name, or else by one of its other
    headings. Columns not among `columns` are ignored and named in the content, unless there is `unknown_column`: it
    makes the problem of a RowError from their name. A row without values in `columns` is empty. Merged cells in a row
    are an error. In a .csv file a row with values beyond the header is one: a value such as `12,5` has been split by
    mistake. Raises Invalid if there is no such sheet or it has more than MAX_ROWS rows or MAX_EMPTY_ROWS empty ones,
    InvalidRows if the header lacks a required column, has one twice or has one refused by `unknown_column`.
    """
    title = _title_of(workbook, title)
    header_number, header, below = _find_header(workbook.rows(title), columns)
    by_position, ignored = _find_columns(header_number, header, columns, unknown_column)
    letters = {column.name: get_column_letter(position) for position, column in by_position.items()}
    to_convert = [
        (position, column.name, column.most, _converter(column)) for position, column in by_position.items()
    ]
    content = SheetContent([], [], letters, ignored)
    width = max(header, default=0) if isinstance(workbook, CsvTable) else None
    empty = 0
    for number, cells in below:
        values: dict[str, Any] = {}
        bad: frozenset[str] = frozenset()
        for position, name, most, convert in to_convert:
            cell = cells.get(position)
            if cell is None or (isinstance(cell, str) and not cell.strip()):
                continue
            try:
                values[name] = convert(cell, most)
            except CellFault as fault:
                bad |= {name}
                shown = _of_formula(cell) or fault
                content.errors.append(
                    RowError(number, name, INVALID, shown.problem, shown.value, shown.remedy)
                )
        if not values and not bad:
            empty += 1
            if empty > MAX_EMPTY_ROWS:
                raise Invalid(TOO_MUCH_CONTENT)
            continue
        if width is not None:
            content.errors.extend(_beyond(number, cells, width))
        if len(content.rows) == MAX_ROWS:
            raise Invalid(f"The sheet has more than {MAX_ROWS:,} rows.")
        content.rows.append(Row(number, values, bad))
    content.errors.extend(_merged(workbook.merged(title), header_number, by_position, content.rows))
    return content


def read_details(workbook: SheetFile) -> dict[str, str] | None:
    """Read the pairs of the sheet Details: the text in its second column by the label in its first.

    Labels are in small letters, without space around them, and `_` is a space. Answers None if the workbook has no such
    sheet. Raises Invalid.
    """
    title = find_sheet(workbook, DETAILS)
    if title is None:
        return None
    return {
        normalized_name(_as_text(cells[1])).replace("_", " "): _as_text(cells.get(2, ""))
        for _, cells in workbook.rows(title)
        if 1 in cells
    }


def check_details(details: Mapping[str, str], record: str, record_id: UUID) -> None:
    """Refuse the sheet of another record: `record` is such as `Assessment`, and Details name its `Assessment ID`.

    Details without the label will do. Raises Invalid.
    """
    named = details.get(normalized_name(f"{record} ID"))
    if named is not None and named.casefold() != str(record_id):
        raise sheet_of_another(details, record, named)


def sheet_of_another(details: Mapping[str, str], record: str, named: str) -> Invalid:
    """Make the error for the sheet of another record, named as its Details name it, or else as `named`.

    Its subject, class, session and term are named too, if Details have them.
    """
    name = details.get(normalized_name(record), named)[:SAID_BACK]
    term = details.get("term name") or details.get("term", "")
    words = [details.get(label, "") for label in ("subject", "class", "session")] + [term]
    about = ", ".join(dict.fromkeys(word for word in words if word and word not in name))
    return Invalid(f"The sheet is that of another {record.lower()}: {name}{f' ({about})' if about else ''}.")


def _beyond(row: int, cells: Mapping[int, Cell], width: int) -> Iterator[RowError]:
    """Find the first filled cell of a row beyond the header with its so many columns."""
    for position, cell in cells.items():
        if position > width and (text := _as_text(cell)):
            remedy = (
                "write numbers with a point, put texts with commas in quotes, and nothing beside the table"
            )
            yield RowError(
                row, get_column_letter(position), INVALID, "is beyond the columns of the header", text, remedy
            )
            return


def _merged(
    ranges: Sequence[str], header: int, columns: Mapping[int, Column], rows: Sequence[Row]
) -> Iterator[RowError]:
    """Find the merged cells, such as B3:C4, in one of the columns and one of the rows.

    The row of their value is unclear.
    """
    numbers = [row.number for row in rows]
    for written in ranges:
        match = _RANGE.fullmatch(written)
        if match is None:
            continue
        left, right = (column_index_from_string(letters) for letters in match.group(1, 3))
        top, bottom = (int(number) for number in match.group(2, 4))
        at = bisect_left(numbers, max(top, header + 1))
        column = next((columns[position] for position in sorted(columns) if left <= position <= right), None)
        if column is not None and at < len(numbers) and numbers[at] <= bottom:
            problem = f"is part of the merged cells {written}"
            yield RowError(
                numbers[at], column.name, INVALID, problem, None, "unmerge them, and write the value of each"
            )


def _title_of(workbook: SheetFile, title: str) -> str:
    """Find the sheet of that name, or the only one. Raises Invalid."""
    sheet = find_sheet(workbook, title)
    if sheet is None:
        if len(workbook.titles) != 1:
            raise Invalid(f"The workbook has no sheet named {title}.")
        sheet = workbook.titles[0]
    return sheet


def find_sheet(workbook: SheetFile, title: str) -> str | None:
    """Find the title of a sheet as the workbook has it, without regard to case; None if there is none."""
    return next((name for name in workbook.titles if normalized_name(name) == normalized_name(title)), None)


def _find_header(
    rows: Iterator[tuple[int, dict[int, Cell]]], columns: Sequence[Column]
) -> tuple[int, dict[int, Cell], Iterator[tuple[int, dict[int, Cell]]]]:
    """Find the header, its number and the rows after it: the first row with the names of all required columns.

    If none of the first rows with a text has all, it is the row with the most names of columns, of several the first:
    the errors are those of this row.
    """
    required = {column.name for column in columns if column.required}
    seen: list[tuple[int, dict[int, Cell]]] = []
    named: list[int] = []
    filled = ((number, cells) for number, cells in rows if any(map(_as_text, cells.values())))
    for number, cells in islice(filled, MAX_TITLE_ROWS):
        names = {column.name for column in _named_columns(cells, columns).values()}
        if required <= names:
            return number, cells, rows
        seen.append((number, cells))
        named.append(len(names))
    if not seen:
        return 1, {}, rows
    best = named.index(max(named))
    return *seen[best], chain(seen[best + 1 :], rows)


def _find_columns(
    row: int,
    header: dict[int, Cell],
    columns: Sequence[Column],
    unknown_column: Callable[[str], str] | None,
) -> tuple[dict[int, Column], list[str]]:
    """Find the columns by their names in the header, each by its position, and the names of those not known."""
    named = _named_columns(header, columns)
    by_position: dict[int, Column] = {}
    letters: dict[str, str] = {}
    unknown: list[str] = []
    errors = []
    for position, cell in sorted(header.items()):
        name = _as_text(cell)
        named_column = named.get(position)
        if named_column is not None:
            if named_column in by_position.values():
                errors.append(
                    RowError(
                        row, named_column.name, DUPLICATE, f"the column {named_column.name} is there twice"
                    )
                )
            by_position[position] = named_column
            letters[named_column.name] = get_column_letter(position)
        elif name:
            unknown.append(name[:SAID_BACK])
            if unknown_column:
                letters[unknown[-1]] = get_column_letter(position)
                errors.append(RowError(row, unknown[-1], UNKNOWN, unknown_column(name)))
    for column in columns:
        if column.required and column not in by_position.values():
            problem = f"the column {column.name} is missing"
            errors.append(RowError(row, column.name, REQUIRED, problem, None, _headings(header, columns)))
    raise_row_errors(errors, letters=letters)
    return by_position, unknown[:MAX_IGNORED]


def _named_columns(header: Mapping[int, Cell], columns: Sequence[Column]) -> dict[int, Column]:
    """Find the columns of a header, by position: by their names, and the columns not so named by a heading.

    A column may be there twice. A text too long for a heading is none.
    """
    texts = {position: _as_text(cell) for position, cell in header.items()}
    names = {position: text for position, text in texts.items() if not is_too_long(text, MAX_HEADER_LENGTH)}
    by_name = {normalized_name(column.name): column for column in columns}
    by_words: dict[str, Column] = {}
    for column in columns:
        by_words.setdefault(words_of(column.name), column)
    by_position: dict[int, Column] = {}
    for position, name in names.items():
        of_name = by_name.get(normalized_name(name)) or by_words.get(words_of(name))
        if of_name is not None:
            by_position[position] = of_name
    by_heading: dict[str, Column] = {}
    times = Counter(heading_of(column.name) for column in columns)
    for column in columns:
        if column not in by_position.values():
            for heading in (column.name, *([column.heading] if column.heading else []), *column.also):
                # Of several columns, such as CA1 (10) and CA1 (20), CA1 means none.
                if times[heading_of(heading)] < 2:
                    by_heading.setdefault(heading_of(heading), column)
    for position in names.keys() - by_position.keys():
        of_heading = by_heading.get(heading_of(names[position]))
        if of_heading is not None:
            by_position[position] = of_heading
    return by_position


def _headings(header: Mapping[int, Cell], columns: Sequence[Column]) -> str:
    """List the headings of a sheet, those it needs and those it may have."""
    there = [_as_text(header[position])[:SAID_BACK] for position in sorted(header)]
    shown = [name for name in there if name][:MAX_HEADINGS]
    needed, further = (
        [column.name for column in columns if column.required is required][:MAX_HEADINGS]
        for required in (True, False)
    )
    has = f"the headings are {', '.join(shown)}" if shown else "there are no headings"
    may_have = f", and may be {', '.join(further)}" if further else ""
    return f"{has}; needed are {', '.join(needed)}{may_have}"


def _of_formula(cell: Cell) -> CellFault | None:
    """Give the fault of a cell with a formula without a result, or with an error; None for any other."""
    if cell is NOT_COMPUTED:
        return CellFault(
            "has a formula without a result", "open the sheet in a spreadsheet program, and save it again"
        )
    if isinstance(cell, CellError):
        return CellFault(
            "is the error of a formula", "mend the formula, or write the value itself", cell.code
        )
    return None


def too_long(text: str, most: int) -> CellFault:
    """Report a text of more characters than allowed; the text itself, perhaps a password, is not shown."""
    return CellFault(f"has {len(text):,} characters", f"shorten it to {most:,}")


def _text(cell: Any, most: int) -> str:
    if isinstance(cell, str):
        if is_too_long(cell, most):
            raise too_long(cell, most)
        return cell
    if isinstance(cell, bool | int | float | Percentage):
        return _as_text(cell)
    raise CellFault(
        "is a date or a time to the spreadsheet program",
        "format the column as text, and write it again",
        _as_text(cell),
    )


def _number(cell: Any, most: int) -> Decimal:
    if type(cell) in _NUMBERS and isfinite(cell):
        return _to_decimal(cell)
    if isinstance(cell, str) and is_too_long(cell, most):
        raise CellFault(_NO_NUMBER, ANY_NUMBER, cell)
    if isinstance(cell, str) and _NUMBER.fullmatch(cell.strip()):
        return Decimal(cell.strip())
    raise _no_number(cell)


def _no_number(cell: Any) -> CellFault:
    text = str(cell) if isinstance(cell, float) else _as_text(cell)
    if isinstance(cell, Percentage) or _PERCENTAGE.fullmatch(text):
        return CellFault("is a percentage", "write the number itself, without %", text)
    if not isinstance(cell, str):
        return CellFault(_NO_NUMBER, "format the cell as a number, and write it again", text)
    if _WITH_COMMA.fullmatch(text):
        return CellFault(_NO_NUMBER, f"write {text.replace(',', '.')}", text)
    if text.casefold().strip(".") in _WITHOUT_A_NUMBER:
        return CellFault(_NO_NUMBER, "leave the cell blank", text)
    return CellFault(_NO_NUMBER, ANY_NUMBER, text)


def _day(cell: Any, most: int) -> str:
    if isinstance(cell, datetime):
        return cell.date().isoformat()
    if isinstance(cell, date):
        return cell.isoformat()
    if isinstance(cell, str) and not is_too_long(cell, most):
        return cell.strip()
    raise CellFault("is no date", _ANY_DAY, _as_text(cell))


def day_remedy(text: str) -> str:
    """Say how to write a date in place of a text of another form; with the date itself if only one can be meant."""
    written = _DAY_FIRST.fullmatch(text)
    if written:
        first, second, year = map(int, written.groups())
        day, month = (first, second) if first > 12 or first == second else (second, first)
        unambiguous = day > 12 or first == second
        if unambiguous and 1 <= month <= 12 and year > 0 and 1 <= day <= monthrange(year, month)[1]:
            return f"write it as year-month-day: {date(year, month, day).isoformat()}"
    return _ANY_DAY


_CONVERTERS: dict[CellType, Callable[[Any, int], Any]] = {
    CellType.TEXT: _text,
    CellType.NUMBER: _number,
    CellType.DAY: _day,
}


def _converter(column: Column) -> Callable[[Any, int], Any]:
    words = column.rule.words if isinstance(column.rule, NumberRange) else ()
    return partial(_number_or_word, words) if words else _CONVERTERS[column.cell_type]


def _number_or_word(words: Sequence[str], cell: Any, most: int) -> Decimal | str:
    written = cell.strip().upper() if isinstance(cell, str) and not is_too_long(cell, most) else ""
    return written if written in words else _number(cell, most)


def _as_text(cell: Cell) -> str:
    """Write a cell as text, without the space around it; a number without an exponent."""
    if isinstance(cell, str):
        return cell.strip()
    if isinstance(cell, bool):
        return "TRUE" if cell else "FALSE"
    if isinstance(cell, int | float) and isfinite(cell):
        return format(_to_decimal(cell), "f")
    return cell.code if isinstance(cell, CellError) else str(cell)


def _to_decimal(number: int | float) -> Decimal:
    """Answer the number as Excel shows it: Excel keeps 15 digits, and so 0.1 + 0.2 is 0.3."""
    if isinstance(number, int):
        return Decimal(number)
    text = format(number, ".15g")
    rounded = Decimal(text)
    if "." in text and "e" not in text:
        return rounded
    return Decimal(int(rounded)) if rounded == rounded.to_integral_value() else rounded
