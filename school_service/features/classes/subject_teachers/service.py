"""Subject teachers: employees teaching a subject of a cohort, to one arm or to all."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import date, datetime
from typing import Any
from uuid import UUID, uuid4

import orjson
from sqlalchemy import Date, Uuid, select
from sqlalchemy.dialects.postgresql import insert

from school_service.core.errors import Invalid, Unknown
from school_service.core.read_models import BoundQuery, fetch_row, fetch_rows
from school_service.core.records import check_of_filters, get, remove, unnest_rows
from school_service.core.statements import execute, in_one_round_trip, statement
from school_service.features.audit.service import Change, audit_change, audit_changes
from school_service.features.classes.models import CohortSubject, SubjectTeacher
from school_service.features.classes.subject_teachers import reads
from school_service.features.people.models import Employee
from school_service.features.school.cohorts.service import NO_SESSION, find_session
from school_service.features.school.models import Batch
from tenants.clock import now

ENTITY = "subject-teacher"
"""The name of an assignment in the audit log; the id there is the cohort subject's."""

_COLUMNS = (
    "id",
    "cohort_subject_id",
    "cohort_id",
    "employee_id",
    "batch_id",
    "starts_on",
    "ends_on",
    "created_at",
)
_KEY = ("cohort_subject", "employee", "batch")


check_subject_teacher_filter = check_of_filters(
    cohort_subject=CohortSubject, batch=Batch, employee=Employee, session=find_session
)


def put_subject_teachers(*, assignments: Sequence[Mapping[str, Any]]) -> BoundQuery:
    """Add or change assignments, all or none; one already so is left as it is.

    Each has `cohort_subject`, `employee`, `batch` (None: all arms), `starts_on` and `ends_on`; the first three are its
    key. Returns the read model of those named, stored and read in one round trip. Raises Invalid, naming each wrong one
    by its place.
    """
    subjects, employees = _all(assignments, "cohort_subject"), _all(assignments, "employee")
    batches = _all(assignments, "batch")
    arms = [each for each in batches if each is not None]
    locks = reads.lock_subjects(subjects), reads.lock_batches(arms), reads.lock_employees(employees)
    row = execute(*locks, reads.facts_of_assignments(subjects, employees, arms))
    facts = {name: orjson.loads(text) for name, text in (row or {}).items()}
    _refuse(assignments, facts)
    known = {_key(each): each for each in facts["known"]}
    changed = [each for each in assignments if _dates(each) != _dates(known.get(_key(each), {}))
               or _key(each) not in known]  # fmt: skip
    read = reads.assignments_of(subjects, employees, batches)
    if not changed:
        return read
    audit_changes(
        ENTITY,
        (
            Change(
                each["cohort_subject"],
                audited_values(known[_key(each)]) if _key(each) in known else None,
                audited_values(each),
            )
            for each in changed
        ),
    )
    cohorts = [UUID(facts["subjects"][str(each["cohort_subject"])]) for each in changed]
    return in_one_round_trip(*storing(changed, cohorts), read=read)


def delete_subject_teacher(*, assignment_id: UUID) -> UUID:
    """Delete an assignment. Raises NotFound."""
    assignment = get(SubjectTeacher, assignment_id, for_update=True)
    old = {
        "employee": assignment.employee_id,
        "batch": assignment.batch_id,
        "starts_on": assignment.starts_on,
        "ends_on": assignment.ends_on,
    }
    audit_change(ENTITY, assignment.cohort_subject_id, old=old)
    return remove(assignment)


def copy_subject_teachers(*, from_session: str, to_session: str, dry_run: bool = False) -> dict[str, Any]:
    """Copy the assignments of a session into another, by classroom, subject and the arm's name, without dates.

    Existing ones stay as they are. Assignments ended before today, and before the last day of their session, are left
    out. Answers how many there are, how many were copied, and the ones left out. Raises Invalid for an unknown session,
    and if both are the same.
    """
    facts = fetch_row(reads.sessions(from_session, to_session)) or {}
    for field, name in (("from_session", "source"), ("to_session", "target")):
        if facts[name] is None:
            raise Invalid.field(field, NO_SESSION)
    source, target = UUID(facts["source"]), UUID(facts["target"])
    if source == target:
        raise Invalid.field("to_session", "is the session that is copied from")
    locks = (
        reads.lock_subjects_of_session(target),
        reads.lock_batches_of_session(target),
        reads.lock_employees_of_session(source),
    )
    row = execute(*locks, reads.copying(source, target))
    rows = orjson.loads(row["rows"]) if row else []
    left_out = sorted((each for each in rows if each["code"]), key=_order)
    new = [each for each in rows if not each["code"] and not each["there"]]
    if new and not dry_run:
        execute(*storing(new, [UUID(each["cohort"]) for each in new]))
        audit_changes(
            ENTITY, [Change(UUID(each["cohort_subject"]), None, audited_values(each)) for each in new]
        )
    return {
        "rows": len(rows),
        "copied": len(new),
        "already_there": len(rows) - len(new) - len(left_out),
        "left_out": left_out,
    }


