"""Cohorts and their batches."""

from __future__ import annotations

from typing import Any
from uuid import UUID, uuid4

from school_service.core.counters import BATCHES, next_numbers
from school_service.core.database import db
from school_service.core.errors import Invalid
from school_service.core.records import add, get, get_referenced
from school_service.features.audit.service import audit_change, audit_member_changes
from school_service.features.classrooms.models import Classroom
from school_service.features.cohorts.models import FIRST_BATCH, Batch, Cohort
from school_service.features.cohorts.reads import session_by_id_or_name

ENTITY = "cohort"


def create_cohort(*, classroom: UUID, session_id: str) -> Cohort:
    """Make a cohort of a classroom in a session, with its first batch, whose id is the cohort's.

    A second cohort of both is a conflict. Raises Invalid for an unknown classroom or session.
    """
    room = get_referenced(Classroom, classroom, "classroom")
    cohort = add(Cohort(classroom_id=room.id, session_id=find_session(session_id, "session_id")))
    audit_change(ENTITY, cohort.id, new=_audited(cohort))
    _add_batch(cohort.id, FIRST_BATCH, batch_id=cohort.id)
    return cohort


def change_cohort(*, cohort_id: UUID, classroom: UUID, session_id: str) -> Cohort:
    """Give a cohort another classroom or session.

    One that has, or ever had, students, or that has assessments or metrics, keeps its session: they refer to
    cohort and session together, and the change is a conflict. Raises NotFound, and Invalid for an unknown
    classroom or session.
    """
    cohort = get(Cohort, cohort_id, for_update=True)
    old = _audited(cohort)
    cohort.classroom_id = get_referenced(Classroom, classroom, "classroom").id
    cohort.session_id = find_session(session_id, "session_id")
    db.session.flush()
    audit_member_changes(ENTITY, cohort.id, old, _audited(cohort))
    return cohort


def create_batch(*, cohort_id: UUID, name: str) -> Batch:
    """Add an arm to a cohort; a name that the cohort has already is a conflict. Raises NotFound."""
    return _add_batch(get(Cohort, cohort_id).id, name)


def check_cohort(*, id: UUID) -> None:
    """Tell whether there is such a cohort. Raises NotFound."""
    get(Cohort, id)


def find_session(text: str, field: str) -> UUID:
    """Find the session that a field of the input means, by id or name, and answer its id.

    Raises Invalid, naming the field.
    """
    found: UUID | None = db.session.scalar(session_by_id_or_name(text))
    if found is None:
        raise Invalid.field(field, "no such session")
    return found


def _add_batch(cohort_id: UUID, name: str, batch_id: UUID | None = None) -> Batch:
    (number,) = next_numbers(BATCHES)
    batch = add(Batch(id=batch_id or uuid4(), number=number, cohort_id=cohort_id, name=name))
    audit_change("batch", batch.id, new={"cohort": cohort_id, "name": name, "number": number})
    return batch


def _audited(cohort: Cohort) -> dict[str, Any]:
    """What the audit log says of a cohort."""
    return {"classroom": cohort.classroom_id, "session": cohort.session_id}
