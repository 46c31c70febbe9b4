"""Sheets with a row for each student of a class: the rows are matched to students by admission number.

The names in a row are compared with the student's: a row with another's name was sorted, or pasted, apart from its
score.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TypeVar

from sqlalchemy import func

from school_service.core.facts import headed
from school_service.core.texts import SURNAME_FIRST, folded_words
from school_service.features.people.models import Student, User
from school_service.features.people.students.naming import (
    ListedStudent,
    Named,
    name_with_number,
    nobody,
    students_where,
)
from school_service.sheets.charsets import charset_errors
from school_service.sheets.columns import CellType, Column, normalized_name
from school_service.sheets.row_errors import DUPLICATE, INVALID, REQUIRED, UNKNOWN, RowError, raise_row_errors
from school_service.sheets.sheet_reader import Row, SheetContent
from tenants.names import composed

ADMISSION_NUMBER, FIRST_NAME, LAST_NAME = "admission_number", "first_name", "last_name"
NAME = "name"
"""A column with the whole name, in place of its parts."""
_ALSO = {column.name: heading.others for model in (User, Student) for column, heading in headed(model)}
STUDENT_COLUMNS = (
    Column(
        ADMISSION_NUMBER,
        required=True,
        locked=True,
        width=20,
        heading="Admission number",
        also=_ALSO[ADMISSION_NUMBER],
    ),
    Column(FIRST_NAME, locked=True, width=20, heading="First name", also=_ALSO[FIRST_NAME]),
    Column(LAST_NAME, locked=True, width=20, heading="Last name", also=_ALSO[LAST_NAME]),
)
"""The columns identifying the student of a row."""

SERIAL_NUMBER = Column("S/N", CellType.NUMBER, locked=True, width=6)
"""The column with the place of a row, for readers of the sheet on paper."""


def student_columns(name_order: str) -> tuple[Column, ...]:
    """Give the columns identifying the student of a row, the names in the order of the school's papers."""
    number, first, last = STUDENT_COLUMNS
    return (number, last, first) if name_order == SURNAME_FIRST else STUDENT_COLUMNS


def without_serial_number(content: SheetContent) -> SheetContent:
    """Leave the serial numbers out of the columns that an upload says it has ignored."""
    content.ignored[:] = [
        name for name in content.ignored if normalized_name(name) != normalized_name(SERIAL_NUMBER.name)
    ]
    return content


ClassMember = TypeVar("ClassMember", bound=ListedStudent)


def match_students(
    content: SheetContent,
    students: Mapping[str, ClassMember],
    *,
    not_in_class: str,
    validate: Callable[[Row], Iterable[RowError]],
    own_names: bool,
) -> list[tuple[ClassMember, Row]]:
    """Find the student of each row among these, by admission number.

    `not_in_class` says of a student of the school that they are not among them, as a predicate; `validate` yields the
    errors of the other values of a row. A row with the name of another of these students is bad; with `own_names`, as
    in a downloaded sheet, a row with any name but the student's. Raises InvalidRows naming every bad row.
    """
    numbers = [composed(str(row.values.get(ADMISSION_NUMBER, ""))) for row in content.rows]
    misread = list(charset_errors(content.rows, names=_NAMES))
    of_misread = {error.row for error in misread if error.column in _NAMES}
    errors = [
        *misread,
        *_errors(content, numbers, students, not_in_class, validate),
        *(
            error
            for error in _name_errors(content, numbers, students, own_names=own_names)
            if error.row not in of_misread
        ),
    ]
    if errors:
        people = {
            row.number: name_with_number(students[number])
            for number, row in zip(numbers, content.rows, strict=True)
            if number in students
        }
        raise_row_errors(errors, letters=content.letters, people=people)
    return [(students[number], row) for number, row in zip(numbers, content.rows, strict=True)]


def change_of(row: Row, student: ListedStudent, column: str, old: object, new: object) -> dict[str, object]:
    """Give the change of an upload: the value of a column, None if there is none yet."""
    return {"row": row.number, **_identity(student), "column": column, "old": old, "new": new}


def not_in_sheet(
    students: Iterable[ClassMember], matched: Iterable[tuple[ClassMember, Row]]
) -> list[dict[str, object]]:
    """List the students of a class without a row in a sheet, in the order of the class."""
    present = {student.admission_number for student, _ in matched}
    return [_identity(student) for student in students if student.admission_number not in present]


def _identity(student: ListedStudent) -> dict[str, object]:
    return {
        ADMISSION_NUMBER: student.admission_number,
        FIRST_NAME: student.first_name,
        LAST_NAME: student.last_name,
    }


