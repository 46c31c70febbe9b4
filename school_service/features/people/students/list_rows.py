"""Lists in a body with a record for each student of a class: the records are matched to students by id.

They are rows as in sheets, numbered from 0, with the errors of rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any
from uuid import UUID

from school_service.features.people.students.naming import Named, name_with_number, named_students, nobody
from school_service.features.people.students.sheet_rows import ClassMember
from school_service.sheets.row_errors import DUPLICATE, INVALID, PERSON, UNKNOWN, RowError, raise_row_errors
from school_service.sheets.sheet_reader import Row

MAX_RECORDS = 500  # of one list


def match_records(
    records: Sequence[tuple[UUID, Row]],
    students: Mapping[UUID, ClassMember],
    *,
    list_name: str,
    not_in_class: str,
    validate: Callable[[Row], Iterable[RowError]],
    key: Callable[[UUID, Row], Any] = lambda student, _row: student,
    twice: str = "is there already",
) -> list[tuple[ClassMember, Row]]:
    """Find the student of each record among those of the class, by id; each is to be named once by its `key`.

    `not_in_class` says of a student of the school that they are outside the class, and `twice` of one that they are
    there before, as predicates; `validate` yields the errors of the other values of a record. Raises InvalidRows naming
    every wrong record, in the list `list_name`.
    """
    outside = named_students({student for student, _ in records}.difference(students))
    errors = list(_errors(records, students, outside, not_in_class, validate, key, twice))
    names = {student_id: name_with_number(student) for student_id, student in students.items()}
    names |= {student_id: student.name for student_id, student in outside.items()}
    people = {row.number: names[student] for student, row in records if student in names}
    raise_row_errors(errors, people=people, member=list_name)
    return [(students[student], row) for student, row in records]


def _errors(
    records: Sequence[tuple[UUID, Row]],
    students: Mapping[UUID, ClassMember],
    outside: Mapping[UUID, Named],
    not_in_class: str,
    validate: Callable[[Row], Iterable[RowError]],
    key: Callable[[UUID, Row], Any],
    twice: str,
) -> Iterator[RowError]:
    seen: set[Any] = set()
    unknown, perhaps = nobody("no student")
    for student, row in records:
        if key(student, row) in seen:
            yield RowError(row.number, PERSON, DUPLICATE, twice)
        elif student in outside:
            left = outside[student].left
            yield RowError(row.number, PERSON, INVALID, f"has {left}" if left else not_in_class)
        elif student not in students:
            yield RowError(row.number, PERSON, UNKNOWN, f"is {unknown}", str(student), perhaps)
        seen.add(key(student, row))
        yield from validate(row)
