"""Cohorts and their batches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import UUID, uuid4

import orjson

from school_service.core.database import db
from school_service.core.deletion import Deletion
from school_service.core.errors import Conflict, Invalid, Unknown
from school_service.core.narrowing import everybodys
from school_service.core.read_models import fetch_row
from school_service.core.records import check_of_filters, get, get_referenced, not_found, unknown_reference
from school_service.core.statements import NewRow, execute, new_row
from school_service.features.audit.service import (
    Change,
    audit_change,
    audit_changes,
    audit_member_changes,
    change_audited,
)
from school_service.features.school.cohorts import reads
from school_service.features.school.cohorts.reads import session_by_id_or_name
from school_service.features.school.models import FIRST_BATCH, AcademicSession, Batch, Classroom, Cohort

ENTITY, BATCH = "cohort", "batch"
NO_SESSION = Unknown("no such session")

DELETION = Deletion(
    Cohort,
    {"classroom": Cohort.classroom_id, "session": Cohort.session_id, "batches": reads.batches_of_cohort()},
)
BATCH_DELETION = Deletion(Batch, {"cohort": Batch.cohort_id, "name": Batch.name, "number": Batch.number})


check_session = check_of_filters(session=AcademicSession)


def create_cohort(*, classroom: UUID, session_id: str, batches: Sequence[str] = (FIRST_BATCH,)) -> NewRow:
    """Make a cohort of a classroom in a session, with its batches by name; the first one's id is the cohort's.

    A second cohort of both is a conflict. Raises Invalid for an unknown classroom or session.
    """
    row = fetch_row(reads.for_cohort(classroom, session_id, len(batches)))
    if row is None or not row["classroom"]:
        raise unknown_reference(Classroom, "classroom")
    if row["session_id"] is None:
        raise Invalid.field("session_id", NO_SESSION)
    session: UUID = row["session_id"]
    cohort = new_row(Cohort, classroom_id=classroom, session_id=session)
    audit_change(ENTITY, cohort.id, new={"classroom": classroom, "session": session})
    first = row["number"] - len(batches) + 1
    made = [
        _new_batch(cohort.id, name, number, batch_id=cohort.id if number == first else None)
        for number, name in enumerate(batches, first)
    ]
    execute(cohort, *made)
    return cohort


def change_cohort(*, cohort_id: UUID, classroom: UUID, session_id: str) -> Cohort:
    """Give a cohort another classroom or session.

    A cohort with students, now or ever, or with assessments or metrics, keeps its session: they refer to cohort and
    session together, and the change is a conflict. Raises NotFound, and Invalid for an unknown classroom or session.
    """
    cohort = get(Cohort, cohort_id, for_update=True)
    old = _audited(cohort)
    cohort.classroom_id = get_referenced(Classroom, classroom, "classroom").id
    cohort.session_id = find_session(session_id, "session_id")
    db.session.flush()
    audit_member_changes(ENTITY, cohort.id, old, _audited(cohort))
    return cohort


def create_batch(*, cohort_id: UUID, name: str) -> NewRow:
    """Add an arm to a cohort; a name already in the cohort is a conflict. Raises NotFound."""
    row = fetch_row(reads.for_batch(cohort_id))
    if row is None:
        raise not_found(Cohort)
    batch = _new_batch(cohort_id, name, row["number"])
    execute(batch)
    return batch


def delete_cohort(*, cohort_id: UUID) -> UUID:
    """Delete a cohort with its batches; a cohort with anything else, now or ever, is a conflict.

    Raises NotFound.
    """
    record = DELETION.lock(cohort_id)
    batches = orjson.loads(record.values.pop("batches"))
    audit_change(ENTITY, cohort_id, old=record.values)
    audit_changes(BATCH, [Change(UUID(batch.pop("id")), batch, None) for batch in batches])
    return record.delete()


def change_batch(*, batch_id: UUID, name: str | None = None) -> UUID:
    """Give a batch another name; papers published before keep the former name.

    A name already in the cohort is a conflict. Raises NotFound.
    """
    batch = get(Batch, batch_id, for_update=True)
    return change_audited(BATCH, batch, {} if name is None else {"name": name})


def delete_batch(*, batch_id: UUID) -> UUID:
    """Delete a batch; the first of a cohort, and one with anything in it, now or ever, is a conflict.

    Raises NotFound.
    """
    # Before the batch, as enrolling does: it locks the cohort, and then looks for the batch.
    record = BATCH_DELETION.lock(batch_id, reads.lock_cohort_of(batch_id))
    if str(record.values["cohort"]) == str(batch_id):
        raise Conflict("The first batch of a cohort is deleted with the cohort alone.")
    audit_change(BATCH, batch_id, old=record.values)
    return record.delete()


def check_cohort(*, id: UUID) -> None:
    """Tell whether there is such a cohort. Raises NotFound."""
    get(Cohort, id)


def find_session(text: str, field: str) -> UUID:
    """Find the session meant by a field of the input, by id or name, and answer its id.

    Raises Invalid, naming the field.
    """
    meant = everybodys(session_by_id_or_name(text))
    session_id: UUID | None = db.session.scalar(meant)
    if session_id is None:
        raise Invalid.field(field, NO_SESSION)
    return session_id


def _new_batch(cohort_id: UUID, name: str, number: int, batch_id: UUID | None = None) -> NewRow:
    batch = new_row(Batch, id=batch_id or uuid4(), number=number, cohort_id=cohort_id, name=name)
    audit_change(BATCH, batch.id, new={"cohort": cohort_id, "name": name, "number": number})
    return batch


def _audited(cohort: Cohort) -> dict[str, Any]:
    """The values of a cohort in the audit log."""
    return {"classroom": cohort.classroom_id, "session": cohort.session_id}
