"""Graduates: students leave the school with its last class."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date, datetime
from typing import Any
from uuid import UUID, uuid4

import orjson
from sqlalchemy import (
    Date,
    Integer,
    Text,
    Uuid,
    cast,
    delete,
    insert,
    null,
    select,
    update,
)

from school_service.core.counters import GRADUATES, Counter, number_taken, numbers_given_back, numbers_taken
from school_service.core.errors import Duplicate, Invalid
from school_service.core.read_models import BoundQuery, array_of, json_object
from school_service.core.records import one_of, unknown_reference, unnest_rows
from school_service.core.statements import Executable, execute, fetch_one, statement
from school_service.features.audit.service import Change, audit_change, audit_changes
from school_service.features.classes.enrollments.reads import lock_cohorts_of, lock_students
from school_service.features.classes.enrollments.service import end_enrollments
from school_service.features.people.models import ACTIVE, GRADUATED, WITHDRAWN, Student
from school_service.features.people.students import leaving
from school_service.features.results.graduates import reads
from school_service.features.results.models import Graduate
from tenants.clock import now

ENTITY = "graduate"


def create_graduate(*, student: UUID, left_on: date | None = None, leaving_reason: str | None = None) -> UUID:
    """Let a student graduate: they leave every cohort; history and scores stay. Returns the graduate's id.

    Raises Invalid for an unknown student and for a withdrawn one, and for a date of leaving before the admission or the
    first day in the class; Conflict if they have graduated.
    """
    row = execute(lock_cohorts_of([student]), lock_students([student]), reads.graduating(student))
    if row is None:
        raise unknown_reference(Student, "student")
    if row["status"] == GRADUATED:
        reason = "has graduated already"
        raise Duplicate(f"The student {reason}.", {"student": [reason]})
    if row["status"] == WITHDRAWN:
        raise Invalid.field("student", "has withdrawn")
    enrollments = {student: orjson.loads(row["enrollments"])}
    if left_on is not None:
        leaving.refuse_order(row["admitted_on"], left_on)
        leaving.refuse_last_day(enrollments[student], left_on)
    graduate_id, last_class = uuid4(), row["last_class"]
    # The number comes last: it locks the counter, and a transaction with that lock waits for no other: no deadlock.
    made = fetch_one(
        *_note_left_on({student: left_on} if left_on else {}, enrollments),
        *end_enrollments(enrollments=enrollments),
        _end_status([student]),
        *([_note_reason(student, leaving_reason)] if leaving_reason else ()),
        _insert(graduate_id, student, last_class, now()),
    )
    new = {"number": made["number"], "student": student, "graduation_class": last_class}
    audit_change(ENTITY, graduate_id, new=new)
    return graduate_id


def graduate_all(
    *ahead: Executable,
    enrollments: Mapping[UUID, Sequence[Mapping[str, Any]]],
    left_on: Mapping[UUID, date],
) -> None:
    """Let students graduate, in this order of numbers: they are ACTIVE, and the caller has locked their rows.

    They leave every cohort: `enrollments` are all open ones of each student, by the student's id, and `left_on` the
    known dates of leaving, judged by the caller. Takes one round trip; the statements `ahead` run first.
    """
    students = list(enrollments)
    made = fetch_one(
        *ahead,
        *_note_left_on(left_on, enrollments),
        *end_enrollments(enrollments=enrollments),
        _end_status(students),
        numbers_taken(GRADUATES, len(students)),
        _insert_all([uuid4() for _ in students], students, len(students), now()),
    )
    graduates = orjson.loads(made["graduates"])
    audit_changes(ENTITY, [Change(UUID(graduate["id"]), None, _audited(graduate)) for graduate in graduates])


def undo_graduations(*, graduates: Sequence[Mapping[str, Any]]) -> tuple[BoundQuery, ...]:
    """Make the statements to undo the graduations with the last numbers: the students are ACTIVE again.

    Each graduate has `id`, `number`, `student` and `graduation_class`, as in JSON. They and the counter of graduates
    must be locked.
    """
    audit_changes(ENTITY, [Change(UUID(graduate["id"]), _audited(graduate), None) for graduate in graduates])
    students = [UUID(graduate["student"]) for graduate in graduates]
    return _delete(students), _take_up_status(students), numbers_given_back(GRADUATES, len(students))


def _audited(graduate: Mapping[str, Any]) -> dict[str, Any]:
    """Name the values of a graduate in the audit log."""
    return {name: graduate[name] for name in ("number", "student", "graduation_class")}


def _note_left_on(
    left_on: Mapping[UUID, date], enrollments: Mapping[UUID, Sequence[Mapping[str, Any]]]
) -> tuple[BoundQuery, ...]:
    """Make the statements to write dates of leaving: into the students' rows, and as last days in their classes."""
    if not left_on:
        return ()
    return *leaving.last_days(left_on, enrollments), _write_left_on(list(left_on), list(left_on.values()))


@statement
def _write_left_on(student_ids: list[UUID], days: list[date]) -> Any:
    rows = unnest_rows("leaving", None, id=(Uuid, student_ids), day=(Date, days))
    return update(Student).where(Student.id == rows.c.id).values(left_on=rows.c.day)


@statement
def _note_reason(student_id: UUID, reason: str) -> Any:
    return update(Student).where(Student.id == student_id).values(leaving_reason=reason)


@statement
def _end_status(student_ids: list[UUID]) -> Any:
    return update(Student).where(Student.id == one_of(student_ids)).values(status=GRADUATED)


@statement
def _insert(graduate_id: UUID, student_id: UUID, last_class: str, moment: datetime) -> Any:
    """Insert a graduate with the next number; answers it."""
    number = number_taken(GRADUATES)
    values = select(graduate_id, number.c.value, student_id, last_class, moment)  # type: ignore[call-overload]
    columns = ["id", "number", "student_id", "graduation_class", "created_at"]
    return insert(Graduate).from_select(columns, values).returning(Graduate.number)


@statement
def _insert_all(ids: list[UUID], student_ids: list[UUID], count: int, moment: datetime) -> Any:
    """Insert graduates with the numbers taken last, in this order; answers them as JSON, `graduates`.

    Another statement takes the numbers, since a statement writes to one table.
    """
    rows = unnest_rows("graduating", "place", id=(Uuid, ids), student_id=(Uuid, student_ids))
    values = {
        "id": rows.c.id,
        "number": Counter.value - count + cast(rows.c.place, Integer),
        "student_id": rows.c.student_id,
        "graduation_class": reads.last_class(rows.c.student_id),
        "created_at": moment,
    }
    made = (
        insert(Graduate)
        .from_select(
            list(values), select(*values.values()).select_from(rows.join(Counter, Counter.name == GRADUATES))
        )
        .returning(Graduate.id, Graduate.number, Graduate.student_id, Graduate.graduation_class)
        .cte("made")
    )
    graduate = json_object(
        id=made.c.id,
        number=made.c.number,
        student=made.c.student_id,
        graduation_class=made.c.graduation_class,
    )
    return select(cast(array_of(graduate, made.c.number), Text).label("graduates"))


@statement
def _delete(student_ids: list[UUID]) -> Any:
    return delete(Graduate).where(Graduate.student_id == one_of(student_ids))


@statement
def _take_up_status(student_ids: list[UUID]) -> Any:
    active = {"status": ACTIVE, **dict.fromkeys(leaving.OF_LEAVING, null())}
    return update(Student).where(Student.id == one_of(student_ids)).values(active)
