"""Graduates: students leave the school with its last class."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID, uuid4

import orjson
from sqlalchemy import (
    JSON,
    Integer,
    Text,
    Uuid,
    cast,
    delete,
    func,
    insert,
    select,
    update,
)
from sqlalchemy.dialects.postgresql import aggregate_order_by

from school_service.core.counters import GRADUATES, Counter, number_taken, numbers_given_back, numbers_taken
from school_service.core.errors import Duplicate, Invalid
from school_service.core.read_models import BoundQuery
from school_service.core.records import one_of, unknown_reference, unnest_rows
from school_service.core.statements import Executable, execute, statement
from school_service.features.audit.service import Change, audit_change, audit_changes
from school_service.features.classes.enrollments.reads import lock_cohorts_of, lock_students
from school_service.features.classes.enrollments.service import end_enrollments
from school_service.features.people.models import ACTIVE, GRADUATED, WITHDRAWN, Student
from school_service.features.results.graduates import reads
from school_service.features.results.models import Graduate
from tenants.clock import now

ENTITY = "graduate"


def create_graduate(*, student: UUID) -> UUID:
    """Let a student graduate: they leave every cohort; history and scores stay. Returns the graduate's id.

    Raises Invalid for an unknown student and for a withdrawn one, Conflict if they have graduated.
    """
    found = execute(lock_cohorts_of([student]), lock_students([student]), reads.graduating(student))
    if found is None:
        raise unknown_reference(Student, "student")
    if found["status"] == GRADUATED:
        reason = "has graduated already"
        raise Duplicate(f"The student {reason}.", {"student": [reason]})
    if found["status"] == WITHDRAWN:
        raise Invalid.field("student", "has withdrawn")
    graduate_id, last_class = uuid4(), found["last_class"]
    # The number comes last: it locks the counter, and who has that lock waits for no other, so none deadlock.
    made = execute(
        *end_enrollments(enrollments={student: orjson.loads(found["enrollments"])}),
        _end_status([student]),
        _insert(graduate_id, student, last_class, now()),
    )
    number = made["number"] if made else None
    audit_change(
        ENTITY, graduate_id, new={"number": number, "student": student, "graduation_class": last_class}
    )
    return graduate_id


def graduate_all(*ahead: Executable, enrollments: Mapping[UUID, Sequence[Mapping[str, Any]]]) -> None:
    """Let students graduate, in this order of numbers: they are ACTIVE, and the caller has locked their rows.

    They leave every cohort: `enrollments` are all open ones of each student, by the student's id. Takes one round trip;
    the statements `ahead` run first.
    """
    students = list(enrollments)
    made = execute(
        *ahead,
        *end_enrollments(enrollments=enrollments),
        _end_status(students),
        numbers_taken(GRADUATES, len(students)),
        _insert_all([uuid4() for _ in students], students, len(students), now()),
    )
    graduates = orjson.loads(made["graduates"]) if made else []
    audit_changes(ENTITY, [Change(UUID(one["id"]), None, _audited(one)) for one in graduates])


def undo_graduations(*, graduates: Sequence[Mapping[str, Any]]) -> tuple[BoundQuery, ...]:
    """Make the statements to undo the graduations with the last numbers: the students are ACTIVE again.

    Each graduate has `id`, `number`, `student` and `graduation_class`, as in JSON. They and the counter of graduates
    must be locked.
    """
    audit_changes(ENTITY, [Change(UUID(one["id"]), _audited(one), None) for one in graduates])
    students = [UUID(one["student"]) for one in graduates]
    return _delete(students), _take_up_status(students), numbers_given_back(GRADUATES, len(students))


def _audited(graduate: Mapping[str, Any]) -> dict[str, Any]:
    """Name the values of a graduate in the audit log."""
    return {name: graduate[name] for name in ("number", "student", "graduation_class")}


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
    graduate = func.json_build_object(
        "id", made.c.id,
        "number", made.c.number,
        "student", made.c.student_id,
        "graduation_class", made.c.graduation_class,
    )  # fmt: skip
    in_order = aggregate_order_by(graduate, made.c.number)
    return select(cast(func.json_agg(in_order, type_=JSON), Text).label("graduates"))


@statement
def _delete(student_ids: list[UUID]) -> Any:
    return delete(Graduate).where(Graduate.student_id == one_of(student_ids))


@statement
def _take_up_status(student_ids: list[UUID]) -> Any:
    return update(Student).where(Student.id == one_of(student_ids)).values(status=ACTIVE)
