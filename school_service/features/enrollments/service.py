"""Enrolling students into cohorts, and taking them out again.

Whoever changes the enrollments of students locks the cohort FOR SHARE (who adds a compulsory subject to it locks it
FOR NO KEY UPDATE), then the students FOR NO KEY UPDATE: so requests for the same student come one after the other, and
none of them deadlock.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID, uuid4

import orjson
from sqlalchemy import ARRAY, Uuid, any_, cast, column, func, insert, select, update

from school_service.core.database import db
from school_service.core.errors import Conflict, Invalid
from school_service.core.read_models import BoundQuery
from school_service.core.records import get, lock_rows, not_found, unknown_reference
from school_service.core.statements import execute, statement
from school_service.features.audit.service import Change, audit_changes
from school_service.features.cohort_subjects.service import (
    drop_subjects,
    taking_compulsory,
    taking_compulsory_at_once,
)
from school_service.features.cohorts.models import CURRENT, Batch, Cohort, Enrollment
from school_service.features.enrollments import reads
from school_service.features.students.models import ACTIVE, Student, student_name
from tenants.clock import now

ENTITY = "enrollment"
"""What the audit log calls it that a student is in a cohort; the id is the student's."""

_ENDED = (Enrollment.student_id, Enrollment.cohort_id, Enrollment.batch_id)


def enroll(*, cohort_id: UUID, batch: UUID, students: Sequence[UUID]) -> list[UUID]:
    """Enroll students into a batch of a cohort and its compulsory subjects; returns their ids, each once.

    Who is in another batch of the cohort moves, who is in this one stays as they are; all or nothing. Raises
    NotFound, Invalid for a batch of another cohort and naming students who are unknown or not ACTIVE, and
    Conflict naming those who are in another cohort of the session.
    """
    student_ids = list(dict.fromkeys(students))
    found = execute(
        reads.lock_cohort(cohort_id),
        reads.lock_students(student_ids),
        reads.enrolling(cohort_id, batch, student_ids),
    )
    if found is None:
        raise not_found(Cohort)
    if found["of_cohort"] is None:
        raise unknown_reference(Batch, "batch")
    if not found["of_cohort"]:
        raise Invalid.field("batch", "is not of this cohort")
    known = _active(found["students"], student_ids)
    elsewhere = [
        _named(one) for one in known.values() if one["enrollment"] and one["cohort"] != str(cohort_id)
    ]
    if elsewhere:
        reason = f"in another cohort of this session already: {', '.join(sorted(elsewhere))}"
        raise Conflict(f"Students are {reason}.", {"students": [reason]})
    starting = [one for one in student_ids if known[one]["batch"] != str(batch)]
    moving = [UUID(known[one]["enrollment"]) for one in starting if known[one]["enrollment"]]
    moment = now()
    execute(
        *([_end(moving, moment)] if moving else []),
        _start(starting, [uuid4() for _ in starting], [batch for _ in starting], moment),
        taking_compulsory(cohort_id=cohort_id, student_ids=student_ids),
    )
    after = {"cohort": cohort_id, "batch": batch}
    audit_changes(ENTITY, [Change(one, _place_of(known[one]), after) for one in starting])
    return student_ids


def lock_cohorts(*, cohort_ids: Collection[UUID]) -> None:
    """Lock the rows of cohorts FOR SHARE, in order of id."""
    db.session.execute(
        select(Cohort.id).where(Cohort.id.in_(cohort_ids)).order_by(Cohort.id).with_for_update(read=True)
    )


def enroll_new(*, batches: Mapping[UUID, Any]) -> None:
    """Enroll students who have just been made, and are in no class: the batch of each, by the student's id.

    A batch is what has its `id` and `cohort_id`. The cohorts must be locked. Sends one message.
    """
    students = list(batches)
    batch_ids = [batch.id for batch in batches.values()]
    execute(
        _start(students, [uuid4() for _ in students], batch_ids, now()),
        taking_compulsory_at_once(student_ids=students),
    )
    audit_changes(
        ENTITY,
        [Change(one, None, {"cohort": batch.cohort_id, "batch": batch.id}) for one, batch in batches.items()],
    )


