"""Registers: marking them, correcting them, and deleting one.

Marking and correcting lock the registers FOR NO KEY UPDATE, and make missing ones before. Many mark at once;
corrections, deletions, and changes of the school's days or settings wait for them, and they for those: so a register
never goes while somebody waits for it. Nobody waits for a cohort: a student leaving meanwhile keeps the mark.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Any
from uuid import UUID

import orjson
from sqlalchemy import (
    Date,
    Integer,
    SmallInteger,
    String,
    Time,
    Uuid,
    and_,
    cast,
    delete,
    exists,
    literal,
    literal_column,
    null,
    select,
    true,
    update,
)
from sqlalchemy.dialects.postgresql import insert

from school_service.auth.principal import Principal
from school_service.core.deletion import Deletion
from school_service.core.errors import Conflict, Forbidden, Incomplete, Invalid, refuse_named
from school_service.core.permissions import Permission
from school_service.core.read_models import BoundQuery
from school_service.core.records import get_referenced, new_ids, one_of, unknown_reference, unnest_rows
from school_service.core.statements import Executable, execute, in_one_round_trip, statement
from school_service.features.attendance import calendar
from school_service.features.attendance.models import (
    DEFAULT_CODES,
    LESSON,
    NOT_TAKEN,
    Mark,
    Register,
)
from school_service.features.attendance.registers import marking, reads
from school_service.features.attendance.registers.marking import Attendee, Marking, StoredRegister
from school_service.features.attendance.settings.service import lock_days, share_days
from school_service.features.audit.service import Change, audit_change, audit_changes
from school_service.features.classes.models import CohortSubject
from school_service.features.people.guardians.people import author
from school_service.features.people.students.naming import strangers
from school_service.features.reach import scopes
from school_service.features.school.models import Batch, Cohort, Term
from tenants.clock import now

ENTITY, CORRECTION = "register", "attendance-correction"
"""Their names in the audit log; the id of a correction is the student's."""

AHEAD = timedelta(minutes=5)
"""How far the clock of a teacher's device may be ahead."""

DELETION = Deletion(
    Register,
    {
        "batch": Register.batch_id,
        "cohort_subject": Register.cohort_subject_id,
        "date": Register.date,
        "part": Register.part,
        "period": Register.period,
        "state": Register.state,
        "today": scopes.today(),
        "lock_after": calendar.setting("lock_after"),
    },
)


Times = Sequence[tuple[date, str]]
"""Times of a class: days, each with a part, or with the period of a lesson as text."""


@dataclass(frozen=True, slots=True)
class LockedRegisters:
    """Locked registers of a batch, in the order of their times, and the facts for and against a change.

    `today` is the school's day; `codes` are the school's, each with its kind, by its letters without regard to case.
    """

    today: date
    lock_after: int | None
    codes: Mapping[str, tuple[str, str]]
    registers: Sequence[StoredRegister]


def register(
    *,
    batch: UUID,
    day: date,
    part: str | None = None,
    cohort_subject: UUID | None = None,
    period: int | None = None,
) -> BoundQuery:
    """Give the read model of a register, of a part of a day or of a lesson. Raises Invalid for a key of neither."""
    _check_key(part, cohort_subject, period)
    return reads.register(batch, day, part, cohort_subject, period)


def _check_key(part: str | None, cohort_subject: UUID | None, period: int | None) -> None:
    """Refuse a key of neither a part of a day nor a lesson. Raises Invalid."""
    lesson = {"cohort_subject": cohort_subject, "period": period}
    given = [name for name, value in lesson.items() if value is not None]
    if part is not None and given:
        raise Invalid.field(given[0], "is not given with a part")
    if part is None and not given:
        raise Invalid.field("part", "is required, or cohort_subject and period")
    if part is None and len(given) < len(lesson):
        (missing,) = lesson.keys() - set(given)
        raise Invalid.field(missing, "is required of a lesson")


