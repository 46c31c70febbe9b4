"""Form teachers: a batch can have several."""

from __future__ import annotations

from uuid import UUID

from sqlalchemy import delete
from sqlalchemy.dialects.postgresql import insert

from school_service.core.database import db
from school_service.core.errors import Invalid, NotFound
from school_service.core.records import get
from school_service.features.cohorts.models import Batch
from school_service.features.employees.service import find_employee
from school_service.features.teachers.models import FormTeacher
from school_service.features.users.models import User
from tenants.clock import now


def add_to_batch(*, batch_id: UUID, teacher_id: UUID) -> None:
    """Make an employee a form teacher of a batch; again changes nothing, and they don't become the latest.

    Raises NotFound for an unknown batch, Invalid for an unknown employee and one whose account is deleted.
    """
    batch = get(Batch, batch_id)
    # Shared, so that neither is deleted before this is done: who is deleted teaches nobody.
    teacher = find_employee(teacher_id, for_share=True)
    if teacher is None:
        raise Invalid.field("teacher_id", "no such employee")
    if get(User, teacher.user_id, for_share=True).deleted_at is not None:
        raise Invalid.field("teacher_id", "the employee's user account is deleted")
    db.session.execute(
        insert(FormTeacher)
        .values(batch_id=batch.id, employee_id=teacher.id, created_at=now())
        .on_conflict_do_nothing()
    )


def remove_from_batch(*, batch_id: UUID, teacher_id: UUID) -> UUID:
    """Let an employee be a form teacher of a batch no more; raises NotFound where they are none."""
    removed = db.session.execute(
        delete(FormTeacher)
        .where(FormTeacher.batch_id == batch_id, FormTeacher.employee_id == teacher_id)
        .returning(FormTeacher.employee_id)
    )
    if removed.one_or_none() is None:
        raise NotFound("The employee is no form teacher of this batch.")
    return teacher_id
