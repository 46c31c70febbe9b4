"""Users as the interface shows them."""

from __future__ import annotations

from typing import Any

from marshmallow import fields, validate

from school_service.features.roles.schemas import PermissionSchema
from school_service.web.fields import Id, Schema, Text

LONGEST_PASSWORD = 1000


class UserRoleSchema(Schema):
    """That a user has a role."""

    roleId = fields.UUID(required=True)  # noqa: N815
    userId = fields.UUID(required=True)  # noqa: N815
    createdAt = fields.AwareDateTime(required=True)  # noqa: N815


class SchoolSchema(Schema):
    """The school of a user."""

    id = fields.UUID(required=True)
    name = fields.String(required=True)
    address = fields.String(required=True, allow_none=True)
    phone_number = fields.String(required=True, allow_none=True)
    email_address = fields.String(required=True, allow_none=True)
    motto = fields.String(required=True, allow_none=True)
    logo_url = fields.String(required=True, allow_none=True)


class UserStudentSchema(Schema):
    """The student that a user is."""

    id = fields.UUID(required=True)
    admission_number = fields.String(required=True)
    status = fields.String(required=True)


class UserSchema(Schema):
    """A user account."""

    id = fields.UUID(required=True)
    username = fields.String(required=True)
    first_name = fields.String(required=True)
    last_name = fields.String(required=True)
    gender = fields.String(required=True, metadata={"description": "Empty where not given."})
    photo = fields.Url(required=True, allow_none=True)
    roles = fields.List(fields.Nested(UserRoleSchema), required=True)
    school = fields.Nested(SchoolSchema, required=True)
    student = fields.Nested(UserStudentSchema, required=True, allow_none=True)


class AccessTokenSchema(Schema):
    """A bearer token."""

    access_token = fields.String(required=True)
    expires_in = fields.Integer(required=True, metadata={"description": "Seconds."})
    token_type = fields.String(required=True, validate=validate.OneOf(["Bearer"]))


class AuthUserSchema(Schema):
    """A user with a token of theirs and what they may do."""

    user = fields.Nested(UserSchema, required=True)
    access_token = fields.Nested(AccessTokenSchema, required=True)
    permissions = fields.List(fields.Nested(PermissionSchema), required=True)


def password_text(**options: Any) -> Text:
    """A password: taken as it is, neither trimmed nor cut."""
    return Text(LONGEST_PASSWORD, trim=False, **options)


class NewUserSchema(Schema):
    """A user to create."""

    username = Text(required=True)
    password = password_text(required=True)
    first_name = Text(required=True)
    last_name = Text(required=True)
    gender = Text(required=True)


class LoginSchema(Schema):
    """Who signs in."""

    username = Text(required=True)
    password = password_text(required=True)


class PasswordSchema(Schema):
    """A new password; whoever sets their own gives the current one too."""

    password = password_text(required=True)
    current_password = password_text()


class UserSearchSchema(Schema):
    """Which users to list."""

    search = Text(least=0, metadata={"description": "Part of a username or name, without regard to case."})


class RoleOfUserSchema(Schema):
    """A role to give to a user."""

    role = Id(required=True)
