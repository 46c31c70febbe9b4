"""Sheets with a row for each student of a class: the rows are matched to students by admission number."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
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
"""The columns that identify the student of a row."""

ClassMember = TypeVar("ClassMember")


def match_students(
    content: SheetContent,
    students: Mapping[str, ClassMember],
    *,
    not_in_class: str,
    validate: Callable[[Row], Iterable[RowError]],
) -> list[tuple[ClassMember, Row]]:
    """Find the student of each row among these, by admission number; the names are for people to read.

    `not_in_class` is the message for a student of the school who is not among them; `validate` yields the
    errors of the other values of a row. Raises InvalidRows naming every bad row.
    """
    numbers = [str(row.values.get(ADMISSION_NUMBER, "")).strip() for row in content.rows]
    raise_row_errors(_errors(content, numbers, students, not_in_class, validate))
    return [(students[number], row) for number, row in zip(numbers, content.rows, strict=True)]


def _errors(
    content: SheetContent,
    numbers: list[str],
    students: Collection[str],
    not_in_class: str,
    validate: Callable[[Row], Iterable[RowError]],
) -> Iterator[RowError]:
    yield from (error for error in content.errors if error.column not in _NAMES)
    known = _known_to_school(set(numbers).difference(students))
    first: dict[str, int] = {}
    for number, row in zip(numbers, content.rows, strict=True):
        if ADMISSION_NUMBER in row.bad:
            pass
        elif not number:
            yield RowError(row.number, ADMISSION_NUMBER, REQUIRED, "Is missing.")
        elif first.setdefault(number, row.number) != row.number:
            yield RowError(row.number, ADMISSION_NUMBER, DUPLICATE, f"Is on row {first[number]} already.")
        elif number not in students and number in known:
            yield RowError(row.number, ADMISSION_NUMBER, INVALID, not_in_class)
        elif number not in students:
            yield RowError(row.number, ADMISSION_NUMBER, UNKNOWN, "No student has this admission number.")
        yield from validate(row)


def _known_to_school(numbers: set[str]) -> set[str]:
    """Find which of the admission numbers are those of students of the school."""
    if not numbers:
        return set()
    return set(
        db.session.scalars(select(Student.admission_number).where(Student.admission_number.in_(numbers)))
    )


_NAMES = frozenset(column.name for column in STUDENT_COLUMNS if not column.required)
