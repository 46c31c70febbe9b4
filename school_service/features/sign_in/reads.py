"""Read models of people signed in."""

from __future__ import annotations

from uuid import UUID

from sqlalchemy import select

from school_service.core.read_models import Query, read_model, school_id
from school_service.features.people.models import User


@read_model
def user_info(user_id: UUID) -> Query:
    """Select the claims for a token without the scope `profile`."""
    return select(User.id.label("sub"), school_id().label("school_id")).where(User.id == user_id)


@read_model
def user_info_with_profile(user_id: UUID) -> Query:
    """Read model of UserInfoSchema, for a token with the scope `profile`."""
    return user_info.query(user_id).add_columns(
        (User.first_name + " " + User.last_name).label("name"),
        User.first_name.label("given_name"),
        User.last_name.label("family_name"),
        User.username.label("preferred_username"),
    )
