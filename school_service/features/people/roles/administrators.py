"""The last full administrator of a school: somebody must always be able to give every permission again."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from sqlalchemy import Select, func, select

from school_service.core.database import db
from school_service.core.errors import Conflict
from school_service.core.statements import execute, statement
from school_service.features.people.models import (
    SCHOOL,
    Role,
    RolePermission,
    StoredPermission,
    User,
    UserRole,
)


def full_administrators() -> Select[UUID]:
    """Select the ids of the users, not deleted, whose roles of reach SCHOOL have every permission of the school."""
    missing = (
        select(StoredPermission.id)
        .where(
            ~select(RolePermission.permission_id)
            .join(UserRole, UserRole.role_id == RolePermission.role_id)
            .join(Role, (Role.id == UserRole.role_id) & (Role.reach == SCHOOL))
            .where(UserRole.user_id == User.id, RolePermission.permission_id == StoredPermission.id)
            .correlate(User, StoredPermission)
            .exists()
        )
        .correlate(User)
        .exists()
    )
    return select(User.id).where(User.deleted_at.is_(None), ~missing)


def has_administrator() -> bool:
    """Tell whether somebody has every permission for the whole school."""
    return db.session.scalars(full_administrators().limit(1)).first() is not None


@statement
def lock_administrators() -> Any:
    """Wait for others about to take permissions from administrators, until the transaction ends."""
    lock = func.hashtextextended(func.concat("administrators of ", func.current_schema()), 0)
    return select(func.pg_advisory_xact_lock(lock))


def require_administrator(what: str) -> None:
    """Check for a user with every permission, after a change taking some from a user with all of them.

    `what` names the change for the message. Raises Conflict if nobody has them.
    """
    db.session.flush()
    # Two requests may take permissions from the last two administrators at once: the second waits for the first.
    execute(lock_administrators())
    if not has_administrator():
        raise Conflict(f"{what} would leave nobody who has every permission.")