def mark_register(
    *,
    batch: UUID,
    day: date,
    part: str | None = None,
    cohort_subject: UUID | None = None,
    period: int | None = None,
    version: int = 0,
    default: str | None = None,
    marks: Sequence[Mapping[str, Any]] = (),
    submit: bool = False,
    taken_at: datetime | None = None,
    force: bool = False,
    principal: Principal | None = None,
) -> BoundQuery:
    """Mark a register, of a part of a day or of a lesson, and make it if it is missing; all or none of the marks.

    `version` is the last one seen by the caller; `marks`, `default`, `submit` and `force` are as in `marking.mark`.
    `taken_at` is the moment of marking, at most 5 minutes ahead. Returns the read model of the register, stored and
    read in one round trip.

    Raises Invalid for an unknown batch or cohort subject, a date to come, a part unknown to the school, and as
    `marking.mark`; Forbidden for a register older than the school allows, unless the principal may correct; Conflict
    for a closed day or a day in no term, and as `marking.mark`.
    """
    moment = now()
    if taken_at is not None and taken_at > moment + AHEAD:
        raise Invalid.field("taken_at", "is more than 5 minutes ahead")
    _check_key(part, cohort_subject, period)
    time = (day, part or str(period))
    locked = lock_registers(batch, [time], cohort_subject, principal=principal)
    (register,) = locked.registers
    _refuse_strangers("marks", marks, register.people)
    marked = marking.mark(
        register,
        locked.codes,
        marks=marks,
        default=default,
        seen=version,
        submit=submit,
        force=force,
    )
    read = reads.register(batch, day, part, cohort_subject, period)
    if marked.version == register.version:
        return read
    writes = storing(
        time, register, marked, lesson=part is None, moment=moment, taken_at=taken_at, source="hand"
    )
    return in_one_round_trip(*writes, read=read)


def correct_register(
    *,
    batch: UUID,
    day: date,
    part: str | None = None,
    cohort_subject: UUID | None = None,
    period: int | None = None,
    corrections: Sequence[Mapping[str, Any]],
) -> BoundQuery:
    """Correct the marks of students in a register, or take corrections back; the teacher's marks stay as they are.

    Each has `student`, `code`, None to take it back, and `reason`. A missing register is made, and waits to be taken.
    Returns its read model, stored and read in one round trip. Raises as `mark_register`, but neither for its age nor
    for its version.
    """
    _check_key(part, cohort_subject, period)
    time = (day, part or str(period))
    locked = lock_registers(batch, [time], cohort_subject, bound=False)
    (register,) = locked.registers
    _refuse_strangers("corrections", corrections, register.people)
    changed = marking.corrections(register, locked.codes, corrections)
    read = reads.register(batch, day, part, cohort_subject, period)
    named = {**_time_in_log(time, lesson=part is None), "register": _id_of(register)}
    audit_changes(
        CORRECTION,
        (
            Change(
                UUID(person.id),
                None if person.correction is None else {**named, "code": person.correction},
                None if code is None else {**named, "code": code},
            )
            for person, code, _, _ in changed
            if person.correction is not None or code is not None
        ),
    )
    return in_one_round_trip(*_storing_corrections(_id_of(register), changed), read=read)


def _refuse_strangers(member: str, rows: Sequence[Mapping[str, Any]], people: Mapping[str, Attendee]) -> None:
    """Refuse records of students named twice or not in the register. Raises Invalid."""
    named = Counter(str(row["student"]) for row in rows)
    outside = (UUID(each) for each in named if each not in people)
    reasons = {
        "named more than once": [str(people.get(each, each)) for each, times in named.items() if times > 1],
        **strangers(outside, "not in the register"),
    }
    refuse_named({member: reasons})


def delete_register(*, register_id: UUID, principal: Principal | None = None) -> UUID:
    """Delete a register with all its marks and corrections: it is as if nobody had taken it.

    Raises NotFound, and Forbidden as `mark_register`.
    """
    record = DELETION.lock(register_id, lock_days())
    today, lock_after = record.values.pop("today"), record.values.pop("lock_after")
    _refuse_old(record.values["date"], today, lock_after, principal)
    audit_change(ENTITY, register_id, old=record.values)
    return record.delete()


def check_register(*, batch: UUID, cohort_subject: UUID | None = None, **_time: Any) -> None:
    """Tell whether the given batch is there, and the given subject in its cohort. Raises Invalid."""
    cohort_id = reads.cohort_of(batch, None if cohort_subject is None else literal(cohort_subject, Uuid))
    if cohort_id is None:
        raise unknown_reference(Batch, "batch")
    if cohort_subject is not None:
        subject = get_referenced(CohortSubject, cohort_subject, "cohort_subject")
        if subject.cohort_id != cohort_id:
            raise Invalid.field("cohort_subject", "is not of the batch's cohort")


