"""The last full administrator of a school: somebody must always be able to give every permission again."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy import Select, select

from school_service.core.database import db
from school_service.core.errors import Conflict
from school_service.features.roles.models import RolePermission, StoredPermission
from school_service.features.users.models import User, UserRole


def full_administrators() -> Select[tuple[User]]:
    """Select the users, not deleted, whose roles have every permission of the school."""
    missing = (
        select(StoredPermission.id)
        .where(
            ~select(RolePermission.permission_id)
            .join(UserRole, UserRole.role_id == RolePermission.role_id)
            .where(UserRole.user_id == User.id, RolePermission.permission_id == StoredPermission.id)
            .correlate(User, StoredPermission)
            .exists()
        )
        .correlate(User)
        .exists()
    )
    return select(User).where(User.deleted_at.is_(None), ~missing)


@contextmanager
def keeping_an_administrator(what: str) -> Iterator[None]:
    """Do something that takes permissions away; raises Conflict where nobody would be left who has them all.

    `what` names it for the message. The administrators are locked FOR NO KEY UPDATE from before to after, so that two
    requests can't each take away what the other relies on.
    """
    before = db.session.scalars(
        full_administrators().order_by(User.id).with_for_update(key_share=True, of=User)
    ).all()
    yield
    if not before:
        # The school has none, by its own choice or an operator's: nothing is lost.
        return
    db.session.flush()
    if db.session.scalars(full_administrators().limit(1)).first() is None:
        raise Conflict(f"{what} would leave nobody who has every permission.")
