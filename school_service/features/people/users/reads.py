"""Read models of users."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import orjson
from sqlalchemy import JSON, case, func, literal_column, select
from sqlalchemy.sql import cast

from school_service.core.reach import Reach
from school_service.core.read_models import (
    Query,
    array_of,
    json_object,
    read_model,
    school_value,
    service_address,
)
from school_service.core.search import matches, may_match
from school_service.features.people.models import (
    PHOTO_DIGITS,
    SEARCHED_OF_USER,
    RolePermission,
    StoredPermission,
    Student,
    User,
    UserRole,
    must_change_password,
)
from school_service.features.people.roles.reads import permissions, permissions_as_json
from school_service.features.reach import scopes

# Part of the statement batch that begins each request of a user: it reads account and present permissions by a function
#  of the school's schema (migration t0022). Its parameters: the user, twice, the moment, whether relations are
# read of a user whose permissions reach the whole school, too, and the token's session, issuer and subject, which must
# still stand.
USER_STATE = """
SELECT %s::uuid AS account, state.* FROM caller_state(%s, %s, %s, %s, %s, %s) AS state
WHERE session_number IS NOT NULL
"""

_SHOWN_OF_SCHOOL = ("id", "name", "address", "phone_number", "email_address", "motto", "logo_url")


def _school_as_json(school: Any) -> str:
    return orjson.dumps({name: getattr(school, name) for name in _SHOWN_OF_SCHOOL}).decode()


SCHOOL = cast(school_value("school", _school_as_json), JSON).label("school")
"""The details of the school shown to its users."""


def photo_address() -> Any:
    """The address of the photo of a user; the user's column has the first digits of the picture's hash.

    An address written into the column by somebody is answered as it is.
    """
    is_kept = User.photo.regexp_match(PHOTO_DIGITS)
    kept = func.concat(service_address(), "/users/", User.id, "/photo?v=", User.photo)
    return case((is_kept, kept), else_=User.photo)


@read_model
def users(search: str | None = None, reach: Reach | None = None) -> Query:
    """Read model of UserSchema, by username, without the deleted.

    All, or those with each word of `search` as a part of the username or a name.
    """
    roles = (
        select(
            array_of(
                json_object(roleId=UserRole.role_id, userId=UserRole.user_id, createdAt=UserRole.created_at),
                UserRole.created_at,
                UserRole.role_id,
            )
        )
        .where(UserRole.user_id == User.id)
        .correlate(User)
        .scalar_subquery()
    )
    student = (
        select(json_object(id=Student.id, admission_number=Student.admission_number, status=Student.status))
        .where(Student.user_id == User.id)
        .correlate(User)
        .scalar_subquery()
    )
    query = (
        select(
            User.id,
            User.username,
            User.first_name,
            User.last_name,
            User.gender,
            photo_address().label("photo"),
            roles.label("roles"),
            SCHOOL,
            student.label("student"),
        )
        .where(User.deleted_at.is_(None))
        .order_by(User.username_sort_key, User.id)
    )
    if search is not None:
        query = query.where(may_match(search, SEARCHED_OF_USER), matches(search, SEARCHED_OF_USER))
    return query if reach is None else query.where(scopes.accounts_in_reach(reach, User.id))


@read_model
def user(user_id: UUID, reach: Reach | None = None) -> Query:
    """Read model of UserSchema, for one."""
    return users.query(reach=reach).where(User.id == user_id)


@read_model
def auth_user(user_id: UUID, access_token: str) -> Query:
    """Read model of AuthUserSchema: a user, a token of theirs, their permissions, whether the password must change.

    The token is the answered object, as JSON.
    """
    shown = user.query(user_id).subquery("shown")
    granted = permissions.query().where(
        StoredPermission.id.in_(
            select(RolePermission.permission_id)
            .join(UserRole, UserRole.role_id == RolePermission.role_id)
            .where(UserRole.user_id == user_id)
        )
    )
    to_change = select(must_change_password()).where(User.id == user_id).scalar_subquery()
    return select(
        func.row_to_json(literal_column("shown")).label("user"),
        cast(access_token, JSON).label("access_token"),
        permissions_as_json(granted).label("permissions"),
        to_change.label("must_change_password"),
    ).select_from(shown)
