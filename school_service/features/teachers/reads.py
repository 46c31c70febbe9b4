"""Read models of form teachers."""

from __future__ import annotations

from uuid import UUID

from sqlalchemy import select

from school_service.core.read_models import Query, read_model
from school_service.features.employees.models import NOT_DELETED, Employee
from school_service.features.teachers.models import FormTeacher
from school_service.features.users.models import User


@read_model
def form_teacher(batch_id: UUID, employee_id: UUID | None = None) -> Query:
    """Read model of FormTeacherSchema, for the latest of a batch, or for one employee.

    Without those whose user account is deleted: they are shown again when it is restored.
    """
    found = (
        select(
            FormTeacher.batch_id,
            User.first_name,
            User.last_name,
            User.photo.label("image_url"),
        )
        .join(Employee, Employee.id == FormTeacher.employee_id)
        .join(User, User.id == Employee.user_id)
        .where(FormTeacher.batch_id == batch_id, NOT_DELETED, User.deleted_at.is_(None))
        .order_by(FormTeacher.created_at.desc(), FormTeacher.employee_id.desc())
        .limit(1)
    )
    return found if employee_id is None else found.where(FormTeacher.employee_id == employee_id)
