"""Students as refusals name them: by name and admission number, and those who have left as such.

Nobody out of the caller's reach is named: of them an error says the same as of an unknown id.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol
from uuid import UUID

from sqlalchemy import select

from school_service.core.database import db
from school_service.core.errors import Unknown
from school_service.core.narrowing import caller_has_own, within
from school_service.core.records import one_of
from school_service.features.people.models import GRADUATED, WITHDRAWN, Student, User
from school_service.features.reach import scopes

LEFT = {WITHDRAWN: "withdrawn", GRADUATED: "graduated"}
"""The ways of leaving, by the student's status."""


class ListedStudent(Protocol):
    """A student as a class list has them."""

    @property
    def admission_number(self) -> Any: ...
    @property
    def first_name(self) -> Any: ...
    @property
    def middle_name(self) -> Any: ...
    @property
    def last_name(self) -> Any: ...


def name_with_number(student: ListedStudent) -> str:
    """Name a student in an error: `Ngọzi Eze (QAC/2022/014)`."""
    return f"{student.first_name} {student.last_name} ({student.admission_number})"


@dataclass(frozen=True, slots=True)
class Named:
    """A student in the caller's reach; `left` is `withdrawn` or `graduated` of one who has left."""

    full_name: str
    number: str
    left: str | None

    @property
    def name(self) -> str:
        """The name in errors, as of `name_with_number`."""
        return f"{self.full_name} ({self.number})"


def students_where(condition: Any) -> dict[UUID, Named]:
    """Find students of the school in the caller's reach, by id."""
    query = (
        select(Student.id, Student.admission_number, Student.status, User.first_name, User.last_name)
        .join(User, User.id == Student.user_id)
        .where(condition)
    )
    students = db.session.execute(within(query, scopes.students_in_reach, Student.id))
    return {
        row.id: Named(f"{row.first_name} {row.last_name}", row.admission_number, LEFT.get(row.status))
        for row in students
    }


def named_students(ids: Iterable[UUID]) -> dict[UUID, Named]:
    """Find students in the caller's reach by their ids."""
    wanted = [*ids]
    return students_where(Student.id == one_of(wanted)) if wanted else {}


def names_of(ids: Iterable[UUID]) -> list[str]:
    """Give the names of students, in this order; of those unknown or out of reach the ids."""
    wanted = [*ids]
    named = named_students(wanted)
    return [named[id].name if id in named else str(id) for id in wanted]


def nobody(words: str) -> tuple[str, str | None]:
    """Give the reason against an unknown student, in these `words`, and a hint.

    A caller who reaches some students alone is told the same of the unknown and of those out of reach.
    """
    if caller_has_own():
        return "no student of your classes now", "they may have left, or be in another class"
    return words, None


def strangers(ids: Iterable[UUID], not_there: str) -> dict[str, Sequence[str]]:
    """Give the reasons against students outside a class, with their names: they have left, or are `not_there`.

    Each is Unknown, as the list of a class has none of them.
    """
    wanted = [*dict.fromkeys(ids)]
    named = named_students(wanted)
    unknown, _ = nobody("no such student")
    reasons: dict[str, list[str]] = {}
    for student_id in wanted:
        known = named.get(student_id)
        reason = Unknown(unknown if known is None else known.left or not_there)
        reasons.setdefault(reason, []).append(str(student_id) if known is None else known.name)
    return {**reasons}