def lock_registers(
    batch: UUID,
    times: Times,
    cohort_subject: UUID | None = None,
    *,
    principal: Principal | None = None,
    bound: bool = True,
    made: bool = True,
) -> LockedRegisters:
    """Make the missing registers of a batch, lock all of the times, and read their contents, in one round trip.

    The times are in the order of days and parts, and each once; with a cohort subject they are its lessons. If they are
    not to be `made`, since nothing is stored, a missing one has no id. Raises as `mark_register`. Corrections are not
    `bound`: they are made at any age, and may leave a register empty, which goes.
    """
    days, parts = [day for day, _ in times], [part for _, part in times]
    making = (
        _share_class(batch, days, parts, cohort_subject),
        _make(batch, days, parts, new_ids(len(times)), cohort_subject),
    )
    facts = execute(
        share_days() if bound else lock_days(),
        *(making if made else ()),
        _lock(batch, days, parts, cohort_subject),
        reads.facts_of_registers(batch, days, parts, cohort_subject),
    )
    if facts is None:
        check_register(batch=batch, cohort_subject=cohort_subject)
        raise unknown_reference(Batch, "batch")
    rows = orjson.loads(facts["registers"])
    for (day, _), row in zip(times, rows, strict=True):
        _refuse_time(day, row, facts, principal, bound=bound)
    codes = orjson.loads(facts["codes"]) or [{"code": code, "kind": kind} for code, _, kind in DEFAULT_CODES]
    return LockedRegisters(
        facts["today"],
        facts["lock_after"],
        {row["code"].casefold(): (row["code"], row["kind"]) for row in codes},
        [marking.to_register(row) for row in rows],
    )


def storing(
    time: tuple[date, str],
    register: StoredRegister,
    marked: Marking,
    *,
    lesson: bool,
    moment: datetime,
    taken_at: datetime | None,
    source: str,
    **about: Any,
) -> list[Executable]:
    """Store the changes of a locked register, and write them to the audit log; returns the statements.

    `source` says in the log how they came, by hand or by a sheet, and `about` may say more of it.
    """
    register_id = _id_of(register)
    values = _time_in_log(time, lesson=lesson)
    audit_change(
        ENTITY,
        register_id,
        old=None
        if register.state == NOT_TAKEN
        else {
            **values,
            "state": register.state,
            "changed": {new.person.id: new.person.code for new in marked.marks},
        },
        new={
            **values,
            "state": marked.state,
            "changed": {new.person.id: new.code for new in marked.marks},
            "source": source,
            **about,
            **({"forced": True} if marked.forced else {}),
        },
    )
    given = [new for new in marked.marks if new.code is not None]
    cleared = [new.person for new in marked.marks if new.code is None]
    writes: list[Executable] = []
    if given:
        writes.append(
            _store_marks(
                register_id,
                marked.version,
                [new.person.id for new in given],
                [new.code for new in given],
                [new.kind for new in given],
                [new.note for new in given],
                [new.arrived for new in given],
            )
        )
    if corrected := [person.id for person in cleared if person.correction is not None]:
        writes.append(_clear_marks(register_id, marked.version, corrected))
    if bare := [person.id for person in cleared if person.correction is None]:
        writes.append(_delete_marks(register_id, bare))
    actor, name = author()
    writes.append(_change(register_id, marked.state, marked.version, moment, actor, name, taken_at))
    return writes


def _id_of(register: StoredRegister) -> UUID:
    if register.id is None:
        raise RuntimeError("A register that is locked has been made.")
    return UUID(register.id)


def _time_in_log(time: tuple[date, str], *, lesson: bool) -> dict[str, Any]:
    """Name the time of a class in the log."""
    day, part = time
    return {"part": LESSON, "period": int(part), "date": day} if lesson else {"part": part, "date": day}


def _refuse_time(
    day: date, row: Mapping[str, Any], facts: Mapping[str, Any], principal: Principal | None, *, bound: bool
) -> None:
    """Refuse a register of a day to come, of a part unknown to the school, too old, or of a day without school."""
    if day > facts["today"]:
        raise Invalid.field("date", "is to come")
    if not row["is_part"]:
        raise Invalid.field("part", "is none of the school's")
    if bound:
        _refuse_old(day, facts["today"], facts["lock_after"], principal)
    if row["term_id"] is None:
        if not facts["has_dates"]:
            raise Incomplete("No term of the session has dates: set them in its calendar first.")
        raise Conflict(f"{day} is in no term of the session.")
    if not row["is_open"]:
        name = f": {row['day_name']}" if row["day_name"] else ""
        raise Conflict(f"The school is closed on {day}{name}.")


