"""Records of the caller's own account or child, read as families read them."""

from __future__ import annotations

from typing import Any

from sqlalchemy import ColumnElement, and_, or_, select

from school_service.core.reach import Reach
from school_service.features.people.models import (
    SCHOOL,
    Guardian,
    Role,
    RolePermission,
    StoredPermission,
    Student,
    StudentGuardian,
    UserRole,
)
from school_service.features.reach import scopes


def is_own(student_id: Any, user_id: Any, section: str, reach: Reach | None = None) -> ColumnElement[bool]:
    """Tell whether a user is this student, or a guardian of theirs without permission to read a section as staff.

    A guardian with a stop for the student is none of theirs. With a `reach`, the user's own, a teacher of the student,
    or a form teacher of their batch, reads as staff.
    """
    if reach is not None:
        return and_(scopes.is_kin(reach, student_id), ~scopes.is_reached_as_staff(reach, student_id))
    account = select(Student.id).where(Student.id == student_id, Student.user_id == user_id).exists()
    child = (
        select(StudentGuardian.student_id)
        .join(Guardian, Guardian.id == StudentGuardian.guardian_id)
        .where(
            StudentGuardian.student_id == student_id,
            StudentGuardian.stopped_at.is_(None),
            Guardian.user_id == user_id,
        )
        .exists()
    )
    reads_all = (
        select(UserRole.user_id)
        .join(Role, (Role.id == UserRole.role_id) & (Role.reach == SCHOOL))
        .join(RolePermission, RolePermission.role_id == Role.id)
        .join(StoredPermission, StoredPermission.id == RolePermission.permission_id)
        .where(
            UserRole.user_id == user_id,
            StoredPermission.access == "read",
            StoredPermission.section == section,
        )
        .exists()
    )
    return or_(account, and_(child, ~reads_all))
