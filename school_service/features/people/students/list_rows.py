"""Lists in a body with a record for each student of a class: the records are matched to students by id.

They are rows as those of sheets are, numbered from 0, and their errors are reported as those of rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any
from uuid import UUID

from sqlalchemy import ARRAY, Uuid, any_, cast, select

from school_service.core.database import db
from school_service.core.narrowing import within
from school_service.features.people.models import Student
from school_service.features.people.students.sheet_rows import ClassMember, name_with_number
from school_service.features.reach import scopes
from school_service.sheets.row_errors import DUPLICATE, INVALID, UNKNOWN, RowError, raise_row_errors
from school_service.sheets.sheet_reader import Row

STUDENT = "student"
MAX_RECORDS = 500  # of one list


def match_records(
    records: Sequence[tuple[UUID, Row]],
    students: Mapping[UUID, ClassMember],
    *,
    list_name: str,
    not_in_class: str,
    validate: Callable[[Row], Iterable[RowError]],
    key: Callable[[UUID, Row], Any] = lambda student, _row: student,
) -> list[tuple[ClassMember, Row]]:
    """Find the student of each record among those of the class, by id; each is to be named once by its `key`.

    `not_in_class` is the problem of a student of the school outside the class; `validate` yields the errors of the
    other values of a record. Raises InvalidRows naming every wrong record, in the list `list_name`.
    """
    errors = list(_errors(records, students, not_in_class, validate, key))
    people = {
        row.number: name_with_number(students[student]) for student, row in records if student in students
    }
    raise_row_errors(errors, people=people, member=list_name)
    return [(students[student], row) for student, row in records]


def _errors(
    records: Sequence[tuple[UUID, Row]],
    students: Mapping[UUID, ClassMember],
    not_in_class: str,
    validate: Callable[[Row], Iterable[RowError]],
    key: Callable[[UUID, Row], Any],
) -> Iterator[RowError]:
    known = _known_to_school({student for student, _ in records}.difference(students))
    first: dict[Any, int] = {}
    for student, row in records:
        before = first.setdefault(key(student, row), row.number)
        if before != row.number:
            problem = f"is in {before} already"
            yield RowError(row.number, STUDENT, DUPLICATE, problem, str(student), of_person=False)
        elif student in known:
            yield RowError(row.number, STUDENT, INVALID, not_in_class, str(student))
        elif student not in students:
            yield RowError(row.number, STUDENT, UNKNOWN, "is no student", str(student))
        yield from validate(row)


def _known_to_school(ids: Iterable[UUID]) -> set[UUID]:
    wanted = list(ids)
    if not wanted:
        return set()
    query = select(Student.id).where(Student.id == any_(cast(wanted, ARRAY(Uuid))))
    return set(db.session.scalars(within(query, scopes.students_in_reach, Student.id)))
