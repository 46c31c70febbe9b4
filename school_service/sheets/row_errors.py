"""How the errors in the rows of a sheet are reported: by row as in Excel, column, code and message.

A message names the cell, the value, the person of the row, and the remedy:
`D7: "12,5" is no number for Ngọzi Eze (QAC/2022/014): write 12.5`. Of a record in a list of the body it begins with the
person: `Ngọzi Eze (QAC/2022/014), score: "20.5" is no score: write a number from 0 to 20`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from school_service.core.errors import (
    ANSWER_LIMIT,
    InvalidRows,
    RowsOfUnknown,
    RowsRefused,
)

MAX_BAD_ROWS = 200
MAX_ERRORS_OF_ROW = 200
MAX_SHOWN = 60  # characters of a value that a message repeats

REQUIRED, INVALID, DUPLICATE, TAKEN, UNKNOWN = "required", "invalid", "duplicate", "taken", "unknown"
CHANGED = "changed"
PERSON = "student"
"""The column of the person of a record in a list of the body."""


@dataclass(frozen=True, slots=True)
class RowError:
    """An error in a cell; `code` is one of the above: DUPLICATE in the sheet, TAKEN in the school.

    `problem` is a part of a sentence, such as `is no number`, about `value`, the text in the cell, if there is one;
    `remedy` is the advice to its author. `of_person`: the message names the person of the row; not if the person is
    wrong.
    """

    row: int
    column: str
    code: str
    problem: str
    value: str | None = None
    remedy: str | None = None
    of_person: bool = True

    def message(self, letter: str | None, person: str | None, member: str | None = None) -> str:
        """Say it in one line: the column's letter in the sheet and the person of the row are named if they are known.

        Of a record in a list of the body, its `member` of this name, the place is named if the person is not known.
        """
        value = "" if self.value is None else f'"{_in_one_line(self.value)}" '
        remedy = f": {self.remedy}" if self.remedy else ""
        if member is not None:
            return f"{self._record(person, member)}: {value}{self.problem}{remedy}"
        cell = f"{letter}{self.row}" if letter else f"row {self.row}"
        whose = f" for {person}" if person and self.of_person else ""
        return f"{cell}: {value}{self.problem}{whose}{remedy}"

    def _record(self, person: str | None, member: str) -> str:
        if person is None:
            return f"{member}.{self.row}.{self.column}"
        return person if self.column == PERSON else f"{person}, {self.column.replace('_', ' ')}"


@dataclass(frozen=True, slots=True)
class Reported:
    """Errors by row, as the answer lists them, how many there are in all, and whether each names nothing here."""

    rows: list[Mapping[str, object]]
    problems: int
    bad_rows: int
    all_unknown: bool

    @property
    def summary(self) -> str | None:
        """Count the errors unless all are listed."""
        if len(self.rows) == self.problems:
            return None
        return (
            f"There are {self.problems:,} problems in {self.bad_rows:,} rows; those of the first are listed."
        )


def raise_row_errors(
    errors: Iterable[RowError],
    *,
    letters: Mapping[str, str] | None = None,
    people: Mapping[int, str] | None = None,
    member: str | None = None,
) -> None:
    """Raise InvalidRows if there are errors: those of the first 200 bad rows, at most 200 of each.

    `letters`: of the columns in the sheet, by name. `people`: the person of a row, by its number. `member`: the list in
    the body, if it is no sheet; rows are numbered from 0 then.
    """
    reported = _reported(errors, letters or {}, people or {}, member)
    if reported.rows:
        kind = RowsOfUnknown if reported.all_unknown else InvalidRows
        raise kind(reported.rows, reported.bad_rows, reported.summary, member=member)


def raise_refused_rows(
    kind: type[RowsRefused],
    errors: Iterable[RowError],
    *,
    letters: Mapping[str, str] | None = None,
    people: Mapping[int, str],
    member: str | None = None,
) -> None:
    """Raise an error of this kind, such as RowsChanged, if there are errors; else as above."""
    reported = _reported(errors, letters or {}, people, member)
    if reported.rows:
        raise kind(reported.rows, reported.bad_rows, reported.summary, member=member)


def _reported(
    errors: Iterable[RowError], letters: Mapping[str, str], people: Mapping[int, str], member: str | None
) -> Reported:
    by_row: dict[int, list[Mapping[str, object]]] = {}
    rows: set[int] = set()
    problems = length = 0
    all_unknown = True
    for error in sorted(errors, key=lambda error: error.row):
        problems += 1
        # A heading that nobody knows has no value: it names no record.
        all_unknown = all_unknown and error.code == UNKNOWN and error.value is not None
        rows.add(error.row)
        if length > ANSWER_LIMIT or (len(by_row) == MAX_BAD_ROWS and error.row not in by_row):
            # An answer has no room for more.
            continue
        of_row = by_row.setdefault(error.row, [])
        if len(of_row) < MAX_ERRORS_OF_ROW:
            message = error.message(letters.get(error.column), people.get(error.row), member)
            of_row.append({"row": error.row, "column": error.column, "code": error.code, "message": message})
            length += len(message)
    return Reported(
        [error for of_row in by_row.values() for error in of_row], problems, len(rows), all_unknown
    )


def _in_one_line(value: str) -> str:
    """Show a value in one line, cut if it is long."""
    line = " ".join(value.split())
    return line if len(line) <= MAX_SHOWN else f"{line[: MAX_SHOWN - 1]}…"
