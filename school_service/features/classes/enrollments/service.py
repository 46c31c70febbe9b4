"""Enrolling students into cohorts, and taking them out again.

A change of students' enrollments locks the cohort FOR SHARE (adding a compulsory subject to it locks it FOR NO KEY
UPDATE), then the students FOR NO KEY UPDATE: so requests for the same student come one after the other, and none of
them deadlock.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID, uuid4

import orjson
from sqlalchemy import ARRAY, Uuid, any_, cast, delete, insert, null, select, update

from school_service.core.database import db
from school_service.core.errors import Duplicate, Invalid, Unknown
from school_service.core.read_models import BoundQuery
from school_service.core.records import get, lock_rows, not_found, unknown_reference, unnest_rows
from school_service.core.statements import execute, statement
from school_service.features.audit.service import Change, audit_changes
from school_service.features.classes.cohort_subjects.service import (
    drop_subjects,
    take_compulsory_subjects,
    take_compulsory_subjects_of_cohorts,
)
from school_service.features.classes.enrollments import reads
from school_service.features.people.models import ACTIVE, Student, student_name
from school_service.features.school.models import CURRENT, Batch, Cohort, Enrollment
from tenants.clock import now

ENTITY = "enrollment"
"""The name in the audit log of a student's place in a cohort; the id is the student's."""

_ENDED = (Enrollment.student_id, Enrollment.cohort_id, Enrollment.batch_id)


def enroll(*, cohort_id: UUID, batch: UUID, students: Sequence[UUID]) -> list[UUID]:
    """Enroll students into a batch of a cohort and its compulsory subjects; returns their ids, each once.

    A student in another batch of the cohort moves, a student in this one stays as they are; all or nothing. Raises
    NotFound, Invalid for a batch of another cohort and naming students unknown or not ACTIVE, and Conflict naming
    students in another cohort of the session.
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
        raise Duplicate(f"Students are {reason}.", {"students": [reason]})
    starting = [one for one in student_ids if known[one]["batch"] != str(batch)]
    moving = [UUID(known[one]["enrollment"]) for one in starting if known[one]["enrollment"]]
    moment = now()
    execute(
        *([_end(moving, moment)] if moving else []),
        _start(starting, [uuid4() for _ in starting], [batch for _ in starting], moment),
        take_compulsory_subjects(cohort_id=cohort_id, student_ids=student_ids),
    )
    after = {"cohort": cohort_id, "batch": batch}
    audit_changes(ENTITY, [Change(one, _place_of(known[one]), after) for one in starting])
    return student_ids


def lock_cohorts(*, cohort_ids: Collection[UUID]) -> None:
    """Lock the rows of cohorts FOR SHARE, in order of id."""
    db.session.execute(
        select(Cohort.id).where(Cohort.id.in_(cohort_ids)).order_by(Cohort.id).with_for_update(read=True)
    )


def start_enrollments(enrollments: Sequence[tuple[UUID, UUID, Any]]) -> tuple[BoundQuery, ...]:
    """Make the statements to enroll students without a class in the batches' session, for `execute`.

    Each enrollment is an id, a student and a batch: anything with its `id` and `cohort_id`. The cohorts must be locked,
    and so must the students, unless this transaction has created them.
    """
    audit_changes(
        ENTITY,
        [
            Change(student, None, {"cohort": batch.cohort_id, "batch": batch.id})
            for _, student, batch in enrollments
        ],
    )
    students = [student for _, student, _ in enrollments]
    return (
        _start(students, [each for each, _, _ in enrollments], [one.id for _, _, one in enrollments], now()),
        take_compulsory_subjects_of_cohorts(
            cohort_ids=list({batch.cohort_id for _, _, batch in enrollments}), student_ids=students
        ),
    )


def delete_enrollments(enrollments: Sequence[Mapping[str, Any]]) -> tuple[BoundQuery, ...]:
    """Make the statements to delete enrollments and the subjects taken with them, for `execute`.

    Each enrollment has `id`, `student`, `cohort` and `batch`, as in JSON. Cohorts and students must be locked, and
    nothing may refer to the enrollments.
    """
    audit_changes(ENTITY, [Change(UUID(one["student"]), _place_of(one), None) for one in enrollments])
    cohorts = [UUID(cohort) for cohort in {one["cohort"] for one in enrollments}]
    return (
        drop_subjects(cohorts, [UUID(one["student"]) for one in enrollments]),
        _delete([UUID(one["id"]) for one in enrollments]),
    )


def remove(*, cohort_id: UUID, student_ids: Sequence[UUID]) -> UUID:
    """Take students out of a cohort and its subjects, all or none; scores stay. Returns the cohort's id.

    Raises NotFound, and Invalid naming students outside the cohort.
    """
    cohort = get(Cohort, cohort_id, for_share=True)
    locked = lock_rows(Student, student_ids)
    ended = _leave(Enrollment.cohort_id == cohort.id, Enrollment.student_id.in_(locked))
    absent = [str(locked.get(one, one)) for one in dict.fromkeys(student_ids) if one not in ended]
    if absent:
        raise Invalid.field("student_ids", Unknown(f"not in this cohort: {', '.join(absent)}"))
    return cohort.id


