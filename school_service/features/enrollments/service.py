"""Enrolling students into cohorts, and taking them out again.

Whoever changes the enrollments of students locks the cohort FOR SHARE (who adds a compulsory subject to it locks it
FOR NO KEY UPDATE), then the students FOR NO KEY UPDATE: so requests for the same student come one after the other, and
none of them deadlock.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID, uuid4

from sqlalchemy import Uuid, insert, select, update

from school_service.core.database import db
from school_service.core.errors import Conflict, Invalid
from school_service.core.records import get, get_referenced, insert_rows, lock_rows, unnest_rows
from school_service.features.audit.service import Change, audit_changes
from school_service.features.cohort_subjects.service import (
    drop_subjects,
    take_compulsory,
    take_compulsory_at_once,
)
from school_service.features.cohorts.models import CURRENT, Batch, Cohort, Enrollment
from school_service.features.students.models import ACTIVE, Student
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
    cohort = get(Cohort, cohort_id, for_share=True)
    if get_referenced(Batch, batch, "batch").cohort_id != cohort.id:
        raise Invalid.field("batch", "is not of this cohort")
    student_ids = list(dict.fromkeys(students))
    locked = _lock_active(student_ids)
    current = _current(cohort.session_id, student_ids)
    elsewhere = [str(locked[one]) for one, enrollment in current.items() if enrollment.cohort_id != cohort.id]
    if elsewhere:
        reason = f"in another cohort of this session already: {', '.join(sorted(elsewhere))}"
        raise Conflict(f"Students are {reason}.", {"students": [reason]})
    starting = [one for one in student_ids if one not in current or current[one].batch_id != batch]
    if starting:
        moving = {one: current[one] for one in starting if one in current}
        _start(cohort, batch, starting, moving=[enrollment.id for enrollment in moving.values()])
        before = {
            one: {"cohort": cohort.id, "batch": enrollment.batch_id} for one, enrollment in moving.items()
        }
        after = {"cohort": cohort.id, "batch": batch}
        audit_changes(ENTITY, [Change(one, before.get(one), after) for one in starting])
    take_compulsory(cohort_id=cohort.id, student_ids=student_ids)
    return student_ids


def lock_cohorts(*, cohort_ids: Collection[UUID]) -> dict[UUID, UUID]:
    """Lock the rows of cohorts FOR SHARE, in order of id; returns the session of each."""
    found = db.session.execute(
        select(Cohort.id, Cohort.session_id)
        .where(Cohort.id.in_(cohort_ids))
        .order_by(Cohort.id)
        .with_for_update(read=True)
    )
    return {row.id: row.session_id for row in found}


def enroll_new(*, batches: Mapping[UUID, Batch], sessions: Mapping[UUID, UUID]) -> None:
    """Enroll students who have just been made, and are in no class: the batch of each, by the student's id.

    `sessions` is what `lock_cohorts` gave for the batches' cohorts. Sends a fixed number of statements.
    """
    students, of_students = list(batches), list(batches.values())
    rows = unnest_rows(
        id=(Uuid(), [uuid4() for _ in students]),
        student_id=(Uuid(), students),
        batch_id=(Uuid(), [batch.id for batch in of_students]),
        cohort_id=(Uuid(), [batch.cohort_id for batch in of_students]),
        session_id=(Uuid(), [sessions[batch.cohort_id] for batch in of_students]),
    )
    insert_rows(Enrollment, rows, started_at=now())
    audit_changes(
        ENTITY,
        [Change(one, None, {"cohort": batch.cohort_id, "batch": batch.id}) for one, batch in batches.items()],
    )
    take_compulsory_at_once(student_ids=students)


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


def end_enrollments(*, student_id: UUID) -> None:
    """Take a student, whose row the caller has locked, out of every cohort, keeping history and scores."""
    _leave(Enrollment.student_id == student_id)


def _lock_active(student_ids: Sequence[UUID]) -> dict[UUID, Student]:
    locked = lock_rows(Student, student_ids)
    unknown = [str(one) for one in student_ids if one not in locked]
    if unknown:
        raise Invalid.field("students", f"no such students: {', '.join(unknown)}")
    gone = [f"{locked[one]} is {locked[one].status}" for one in student_ids if locked[one].status != ACTIVE]
    if gone:
        raise Invalid.field("students", f"can't be enrolled: {', '.join(gone)}")
    return locked


def _current(session_id: UUID, student_ids: Collection[UUID]) -> dict[UUID, Any]:
    """Find the open enrollments of students in a session, by student."""
    found = db.session.execute(
        select(Enrollment.id, Enrollment.student_id, Enrollment.cohort_id, Enrollment.batch_id).where(
            Enrollment.session_id == session_id, Enrollment.student_id.in_(student_ids), CURRENT
        )
    )
    return {row.student_id: row for row in found}


def _start(cohort: Cohort, batch_id: UUID, student_ids: Iterable[UUID], *, moving: Collection[UUID]) -> None:
    """Start enrollments in a batch, ending those that the students move from."""
    moment = now()
    if moving:
        _end(moment, Enrollment.id.in_(moving))
    common = {"batch_id": batch_id, "cohort_id": cohort.id, "session_id": cohort.session_id}
    rows = [{"id": uuid4(), "student_id": one, **common, "started_at": moment} for one in student_ids]
    db.session.execute(insert(Enrollment), rows)


def _leave(*conditions: Any) -> set[UUID]:
    """End open enrollments and the subjects taken with them; returns whose."""
    ended = _end(now(), *conditions)
    audit_changes(
        ENTITY,
        [Change(row.student_id, {"cohort": row.cohort_id, "batch": row.batch_id}, None) for row in ended],
    )
    students, cohorts = {row.student_id for row in ended}, {row.cohort_id for row in ended}
    drop_subjects(cohort_ids=cohorts, student_ids=students)
    return students


def _end(moment: datetime, *conditions: Any) -> Sequence[Any]:
    ending = update(Enrollment).where(CURRENT, *conditions).values(ended_at=moment)
    return db.session.execute(ending.returning(*_ENDED)).all()