def _refuse_old(day: date, today: date, lock_after: int | None, principal: Principal | None) -> None:
    if lock_after is None or (today - day).days <= lock_after or principal is None:
        return
    if not principal.has(Permission.ATTENDANCE_CORRECTIONS_WRITE):
        days = "1 day" if lock_after == 1 else f"{lock_after} days"
        raise Forbidden(f"Registers older than {days} are changed by the office.")


@statement
def _share_class(
    batch_id: UUID, days: list[date], parts: list[str], cohort_subject_id: UUID | None = None
) -> Any:
    """Lock the references of new registers FOR KEY SHARE, before they are made: term, cohort, subject, batch.

    Nothing is locked if all registers are there.
    """
    given = unnest_rows("given", None, day=(Date, days), part=(String, parts))
    is_there = reads.is_register(batch_id, cohort_subject_id, given.c.day, given.c.part)
    rows: Any = (
        select(Term.id)
        .select_from(Batch)
        .join(Cohort, Cohort.id == Batch.cohort_id)
        .join(given, true())
        .join(Term, Term.id == calendar.term_of(Cohort.session_id, given.c.day))
        .where(
            Batch.id == batch_id,
            ~exists().where(is_there).correlate(given),
        )
        .order_by(Term.id)
    )
    of_lessons = () if cohort_subject_id is None else (CohortSubject,)
    rows = reads.with_lessons(rows, cohort_subject_id)
    return rows.with_for_update(read=True, key_share=True, of=(Term, Cohort, *of_lessons, Batch))


@statement
def _make(
    batch_id: UUID,
    days: list[date],
    parts: list[str],
    ids: list[str],
    cohort_subject_id: UUID | None = None,
) -> Any:
    """Make the missing registers of a batch, for days in a term."""
    given = unnest_rows("given", None, id=(Uuid, ids), day=(Date, days), part=(String, parts))
    term_id = calendar.term_of(Cohort.session_id, given.c.day)
    lesson = cohort_subject_id is not None
    rows: Any = (
        select(
            given.c.id,
            Batch.id,
            Batch.cohort_id,
            Cohort.session_id,
            term_id,
            CohortSubject.id if lesson else null(),
            given.c.day,
            literal_column(f"'{LESSON}'") if lesson else given.c.part,
            cast(given.c.part, SmallInteger) if lesson else null(),
            literal_column(f"'{NOT_TAKEN}'"),
            literal_column("0"),
        )
        .select_from(Batch)
        .join(Cohort, Cohort.id == Batch.cohort_id)
        .join(given, true())
        .where(Batch.id == batch_id, term_id.is_not(None))
        .order_by(given.c.day, given.c.part)
    )
    rows = reads.with_lessons(rows, cohort_subject_id)
    columns = [
        "id",
        "batch_id",
        "cohort_id",
        "session_id",
        "term_id",
        "cohort_subject_id",
        "date",
        "part",
        "period",
        "state",
        "version",
    ]
    return insert(Register).from_select(columns, rows, include_defaults=False).on_conflict_do_nothing()


@statement
def _lock(batch_id: UUID, days: list[date], parts: list[str], cohort_subject_id: UUID | None = None) -> Any:
    """Lock registers FOR NO KEY UPDATE, in order of id, as do all writers of registers."""
    given = unnest_rows("given", None, day=(Date, days), part=(String, parts))
    return (
        select(Register.id)
        .join(given, reads.is_register(batch_id, cohort_subject_id, given.c.day, given.c.part))
        .order_by(Register.id)
        .with_for_update(key_share=True, of=Register)
    )


