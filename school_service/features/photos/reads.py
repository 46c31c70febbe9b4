"""Read model of photos."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from sqlalchemy import delete, select

from school_service.core.reach import Reach
from school_service.core.read_models import Query, read_model
from school_service.core.statements import statement
from school_service.features.people.models import User, UserPhoto
from school_service.features.reach import scopes


@read_model
def photo(user_id: UUID, reach: Reach | None = None) -> Query:
    """Select the photo of a user; no row without one, and none for a deleted user."""
    query = (
        select(UserPhoto.image.label("content"))
        .join(User, User.id == UserPhoto.user_id)
        .where(UserPhoto.user_id == user_id, User.deleted_at.is_(None))
    )
    return query if reach is None else query.where(scopes.photos_in_reach(reach, User.id))


@statement
def delete_photo(user_id: UUID) -> Any:
    """Delete the photo of a user, if there is one."""
    return delete(UserPhoto).where(UserPhoto.user_id == user_id)
