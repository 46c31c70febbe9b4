"""Employees who leave: their subjects and form classes go to an heir, or are released, and are never forgotten."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date
from typing import Any
from uuid import UUID

import orjson
from sqlalchemy import Uuid, cast, delete, select
from sqlalchemy.dialects.postgresql import insert

from school_service.auth.principal import Principal
from school_service.core.errors import InUse, Invalid
from school_service.core.permissions import Permission
from school_service.core.records import one_of, singular, unknown_reference
from school_service.core.statements import Executable, execute, statement
from school_service.features.audit.service import Change, audit_changes
from school_service.features.classes.models import SubjectTeacher
from school_service.features.classes.subject_teachers import reads
from school_service.features.classes.subject_teachers.service import ENTITY, audited_values, storing
from school_service.features.people.employees import service as employees
from school_service.features.people.models import Employee, FormTeacher

MOST_NAMED = 20  # subjects, and classes, in a refusal
_PURPOSE = "Deleting an employee who teaches"


def delete_employee(
    *, employee_id: UUID, principal: Principal, hand_over: UUID | None = None, release: bool = False
) -> UUID:
    """Delete an employee as `employees.delete_employee` does; their work is not left behind.

    Assignments that hold after today end today, and those yet to begin go. `hand_over`: an employee who has each of
    them from today on, and the form classes; the heir's own work stays as it is. `release`: nobody has them. Raises
    Conflict for an employee with such work and neither of both, Invalid for an heir who may not teach, Forbidden if the
    principal may not assign, or take, and the errors of `employees.delete_employee`.
    """
    if hand_over is not None:
        principal.require([Permission.TEACHERS_WRITE], _PURPOSE)
    if release:
        principal.require([Permission.TEACHERS_DELETE], _PURPOSE)
    row = execute(
        reads.lock_subjects_of(employee_id),
        reads.lock_batches_of(employee_id),
        reads.lock_leaver(employee_id, hand_over),
        reads.left_behind(employee_id, hand_over),
    )
    if row is None:
        raise RuntimeError("The work of a leaving employee has one row.")
    left = {**row, **{part: orjson.loads(row[part]) for part in ("assignments", "batches")}}
    if hand_over == employee_id:
        raise Invalid.field("hand_over", "is the employee who leaves")
    if hand_over is not None and not left["heir"]:
        raise unknown_reference(Employee, "hand_over")
    is_told = hand_over is not None or release
    writes = (
        [*_ending(left, hand_over), *_looking_after(left["batches"], employee_id, hand_over)]
        if is_told
        else []
    )
    if writes:
        execute(*writes)
    deleted = employees.delete_employee(employee_id=employee_id, principal=principal)
    if not is_told:
        # Now, so that a caller without the right to delete the employee is not told of their work.
        _refuse_work(left, named=principal.has(Permission.TEACHERS_READ))
    return deleted


def _refuse_work(left: Mapping[str, Any], *, named: bool) -> None:
    """Refuse to leave work behind, naming it; raises Conflict."""
    parts = (("assignments", "teaches", "subjects"), ("batches", "looks after", "form classes"))
    work = [f"{verb} {_counted(left[part], words, named)}" for part, verb, words in parts if left[part]]
    if work:
        raise InUse(
            f"The employee {' and '.join(work)}: hand them over with hand_over, or leave them to nobody with "
            "release=true."
        )


def _counted(rows: Sequence[Mapping[str, Any]], words: str, named: bool) -> str:
    """Count rows in words, with the names of the first ones if they are to be `named`."""
    count = f"{len(rows):,} {singular(words) if len(rows) == 1 else words}"
    more = [f"{len(rows) - MOST_NAMED:,} more"] if len(rows) > MOST_NAMED else []
    names = "; ".join([*(row["name"] for row in rows[:MOST_NAMED]), *more])
    return f"{count} ({names})" if named else count


def _ending(left: Mapping[str, Any], heir: UUID | None) -> list[Executable]:
    """End the assignments of a leaver today, and let them begin for the heir; puts it on record."""
    day = date.fromisoformat(left["day"])
    rows = [
        {**row, **{name: _date(row[name]) for name in ("starts_on", "ends_on")}}
        for row in left["assignments"]
    ]
    ended = [{**row, "ends_on": day} for row in rows if row["begun"]]
    gone = [row for row in rows if not row["begun"]]
    begun = [
        {**row, "employee": str(heir), "starts_on": max(row["starts_on"] or day, day)}
        for row in rows
        if heir is not None and not row["heir"]
    ]
    old = {row["id"]: audited_values(row) for row in rows}
    audit_changes(
        ENTITY,
        [
            *(Change(UUID(row["cohort_subject"]), old[row["id"]], audited_values(row)) for row in ended),
            *(Change(UUID(row["cohort_subject"]), old[row["id"]], None) for row in gone),
            *(Change(UUID(row["cohort_subject"]), None, audited_values(row)) for row in begun),
        ],
    )
    stored = [*ended, *begun]
    writes: list[Executable] = [*storing(stored, [UUID(row["cohort"]) for row in stored])]
    return [*writes, _remove([UUID(row["id"]) for row in gone])] if gone else writes


def _looking_after(
    batches: Sequence[Mapping[str, Any]], employee_id: UUID, heir: UUID | None
) -> list[Executable]:
    """Let the heir look after the form classes of a leaver, who is removed there with the employee."""
    new = [UUID(batch["id"]) for batch in batches if not batch["heir"]]
    if heir is None or not new:
        return []
    audit_changes(employees.FORM_TEACHER, [Change(batch, None, {"teacher": heir}) for batch in new])
    return [_look_after(new, employee_id, heir)]


@statement
def _remove(ids: list[UUID]) -> Any:
    return delete(SubjectTeacher).where(SubjectTeacher.id == one_of(ids))


@statement
def _look_after(batch_ids: list[UUID], employee_id: UUID, heir_id: UUID) -> Any:
    """Make the heir a form teacher of batches, in the place of another: the one shown is the last one made."""
    rows: Any = (FormTeacher.batch_id, cast(heir_id, Uuid), FormTeacher.created_at)
    of_leaver = select(*rows).where(
        FormTeacher.employee_id == employee_id, FormTeacher.batch_id == one_of(batch_ids)
    )
    return insert(FormTeacher).from_select(["batch_id", "employee_id", "created_at"], of_leaver)


def _date(text: str | None) -> date | None:
    return None if text is None else date.fromisoformat(text)