@statement
def _store_marks(
    register_id: UUID,
    version: int,
    student_ids: list[str],
    codes: list[str | None],
    kinds: list[str | None],
    notes: list[str | None],
    arrived: list[str | None],
) -> Any:
    rows = unnest_rows(
        student_id=(Uuid, student_ids),
        code=(String, codes),
        kind=(String, kinds),
        note=(String, notes),
        arrived=(Time, arrived),
    )
    of_mark = ("code", "kind", "note", "arrived")
    values: Any = (cast(register_id, Uuid), cast(version, Integer), *rows.c)
    # In the order of the students: two that insert never wait for each other's locks of them.
    given = select(*values).order_by(rows.c.student_id)
    storing = insert(Mark).from_select(["register_id", "version", "student_id", *of_mark], given)
    return storing.on_conflict_do_update(
        index_elements=["register_id", "student_id"],
        set_={name: storing.excluded[name] for name in ("version", *of_mark)},
    )


def _of(register_id: Any, student_ids: Any) -> Any:
    students = one_of(student_ids, Uuid(as_uuid=False))
    return and_(Mark.register_id == register_id, Mark.student_id == students)


@statement
def _clear_marks(register_id: UUID, version: int, student_ids: list[str]) -> Any:
    """Take the teacher's marks away from corrections, which stay."""
    nothing = dict.fromkeys(("code", "kind", "note", "arrived"))
    return update(Mark).where(_of(register_id, student_ids)).values(version=version, **nothing)


@statement
def _delete_marks(register_id: UUID, student_ids: list[str]) -> Any:
    return delete(Mark).where(_of(register_id, student_ids))


@statement
def _change(
    register_id: UUID,
    state: str,
    version: int,
    moment: datetime,
    actor: str,
    actor_name: str,
    taken_at: datetime | None = None,
) -> Any:
    """Change a register's state and version, its author and moment of change; `taken_at` only if it is given."""
    taken = {} if taken_at is None else {"taken_at": taken_at}
    changing = update(Register).where(Register.id == register_id)
    return changing.values(
        state=state, version=version, changed_at=moment, changed_by=actor, changed_by_name=actor_name, **taken
    )


def _storing_corrections(
    register_id: UUID, changed: Sequence[tuple[Attendee, str | None, str | None, str | None]]
) -> list[Executable]:
    """Store the changes by corrections; a register taken by nobody, and with nothing left in it, goes."""
    writes: list[Executable] = []
    actor, name = author()
    if given := [row for row in changed if row[1] is not None]:
        people, codes, kinds, reasons = (list(column) for column in zip(*given, strict=True))
        writes.append(
            _store_corrections(
                register_id, [person.id for person in people], codes, kinds, reasons, now(), actor, name
            )
        )
    taken_back = [person for person, code, _, _ in changed if code is None]
    if marked := [person.id for person in taken_back if person.code is not None]:
        writes.append(_clear_corrections(register_id, marked))
    if bare := [person.id for person in taken_back if person.code is None]:
        writes.append(_delete_marks(register_id, bare))
    return [*writes, _delete_empty(register_id)]


@statement
def _store_corrections(
    register_id: UUID,
    student_ids: list[str],
    codes: list[str],
    kinds: list[str],
    reasons: list[str],
    moment: datetime,
    actor: str,
    actor_name: str,
) -> Any:
    rows = unnest_rows(
        student_id=(Uuid, student_ids),
        correction_code=(String, codes),
        correction_kind=(String, kinds),
        reason=(String, reasons),
    )
    of_rows = ("correction_code", "correction_kind", "reason")
    common = {"corrected_at": moment, "corrected_by": actor, "corrected_by_name": actor_name}
    values: Any = (cast(register_id, Uuid), literal_column("0"), *common.values(), *rows.c)
    storing = insert(Mark).from_select(
        ["register_id", "version", *common, "student_id", *of_rows],
        select(*values).order_by(rows.c.student_id),
    )
    return storing.on_conflict_do_update(
        index_elements=["register_id", "student_id"],
        set_={name: storing.excluded[name] for name in (*common, *of_rows)},
    )


@statement
def _clear_corrections(register_id: UUID, student_ids: list[str]) -> Any:
    members = (
        "correction_code",
        "correction_kind",
        "reason",
        "corrected_at",
        "corrected_by",
        "corrected_by_name",
    )
    return update(Mark).where(_of(register_id, student_ids)).values(dict.fromkeys(members))


@statement
def _delete_empty(register_id: UUID) -> Any:
    unmarked = ~exists().where(Mark.register_id == register_id)
    return delete(Register).where(Register.id == register_id, Register.state == NOT_TAKEN, unmarked)
