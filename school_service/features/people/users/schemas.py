"""Users as the interface shows them."""

from __future__ import annotations

from typing import Any

from marshmallow import fields, validate

from school_service.core.columns import NAME_LENGTH
from school_service.features.people.gains.schemas import PlantedSchema
from school_service.features.people.roles.schemas import PermissionSchema
from school_service.web.fields import Id, Text, sought_text
from school_service.web.schemas import (
    TOKEN_TYPES,
    NamedSchema,
    RecordSchema,
    Schema,
    described,
    list_of,
    text_of,
)
from tenants.names import composed
from tenants.tenancy import MAX_PASSWORD_LENGTH


class UserRoleSchema(RecordSchema):
    """A role of a user."""

    role_id = fields.UUID(data_key="roleId")
    user_id = fields.UUID(data_key="userId")
    created_at = fields.AwareDateTime(data_key="createdAt")


class SchoolSchema(NamedSchema):
    """The school of a user."""

    address = fields.String(allow_none=True)
    phone_number = fields.String(allow_none=True)
    email_address = fields.String(allow_none=True)
    motto = fields.String(allow_none=True)
    logo_url = fields.String(allow_none=True)


class UserStudentSchema(RecordSchema):
    """The student record of a user."""

    id = fields.UUID()
    admission_number = fields.String()
    status = fields.String()


class UserSchema(RecordSchema):
    """A user account."""

    id = fields.UUID()
    username = fields.String()
    first_name = fields.String()
    last_name = fields.String()
    gender = described(fields.String, "Empty where not given.")
    photo = fields.Url(allow_none=True)
    roles = list_of(UserRoleSchema)
    school = fields.Nested(SchoolSchema)
    student = fields.Nested(UserStudentSchema, allow_none=True)


class GainingUserSchema(PlantedSchema, UserSchema):
    """A user account, with more permissions now."""


class AccessTokenSchema(RecordSchema):
    """A bearer token."""

    access_token = fields.String()
    expires_in = described(fields.Integer, "Seconds.")
    token_type = text_of(TOKEN_TYPES)


class AuthUserSchema(RecordSchema):
    """A user with a token of theirs and their permissions."""

    user = fields.Nested(UserSchema)
    access_token = fields.Nested(AccessTokenSchema)
    permissions = list_of(PermissionSchema)
    must_change_password = described(
        fields.Boolean, "Whether everything else is refused until the user has set another password."
    )


def password_text(**options: Any) -> Text:
    """A password: taken as it is, neither trimmed nor cut."""
    return Text(MAX_PASSWORD_LENGTH, trim=False, any_characters=True, **options)


class PersonalDetailsSchema(Schema):
    """The details of a user."""

    username = Text()
    first_name = Text()
    last_name = Text()
    gender = Text()


class NewUserSchema(PersonalDetailsSchema):
    """A user to create."""

    password = password_text()


class UserChangesSchema(PersonalDetailsSchema):
    """Changes of a user: any of these. A password is set with PUT /users/{id}/password."""


class _LengthOfName(validate.Length):
    """The length of a name handed on as typed: the length of the name as stored."""

    def __call__(self, value: Any) -> Any:
        """Measure the name with its letters composed."""
        super().__call__(composed(value))
        return value


class TypedUsername(Text):
    """A username as typed: of two accounts older than the rule of usernames, each has its own."""

    def __init__(self) -> None:
        super().__init__(any_characters=True, composed=False)
        self.validators = [_LengthOfName(min=1, max=NAME_LENGTH)]


class LoginSchema(Schema):
    """A sign-in by username and password."""

    username = TypedUsername()
    password = password_text()


class PasswordSchema(Schema):
    """A new password; with one's own, the current one too."""

    password = password_text()
    current_password = password_text(required=False)


class UserSearchSchema(Schema):
    """The users to list."""

    search = described(
        sought_text,
        "Words, in any order: parts of the username or names, without regard to case and accents.",
        least=0,
        required=False,
    )


class RoleOfUserSchema(Schema):
    """A role to give to a user."""

    role = Id()
