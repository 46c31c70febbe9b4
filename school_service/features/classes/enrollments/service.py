"""Enrolling students into cohorts, and taking them out again.

A change of students' enrollments locks the cohort FOR SHARE (adding a compulsory subject to it locks it FOR NO KEY
UPDATE), then the students FOR NO KEY UPDATE: so requests for the same student come one after the other, and none of
them deadlock.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from datetime import date, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import orjson
from sqlalchemy import Date, Uuid, delete, func, insert, null, select, update

from school_service.core.database import db
from school_service.core.errors import Duplicate, Invalid, Unknown, names_in_words, refuse_named
from school_service.core.read_models import BoundQuery
from school_service.core.records import (
    get,
    lock_in_order,
    lock_rows,
    not_found,
    one_of,
    unknown_reference,
    unnest_rows,
)
from school_service.core.statements import execute, statement
from school_service.features.audit.service import Change, audit_changes
from school_service.features.classes.cohort_subjects.service import (
    drop_subjects,
    take_compulsory_subjects,
    take_compulsory_subjects_of_cohorts,
)
from school_service.features.classes.enrollments import reads
from school_service.features.people.models import Student
from school_service.features.people.students.naming import LEFT, names_of, strangers
from school_service.features.school.models import CURRENT, AcademicSession, Batch, Cohort, Enrollment
from tenants.clock import now

ENTITY = "enrollment"
"""The name in the audit log of a student's place in a cohort; the id is the student's."""

_ENDED = (Enrollment.student_id, Enrollment.cohort_id, Enrollment.batch_id, Enrollment.started_on)


def enroll(
    *,
    cohort_id: UUID,
    batch: UUID,
    students: Sequence[UUID],
    started_on: date | None = None,
    started_on_each: Sequence[Mapping[str, Any]] = (),
) -> list[UUID]:
    """Enroll students into a batch of a cohort and its compulsory subjects; returns their ids, each once.

    A student in another batch of the cohort moves, a student in this one stays there; all or nothing. `started_on` is
    the first day there, if it is known, and `started_on_each` another one for some students; the last day in the former
    batch is the one before. Raises NotFound, Invalid for a batch of another cohort, for days outside of the session or
    not after the first one in the former batch, and naming students unknown or not ACTIVE; Conflict naming students in
    another cohort of the session.
    """
    student_ids = list(dict.fromkeys(students))
    days = _first_days(student_ids, started_on, started_on_each)
    row = execute(
        reads.lock_cohort(cohort_id),
        reads.lock_students(student_ids),
        reads.enrolling(cohort_id, batch, student_ids),
    )
    if row is None:
        raise not_found(Cohort)
    if row["of_cohort"] is None:
        raise unknown_reference(Batch, "batch")
    if not row["of_cohort"]:
        raise Invalid.field("batch", "is not of this cohort")
    known = _active(row["students"], student_ids)
    elsewhere = [
        id for id, student in known.items() if student["enrollment"] and student["cohort"] != str(cohort_id)
    ]
    if elsewhere:
        names = names_in_words(sorted(names_of(elsewhere)))
        reason = f"{names}: in another cohort of this session already"
        raise Duplicate(f"{reason}.", {"students": [reason]})
    starting = [student for student in student_ids if known[student]["batch"] != str(batch)]
    moving = [student for student in starting if known[student]["enrollment"]]
    _refuse_days(days, row["first_day"], row["last_day"], {student: known[student] for student in moving})
    dated = [
        student
        for student in student_ids
        if student not in starting and _is_dated_anew(known[student], days[student])
    ]
    moment = now()
    execute(
        *(_moving(moving, known, days, moment) if moving else ()),
        *(_dating(dated, known, days) if dated else ()),
        _start(
            starting,
            [uuid4() for _ in starting],
            [batch for _ in starting],
            [days[student] for student in starting],
            moment,
        ),
        take_compulsory_subjects(cohort_id=cohort_id, student_ids=student_ids),
    )
    after = {"cohort": cohort_id, "batch": batch}
    audit_changes(
        ENTITY,
        [
            Change(student, _place_of(known[student]), after | _first_day(days[student]))
            for student in starting
        ],
    )
    return student_ids


def _first_days(
    student_ids: Sequence[UUID], started_on: date | None, each: Sequence[Mapping[str, Any]]
) -> dict[UUID, date | None]:
    """Give the first day of each student, None where it is not known. Raises Invalid for students of no use."""
    named = Counter(entry["student"] for entry in each)
    reasons = {
        "named more than once": names_of(student for student, times in named.items() if times > 1),
        Unknown("not among the students"): names_of(
            student for student in named if student not in student_ids
        ),
    }
    refuse_named({"started_on_each": reasons})
    return {
        **dict.fromkeys(student_ids, started_on),
        **{entry["student"]: entry["started_on"] for entry in each},
    }


def _refuse_days(
    days: Mapping[UUID, date | None], first: date, last: date, moving: Mapping[UUID, Mapping[str, Any]]
) -> None:
    """Refuse first days outside of the session, and those of movers not after the first one in the former batch."""
    outside = {str(day) for day in days.values() if day is not None and not first <= day <= last}
    if outside:
        reason = f"is not within the session, {first} to {last}: {', '.join(sorted(outside))}"
        raise Invalid.field("started_on", reason)
    late = [
        student
        for student, record in moving.items()
        if (day := days[student]) and (record["started_on"] or "") >= day.isoformat()
    ]
    names = [
        f"{name}, there since {moving[student]['started_on']}"
        for student, name in zip(late, names_of(late), strict=True)
    ]
    refuse_named({"started_on": {"the day is not after the first one in the former batch": names}})


def _moving(
    students: Sequence[UUID],
    known: Mapping[UUID, Mapping[str, Any]],
    days: Mapping[UUID, date | None],
    moment: datetime,
) -> tuple[BoundQuery, ...]:
    """End the enrollments of movers: with a first day elsewhere, on the day before."""
    last = [day and day - timedelta(days=1) for day in (days[student] for student in students)]
    return (_end([UUID(known[student]["enrollment"]) for student in students], last, moment),)


def _is_dated_anew(enrollment: Mapping[str, Any], day: date | None) -> bool:
    return day is not None and enrollment["started_on"] != day.isoformat()


def _dating(
    students: Sequence[UUID], known: Mapping[UUID, Mapping[str, Any]], days: Mapping[UUID, date | None]
) -> tuple[BoundQuery, ...]:
    """Give students who are in the batch already their first day there."""
    audit_changes(
        ENTITY,
        [
            Change(
                student,
                {**(_place_of(known[student]) or {}), "started_on": known[student]["started_on"]},
                {**(_place_of(known[student]) or {}), **_first_day(days[student])},
            )
            for student in students
        ],
    )
    enrollments = [UUID(known[student]["enrollment"]) for student in students]
    return (_date(enrollments, [day for student in students if (day := days[student]) is not None]),)


def _first_day(day: date | None) -> dict[str, Any]:
    """The first day in the audit log, if it is known."""
    return {} if day is None else {"started_on": day}


def lock_cohorts(*, cohort_ids: Collection[UUID]) -> None:
    """Lock the rows of cohorts FOR SHARE, in order of id."""
    db.session.execute(lock_in_order(Cohort, Cohort.id.in_(cohort_ids), shared=True))


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
        _start(
            students,
            [each for each, _, _ in enrollments],
            [enrollment.id for _, _, enrollment in enrollments],
            [None for _ in enrollments],
            now(),
        ),
        take_compulsory_subjects_of_cohorts(
            cohort_ids=list({batch.cohort_id for _, _, batch in enrollments}), student_ids=students
        ),
    )


def move_enrollment(
    *, student: UUID, enrollment: Mapping[str, Any] | None, enrollment_id: UUID, batch: Any
) -> tuple[BoundQuery, ...]:
    """Make the statements to move a student from an open enrollment, if there is one, into a batch, for `execute`.

    Into another cohort, too, with its compulsory subjects. `enrollment` is as in JSON; the batch is anything with its
    `id` and `cohort_id`. The cohorts and the student must be locked.
    """
    leaving: list[BoundQuery] = []
    if enrollment is not None:
        leaving.append(_end([UUID(enrollment["id"])], [None], now()))
        if UUID(enrollment["cohort"]) != batch.cohort_id:
            leaving.append(drop_subjects([UUID(enrollment["cohort"])], [student]))
    after = {"cohort": batch.cohort_id, "batch": batch.id}
    audit_changes(ENTITY, [Change(student, _place_of(enrollment) if enrollment else None, after)])
    return (
        *leaving,
        _start([student], [enrollment_id], [batch.id], [None], now()),
        take_compulsory_subjects(cohort_id=batch.cohort_id, student_ids=[student]),
    )


def delete_enrollments(enrollments: Sequence[Mapping[str, Any]]) -> tuple[BoundQuery, ...]:
    """Make the statements to delete enrollments and the subjects taken with them, for `execute`.

    Each enrollment has `id`, `student`, `cohort` and `batch`, as in JSON. Cohorts and students must be locked, and
    nothing may refer to the enrollments.
    """
    audit_changes(
        ENTITY,
        [Change(UUID(enrollment["student"]), _place_of(enrollment), None) for enrollment in enrollments],
    )
    cohorts = [UUID(cohort) for cohort in {enrollment["cohort"] for enrollment in enrollments}]
    return (
        drop_subjects(cohorts, [UUID(enrollment["student"]) for enrollment in enrollments]),
        _delete([UUID(enrollment["id"]) for enrollment in enrollments]),
    )


def remove(*, cohort_id: UUID, student_ids: Sequence[UUID], ended_on: date | None = None) -> UUID:
    """Take students out of a cohort and its subjects, all or none; scores stay. Returns the cohort's id.

    `ended_on` is their last day there, if it is known. Raises NotFound, and Invalid naming students outside the cohort,
    and for a last day before the session or before somebody's first day.
    """
    cohort = get(Cohort, cohort_id, for_share=True)
    if ended_on is not None:
        begins = get(AcademicSession, cohort.session_id, judged_before=True).start_date
        if ended_on < begins:
            raise Invalid.field("ended_on", f"is before the session begins, {begins}")
    locked = lock_rows(Student, student_ids)
    theirs = Enrollment.cohort_id == cohort.id, Enrollment.student_id.in_(locked)
    ended = _leave(*theirs, ended_on=ended_on)
    late = names_of(student for student, day in ended.items() if ended_on and day and day > ended_on)
    refuse_named({"ended_on": {"the day is before the first one in the class": late}})
    absent = strangers((student for student in student_ids if student not in ended), "not in this cohort")
    refuse_named({"student_ids": absent})
    return cohort.id


def end_enrollments(*, enrollments: Mapping[UUID, Sequence[Mapping[str, Any]]]) -> tuple[BoundQuery, ...]:
    """Make the statements to take students out of every cohort, for `execute`; history and scores stay.

    `enrollments` are all open ones of each student, by the student's id; the caller has locked the students' rows.
    """
    ended = [(student, enrollment) for student, open_ones in enrollments.items() for enrollment in open_ones]
    audit_changes(ENTITY, [Change(student, _place_of(enrollment), None) for student, enrollment in ended])
    cohorts = [UUID(cohort) for cohort in {enrollment["cohort"] for _, enrollment in ended}]
    ids = [UUID(enrollment["id"]) for _, enrollment in ended]
    return _end(ids, [None for _ in ids], now()), drop_subjects(cohorts, list(enrollments))


def reopen_enrollments(*, enrollments: Mapping[UUID, Sequence[Mapping[str, Any]]]) -> tuple[BoundQuery, ...]:
    """Make the statements to open ended enrollments again, for `execute`.

    The students take the present compulsory subjects there. `enrollments` are those to open, by the student's id; the
    caller has locked the rows of the students and of the cohorts.
    """
    opened = [(student, enrollment) for student, ended in enrollments.items() for enrollment in ended]
    audit_changes(ENTITY, [Change(student, None, _place_of(enrollment)) for student, enrollment in opened])
    cohorts = [UUID(cohort) for cohort in {enrollment["cohort"] for _, enrollment in opened}]
    return (
        _reopen([UUID(enrollment["id"]) for _, enrollment in opened]),
        take_compulsory_subjects_of_cohorts(cohort_ids=cohorts, student_ids=list(enrollments)),
    )


def _active(students: str, student_ids: Sequence[UUID]) -> dict[UUID, dict[str, Any]]:
    """Read students from JSON, by id; raises Invalid naming those unknown or not ACTIVE."""
    known = {UUID(student["id"]): student for student in orjson.loads(students)}
    unknown = [str(student) for student in student_ids if student not in known]
    refuse_named({"students": {Unknown("no such student"): unknown}})
    gone = {
        f"{left}, and can't be enrolled": names_of(
            student for student in student_ids if known[student]["status"] == status
        )
        for status, left in LEFT.items()
    }
    refuse_named({"students": gone})
    return known


def _place_of(enrollment: Mapping[str, Any]) -> dict[str, Any] | None:
    """Name cohort and batch of an enrollment for the audit log; None without an enrollment."""
    return {name: enrollment[name] for name in ("cohort", "batch")} if enrollment["batch"] else None


@statement
def _start(
    student_ids: list[UUID],
    enrollment_ids: list[UUID],
    batch_ids: list[UUID],
    days: list[date | None],
    moment: datetime,
) -> Any:
    """Insert enrollments: each of a student, in a batch of a locked cohort, with the first day there, or null."""
    rows = unnest_rows(
        id=(Uuid, enrollment_ids),
        student_id=(Uuid, student_ids),
        batch_id=(Uuid, batch_ids),
        day=(Date, days),
    )
    of_batch = Batch.id, Batch.cohort_id, Cohort.session_id
    values = (
        select(rows.c.id, rows.c.student_id, *of_batch, moment, rows.c.day)  # type: ignore[call-overload]
        .join(Batch, Batch.id == rows.c.batch_id)
        .join(Cohort, Cohort.id == Batch.cohort_id)
    )
    columns = ["id", "student_id", "batch_id", "cohort_id", "session_id", "started_at", "started_on"]
    return insert(Enrollment).from_select(columns, values)


@statement
def _date(enrollment_ids: list[UUID], days: list[date]) -> Any:
    rows = unnest_rows("dated", None, id=(Uuid, enrollment_ids), day=(Date, days))
    return update(Enrollment).where(Enrollment.id == rows.c.id).values(started_on=rows.c.day)


@statement
def _end(enrollment_ids: list[UUID], days: list[date | None], moment: datetime) -> Any:
    """End enrollments of students with locked rows; a last day that is null leaves the stored one."""
    rows = unnest_rows("ended", None, id=(Uuid, enrollment_ids), day=(Date, days))
    last = func.coalesce(rows.c.day, Enrollment.ended_on)
    return update(Enrollment).where(Enrollment.id == rows.c.id).values(ended_at=moment, ended_on=last)


@statement
def _reopen(enrollment_ids: list[UUID]) -> Any:
    ended = Enrollment.id == one_of(enrollment_ids)
    return update(Enrollment).where(ended).values(ended_at=null(), ended_on=null())


@statement
def _delete(enrollment_ids: list[UUID]) -> Any:
    return delete(Enrollment).where(Enrollment.id == one_of(enrollment_ids))


def _leave(*conditions: Any, ended_on: date | None) -> dict[UUID, date | None]:
    """End open enrollments and the subjects taken with them; returns the first days there by the students' ids."""
    last: dict[str, Any] = {} if ended_on is None else {"ended_on": ended_on}
    ending = update(Enrollment).where(CURRENT, *conditions).values(ended_at=now(), **last)
    ended = db.session.execute(ending.returning(*_ENDED)).all()
    audit_changes(
        ENTITY,
        [
            Change(row.student_id, {"cohort": row.cohort_id, "batch": row.batch_id, **last}, None)
            for row in ended
        ],
    )
    students, cohorts = {row.student_id: row.started_on for row in ended}, {row.cohort_id for row in ended}
    execute(drop_subjects(list(cohorts), list(students)))
    return students