def remove(*, cohort_id: UUID, student_ids: Sequence[UUID]) -> UUID:
    """Take students out of a cohort and its subjects, all or none; scores stay. Returns the cohort's id.

    Raises NotFound, and Invalid naming those who are not in the cohort.
    """
    cohort = get(Cohort, cohort_id, for_share=True)
    locked = lock_rows(Student, student_ids)
    ended = _leave(Enrollment.cohort_id == cohort.id, Enrollment.student_id.in_(locked))
    absent = [str(locked.get(one, one)) for one in dict.fromkeys(student_ids) if one not in ended]
    if absent:
        raise Invalid.field("student_ids", f"not in this cohort: {', '.join(absent)}")
    return cohort.id


def leaving(*, student_id: UUID, enrollments: str) -> tuple[BoundQuery, ...]:
    """Take a student, whose row the caller has locked, out of every cohort, keeping history and scores.

    `enrollments` is what `reads.open_enrollments` selects. Returns the statements, for `execute`.
    """
    found = orjson.loads(enrollments)
    audit_changes(ENTITY, [Change(student_id, _place_of(one), None) for one in found])
    cohorts = [UUID(one["cohort"]) for one in found]
    return _end([UUID(one["id"]) for one in found], now()), drop_subjects(cohorts, [student_id])


def _active(students: str, student_ids: Sequence[UUID]) -> dict[UUID, dict[str, Any]]:
    """Read students, by id, of the JSON of `reads.enrolling`; raises Invalid naming who is unknown or not ACTIVE."""
    known = {UUID(one["id"]): one for one in orjson.loads(students)}
    unknown = [str(one) for one in student_ids if one not in known]
    if unknown:
        raise Invalid.field("students", f"no such students: {', '.join(unknown)}")
    gone = [
        f"{_named(known[one])} is {known[one]['status']}"
        for one in student_ids
        if known[one]["status"] != ACTIVE
    ]
    if gone:
        raise Invalid.field("students", f"can't be enrolled: {', '.join(gone)}")
    return known


def _named(student: Mapping[str, Any]) -> str:
    """Name a student in a message."""
    return student_name(student["admission_number"], student["id"])


def _place_of(enrollment: Mapping[str, Any]) -> dict[str, Any] | None:
    """Where an enrollment is, for the audit log; None where there is no enrollment."""
    return {name: enrollment[name] for name in ("cohort", "batch")} if enrollment["batch"] else None


@statement
def _start(
    student_ids: list[UUID], enrollment_ids: list[UUID], batch_ids: list[UUID], moment: datetime
) -> Any:
    """Start enrollments: each of a student in a batch, whose cohort is locked."""
    rows = (
        func.unnest(*(cast(ids, ARRAY(Uuid)) for ids in (enrollment_ids, student_ids, batch_ids)))
        .table_valued(column("id", Uuid), column("student_id", Uuid), column("batch_id", Uuid))
        .render_derived()
    )
    values = (
        select(rows.c.id, rows.c.student_id, Batch.id, Batch.cohort_id, Cohort.session_id, moment)  # type: ignore[call-overload]
        .join(Batch, Batch.id == rows.c.batch_id)
        .join(Cohort, Cohort.id == Batch.cohort_id)
    )
    columns = ["id", "student_id", "batch_id", "cohort_id", "session_id", "started_at"]
    return insert(Enrollment).from_select(columns, values)


@statement
def _end(enrollment_ids: list[UUID], moment: datetime) -> Any:
    """End enrollments of students whose rows are locked."""
    ended = Enrollment.id == any_(cast(enrollment_ids, ARRAY(Uuid)))
    return update(Enrollment).where(ended).values(ended_at=moment)


def _leave(*conditions: Any) -> set[UUID]:
    """End open enrollments and the subjects taken with them; returns whose."""
    ending = update(Enrollment).where(CURRENT, *conditions).values(ended_at=now())
    ended = db.session.execute(ending.returning(*_ENDED)).all()
    audit_changes(
        ENTITY,
        [Change(row.student_id, {"cohort": row.cohort_id, "batch": row.batch_id}, None) for row in ended],
    )
    students, cohorts = {row.student_id for row in ended}, {row.cohort_id for row in ended}
    execute(drop_subjects(list(cohorts), list(students)))
    return students