def _refuse(assignments: Sequence[Mapping[str, Any]], facts: Mapping[str, Any]) -> None:
    """Raise the reasons against any of the assignments, naming them all."""
    wrong: dict[str, str] = {}
    keys: set[Any] = set()
    employees = set(facts["employees"])
    for place, each in enumerate(assignments):
        subject, employee, batch = _key(each)
        cohort = facts["subjects"].get(subject)
        if cohort is None:
            wrong[f"assignments.{place}.cohort_subject"] = Unknown("no such cohort subject")
        if employee not in employees:
            wrong[f"assignments.{place}.employee"] = Unknown("no such employee")
        elif (subject, employee, batch) in keys:
            wrong[f"assignments.{place}.employee"] = "named more than once for the same subject and batch"
        keys.add((subject, employee, batch))
        if batch is not None and batch not in facts["batches"]:
            wrong[f"assignments.{place}.batch"] = Unknown("no such batch")
        elif batch is not None and cohort is not None and facts["batches"][batch] != cohort:
            wrong[f"assignments.{place}.batch"] = "is no batch of the subject's cohort"
        if each["starts_on"] and each["ends_on"] and each["ends_on"] < each["starts_on"]:
            wrong[f"assignments.{place}.ends_on"] = "is before starts_on"
    if wrong:
        rows = fetch_rows(reads.names([*map(UUID, facts["subjects"])], [*map(UUID, employees)]))
        names = {str(row["id"]): row["name"] for row in rows}
        words = [f"{_name_of(place, assignments, names)}: {reason}" for place, reason in wrong.items()]
        raise Invalid("; ".join(words), {place: [reason] for place, reason in wrong.items()})


def _name_of(place: str, assignments: Sequence[Mapping[str, Any]], names: Mapping[str, str]) -> str:
    """Name the subject and the employee of an assignment; the place if neither is known."""
    key = _key(assignments[int(place.split(".")[1])])
    return ", ".join(names[id] for id in key if id and id in names) or place


def storing(rows: Sequence[Mapping[str, Any]], cohorts: Sequence[UUID]) -> Iterable[BoundQuery]:
    """Make the statements to store assignments; those without an arm have another key."""
    moment = now()
    for store, of_arm in ((_store_of_arms, True), (_store_of_all, False)):
        chosen = [
            (row, cohort)
            for row, cohort in zip(rows, cohorts, strict=True)
            if (row["batch"] is not None) == of_arm
        ]
        if chosen:
            each = [row for row, _ in chosen]
            yield store(
                [uuid4() for _ in each],
                _all(each, "cohort_subject"),
                [cohort for _, cohort in chosen],
                _all(each, "employee"),
                _all(each, "batch"),
                [row.get("starts_on") for row in each],
                [row.get("ends_on") for row in each],
                moment,
            )


def _insertion(columns: Sequence[Any], moment: Any, index: Sequence[str], *, of_arm: bool) -> Any:
    kinds = (Uuid, Uuid, Uuid, Uuid, Uuid, Date, Date)
    rows = unnest_rows(**dict(zip(_COLUMNS[:-1], zip(kinds, columns, strict=True), strict=True)))
    values: Any = (*rows.c, moment)
    storing = insert(SubjectTeacher).from_select(list(_COLUMNS), select(*values))
    batch = SubjectTeacher.batch_id
    return storing.on_conflict_do_update(
        index_elements=index,
        index_where=batch.is_not(None) if of_arm else batch.is_(None),
        set_={"starts_on": storing.excluded.starts_on, "ends_on": storing.excluded.ends_on},
    )


@statement
def _store_of_arms(
    ids: list[UUID],
    subjects: list[UUID],
    cohorts: list[UUID],
    employees: list[UUID],
    batches: list[UUID],
    starts: list[date | None],
    ends: list[date | None],
    moment: datetime,
) -> Any:
    columns = (ids, subjects, cohorts, employees, batches, starts, ends)
    key = ("cohort_subject_id", "employee_id", "batch_id")
    return _insertion(columns, moment, key, of_arm=True)


@statement
def _store_of_all(
    ids: list[UUID],
    subjects: list[UUID],
    cohorts: list[UUID],
    employees: list[UUID],
    batches: list[UUID],
    starts: list[date | None],
    ends: list[date | None],
    moment: datetime,
) -> Any:
    columns = (ids, subjects, cohorts, employees, batches, starts, ends)
    return _insertion(columns, moment, ("cohort_subject_id", "employee_id"), of_arm=False)


def _all(rows: Iterable[Mapping[str, Any]], name: str) -> list[Any]:
    return [row[name] for row in rows]


def _key(row: Mapping[str, Any]) -> tuple[str | None, ...]:
    return tuple(None if row[name] is None else str(row[name]) for name in _KEY)


def _dates(row: Mapping[str, Any]) -> tuple[str | None, ...]:
    return tuple(None if row.get(name) is None else str(row[name]) for name in ("starts_on", "ends_on"))


def audited_values(row: Mapping[str, Any]) -> dict[str, Any]:
    """The values of an assignment in the audit log; the id there is the cohort subject's."""
    return {name: row.get(name) for name in ("employee", "batch", "starts_on", "ends_on")}


def _order(row: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(row[name] or "" for name in ("classroom", "subject", "batch_name", "employee_name"))