def _errors(
    content: SheetContent,
    numbers: list[str],
    students: Mapping[str, ClassMember],
    not_in_class: str,
    validate: Callable[[Row], Iterable[RowError]],
) -> Iterator[RowError]:
    bad_names = {(row.number, name) for row in content.rows for name in row.bad & _NAMES}
    yield from (error for error in content.errors if (error.row, error.column) not in bad_names)
    known = _known_to_school(set(numbers).difference(students))
    unknown, perhaps = nobody("no student's admission number")
    first: dict[str, int] = {}
    for number, row in zip(numbers, content.rows, strict=True):
        if ADMISSION_NUMBER in row.bad:
            pass
        elif not number:
            yield RowError(row.number, ADMISSION_NUMBER, REQUIRED, "the admission number is missing")
        elif first.setdefault(number, row.number) != row.number:
            problem = f"is in row {first[number]} already"
            yield RowError(row.number, ADMISSION_NUMBER, DUPLICATE, problem, number, of_person=False)
        elif number not in students:
            student = known.get(number.lower())
            if student is None:
                yield RowError(row.number, ADMISSION_NUMBER, UNKNOWN, f"is {unknown}", number, perhaps)
            elif student.number == number:
                problem = f"has {student.left}" if student.left else not_in_class
                problem = f"is {student.full_name}, who {problem}"
                yield RowError(row.number, ADMISSION_NUMBER, INVALID, problem, number)
            else:
                remedy = f"write {student.number}"
                yield RowError(row.number, ADMISSION_NUMBER, UNKNOWN, f"is {unknown}", number, remedy)
        yield from validate(row)


def _known_to_school(numbers: set[str]) -> dict[str, Named]:
    """Find the students of the school with these admission numbers, by the number in small letters.

    A number differing in case alone is found too, to be named; the exact one comes first.
    """
    if not numbers:
        return {}
    small = func.lower(Student.admission_number)
    students = students_where(small.in_({number.lower() for number in numbers}))
    by_exactness = sorted(students.values(), key=lambda student: student.number in numbers)
    return {student.number.lower(): student for student in by_exactness}


def _name_errors(
    content: SheetContent, numbers: list[str], students: Mapping[str, ClassMember], *, own_names: bool
) -> Iterator[RowError]:
    column = next((name for name in (FIRST_NAME, LAST_NAME, NAME) if name in content.letters), None)
    if column is None:
        return
    others: dict[frozenset[str], str] | None = None
    in_sheet: Counter[frozenset[str]] = Counter()
    for number, row in zip(numbers, content.rows, strict=True):
        student = students.get(number)
        first, last = _names_of(row)
        if student is None or (first == student.first_name and last == student.last_name):
            continue
        words = folded_words(first, last)
        if not words or _is_name_of(words, student):
            continue
        if others is None:
            others = _by_name(students.values())
            in_sheet.update(frozenset(folded_words(*_names_of(each))) for each in content.rows)
        whose = others.get(frozenset(words))
        # In a sheet from elsewhere, a name in several rows is a placeholder, and one that nobody has a short form.
        if not own_names and (whose is None or in_sheet[frozenset(words)] > 1):
            continue
        problem = f"is the name of {whose}, not" if whose else "is no name"
        yield RowError(
            row.number,
            column,
            INVALID,
            f"{problem} of {number}",
            f"{first} {last}".strip(),
            "put the names back beside their admission numbers, or download the sheet again",
            of_person=False,
        )


def _names_of(row: Row) -> tuple[str, str]:
    whole = row.values.get(NAME)
    # A trait may be called so: it has numbers.
    first = row.values.get(FIRST_NAME, whole if isinstance(whole, str) else "")
    return first, row.values.get(LAST_NAME, "")


def _is_name_of(words: list[str], student: ListedStudent) -> bool:
    """Tell whether words are a student's name, or a part of it, in any order; spaces within names do not count."""
    whole = set(folded_words(student.first_name, student.middle_name, student.last_name))
    short = set(folded_words(student.first_name, student.last_name))
    if whole.issuperset(words) or short.issubset(words):
        return True
    written = "".join(words)
    first, last = ("".join(folded_words(name)) for name in (student.first_name, student.last_name))
    return written in {first + last, last + first}


def _by_name(students: Iterable[ListedStudent]) -> dict[frozenset[str], str]:
    """The admission number of each student by the words of the name, with the middle name and without."""
    numbers: dict[frozenset[str], str] = {}
    for student in students:
        for names in (
            (student.first_name, student.last_name),
            (student.first_name, student.middle_name, student.last_name),
        ):
            numbers.setdefault(frozenset(folded_words(*names)), student.admission_number)
    return numbers


_NAMES = frozenset(column.name for column in STUDENT_COLUMNS if not column.required)
