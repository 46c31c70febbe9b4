"""Rosters: sheets with a row for each student of a class, found by admission number."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TypeVar

from sqlalchemy import select

from school_service.core.database import db
from school_service.features.students.models import Student
from school_service.sheets.columns import Column
from school_service.sheets.row_errors import DUPLICATE, INVALID, REQUIRED, UNKNOWN, RowError, raise_row_errors
from school_service.sheets.sheet_reader import Row, SheetContent

ADMISSION_NUMBER = "admission_number"
STUDENT_COLUMNS = (
    Column(ADMISSION_NUMBER, required=True, locked=True, width=20),
    Column("first_name", locked=True, width=20),
    Column("last_name", locked=True, width=20),
)
"""The columns that say whose row it is."""

Found = TypeVar("Found")


@dataclass(frozen=True, slots=True)
class RowCounts:
    """How many rows had something new, how many changed what was there, and how many only held that."""

    created: int
    updated: int
    unchanged: int

    def of_rows(self, rows: int) -> dict[str, int]:
        """Tell what a sheet of so many rows did; the others of them were blank."""
        return {
            "rows": rows,
            "created": self.created,
            "updated": self.updated,
            "unchanged": self.unchanged,
            "blank": rows - self.created - self.updated - self.unchanged,
        }


def match_students(
    content: SheetContent,
    students: Mapping[str, Found],
    *,
    absent: str,
    judge: Callable[[Row], Iterable[RowError]],
) -> list[tuple[Found, Row]]:
    """Find the student of each row among these, by admission number; the names are for people to read.

    `absent` says what is wrong with a student of the school who is not among them, `judge` what is wrong
    with the other values of a row. Raises InvalidRows naming every bad row.
    """
    numbers = [str(row.values.get(ADMISSION_NUMBER, "")).strip() for row in content.rows]
    raise_row_errors(_problems(content, numbers, students, absent, judge))
    return [(students[number], row) for number, row in zip(numbers, content.rows, strict=True)]


def _problems(
    content: SheetContent,
    numbers: list[str],
    students: Collection[str],
    absent: str,
    judge: Callable[[Row], Iterable[RowError]],
) -> Iterator[RowError]:
    yield from (problem for problem in content.problems if problem.column not in _NAMES)
    known = _known(set(numbers).difference(students))
    first: dict[str, int] = {}
    for number, row in zip(numbers, content.rows, strict=True):
        if ADMISSION_NUMBER in row.bad:
            pass
        elif not number:
            yield RowError(row.number, ADMISSION_NUMBER, REQUIRED, "Is missing.")
        elif first.setdefault(number, row.number) != row.number:
            yield RowError(row.number, ADMISSION_NUMBER, DUPLICATE, f"Is on row {first[number]} already.")
        elif number not in students and number in known:
            yield RowError(row.number, ADMISSION_NUMBER, INVALID, absent)
        elif number not in students:
            yield RowError(row.number, ADMISSION_NUMBER, UNKNOWN, "No student has this admission number.")
        yield from judge(row)


def _known(numbers: set[str]) -> set[str]:
    """Tell which admission numbers the school knows."""
    if not numbers:
        return set()
    return set(
        db.session.scalars(select(Student.admission_number).where(Student.admission_number.in_(numbers)))
    )


_NAMES = frozenset(column.name for column in STUDENT_COLUMNS if not column.required)