def end_enrollments(*, enrollments: Mapping[UUID, Sequence[Mapping[str, Any]]]) -> tuple[BoundQuery, ...]:
    """Make the statements to take students out of every cohort, for `execute`; history and scores stay.

    `enrollments` are all open ones of each student, by the student's id; the caller has locked the students' rows.
    """
    ended = [(student, one) for student, open_ones in enrollments.items() for one in open_ones]
    audit_changes(ENTITY, [Change(student, _place_of(one), None) for student, one in ended])
    cohorts = [UUID(cohort) for cohort in {one["cohort"] for _, one in ended}]
    return _end([UUID(one["id"]) for _, one in ended], now()), drop_subjects(cohorts, list(enrollments))


def reopen_enrollments(*, enrollments: Mapping[UUID, Sequence[Mapping[str, Any]]]) -> tuple[BoundQuery, ...]:
    """Make the statements to open ended enrollments again, for `execute`.

    The students take the present compulsory subjects there. `enrollments` are those to open, by the student's id; the
    caller has locked the rows of the students and of the cohorts.
    """
    opened = [(student, one) for student, ended in enrollments.items() for one in ended]
    audit_changes(ENTITY, [Change(student, None, _place_of(one)) for student, one in opened])
    cohorts = [UUID(cohort) for cohort in {one["cohort"] for _, one in opened}]
    return (
        _reopen([UUID(one["id"]) for _, one in opened]),
        take_compulsory_subjects_of_cohorts(cohort_ids=cohorts, student_ids=list(enrollments)),
    )


def _active(students: str, student_ids: Sequence[UUID]) -> dict[UUID, dict[str, Any]]:
    """Read students from JSON, by id; raises Invalid naming those unknown or not ACTIVE."""
    known = {UUID(one["id"]): one for one in orjson.loads(students)}
    unknown = [str(one) for one in student_ids if one not in known]
    if unknown:
        raise Invalid.field("students", Unknown(f"no such students: {', '.join(unknown)}"))
    gone = [
        f"{_named(known[one])} is {known[one]['status']}"
        for one in student_ids
        if known[one]["status"] != ACTIVE
    ]
    if gone:
        raise Invalid.field("students", f"can't be enrolled: {', '.join(gone)}")
    return known


def _named(student: Mapping[str, Any]) -> str:
    """Name a student in an error."""
    return student_name(student["admission_number"], student["id"])


def _place_of(enrollment: Mapping[str, Any]) -> dict[str, Any] | None:
    """Name cohort and batch of an enrollment for the audit log; None without an enrollment."""
    return {name: enrollment[name] for name in ("cohort", "batch")} if enrollment["batch"] else None


@statement
def _start(
    student_ids: list[UUID], enrollment_ids: list[UUID], batch_ids: list[UUID], moment: datetime
) -> Any:
    """Insert enrollments: each of a student, in a batch of a locked cohort."""
    rows = unnest_rows(id=(Uuid, enrollment_ids), student_id=(Uuid, student_ids), batch_id=(Uuid, batch_ids))
    values = (
        select(rows.c.id, rows.c.student_id, Batch.id, Batch.cohort_id, Cohort.session_id, moment)  # type: ignore[call-overload]
        .join(Batch, Batch.id == rows.c.batch_id)
        .join(Cohort, Cohort.id == Batch.cohort_id)
    )
    columns = ["id", "student_id", "batch_id", "cohort_id", "session_id", "started_at"]
    return insert(Enrollment).from_select(columns, values)


@statement
def _end(enrollment_ids: list[UUID], moment: datetime) -> Any:
    """End enrollments of students with locked rows."""
    ended = Enrollment.id == any_(cast(enrollment_ids, ARRAY(Uuid)))
    return update(Enrollment).where(ended).values(ended_at=moment)


@statement
def _reopen(enrollment_ids: list[UUID]) -> Any:
    ended = Enrollment.id == any_(cast(enrollment_ids, ARRAY(Uuid)))
    return update(Enrollment).where(ended).values(ended_at=null())


@statement
def _delete(enrollment_ids: list[UUID]) -> Any:
    return delete(Enrollment).where(Enrollment.id == any_(cast(enrollment_ids, ARRAY(Uuid))))


def _leave(*conditions: Any) -> set[UUID]:
    """End open enrollments and the subjects taken with them; returns the ids of the students."""
    ending = update(Enrollment).where(CURRENT, *conditions).values(ended_at=now())
    ended = db.session.execute(ending.returning(*_ENDED)).all()
    audit_changes(
        ENTITY,
        [Change(row.student_id, {"cohort": row.cohort_id, "batch": row.batch_id}, None) for row in ended],
    )
    students, cohorts = {row.student_id for row in ended}, {row.cohort_id for row in ended}
    execute(drop_subjects(list(cohorts), list(students)))
    return students
