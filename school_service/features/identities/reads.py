"""Read models of links to outside identities."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from sqlalchemy import delete, func, select

from school_service.core.narrowing import judged_before
from school_service.core.reach import Reach
from school_service.core.read_models import Query, read_model
from school_service.core.statements import statement
from school_service.features.people.models import User, UserIdentity
from school_service.features.reach import scopes


def _identities() -> Query:
    return select(
        UserIdentity.id,
        UserIdentity.issuer,
        UserIdentity.subject,
        UserIdentity.way,
        UserIdentity.created_at,
        UserIdentity.created_by_name.label("linked_by_name"),
    ).order_by(UserIdentity.created_at, UserIdentity.id)


@read_model
def identities(user_id: UUID, reach: Reach | None = None) -> Query:
    """Read model of IdentitySchema for a user, unless deleted, the oldest first."""
    query = (
        _identities()
        .join(User, User.id == UserIdentity.user_id)
        .where(UserIdentity.user_id == user_id, User.deleted_at.is_(None))
    )
    return query if reach is None else query.where(scopes.accounts_in_reach(reach, User.id))


@judged_before
def identity(identity_id: UUID) -> Query:
    """Read model of IdentitySchema, for a link made just now."""
    return _identities().where(UserIdentity.id == identity_id)


@judged_before
def ways_in(user_id: UUID, identity_id: UUID) -> Query:
    """Select the number of an account's links, whether it has a password, and its link with an id, if it has one."""
    links = select(func.count()).where(UserIdentity.user_id == user_id).scalar_subquery()
    return (
        select(
            links.label("links"),
            User.password_hash.is_not(None).label("has_password"),
            UserIdentity.id,
            UserIdentity.issuer,
            UserIdentity.way,
        )
        .select_from(User)
        .outerjoin(UserIdentity, (UserIdentity.user_id == User.id) & (UserIdentity.id == identity_id))
        .where(User.id == user_id)
    )


@judged_before
def count(user_id: UUID) -> Query:
    """Count the links of an account."""
    return select(func.count().label("links")).where(UserIdentity.user_id == user_id)


@statement
def delete_identity(identity_id: UUID) -> Any:
    """Delete a link."""
    return delete(UserIdentity).where(UserIdentity.id == identity_id)
