"""Roles and permissions as the interface shows them."""

from __future__ import annotations

from marshmallow import fields, validate

from school_service.features.people.gains.schemas import PlantedSchema
from school_service.features.people.models import GIVEN_TO, REACHES, SCHOOL
from school_service.web.fields import Choice, ListOf, StrictInteger, Text
from school_service.web.schemas import NamedSchema, RecordSchema, Schema, list_of, text_of

PART = validate.Regexp(r"^[a-z][a-z0-9-]*$", error="Must be lower-case letters, digits and hyphens.")

_REACH = {
    "description": "SCHOOL: its permissions are for the whole school; OWN: for the records alone of people and "
    "classes to whom its bearer is related, as teacher, form teacher, student or guardian."
}


class PermissionSchema(RecordSchema):
    """An access to a section of the service."""

    id = fields.UUID()
    section = fields.String()
    access = fields.String()


class GrownPermissionSchema(PlantedSchema, PermissionSchema):
    """A permission added by the school, held by administrators at once."""


class NewPermissionSchema(Schema):
    """A permission to create."""

    section = Text(pattern=PART)
    access = Text(pattern=PART)


class RoleSchema(NamedSchema):
    """A role with its permissions."""

    avatar_number = fields.Integer(data_key="avatarNumber")
    reach = fields.String(
        validate=validate.OneOf(REACHES),
        metadata=_REACH,
    )
    given_to = text_of(
        [*GIVEN_TO, None],
        "Accounts of these people have it from their making; null: accounts that are given it.",
        allow_none=True,
    )
    permissions = list_of(PermissionSchema)


class GrownRoleSchema(PlantedSchema, RoleSchema):
    """A role with its permissions, perhaps more now."""


class NewRoleSchema(Schema):
    """A role to create, without permissions."""

    name = Text()
    avatar = StrictInteger()
    reach = Choice(REACHES, load_default=SCHOOL, metadata=_REACH)


class RoleChangesSchema(NewRoleSchema):
    """Changes of a role: any of these."""

    class Meta:
        """The reach of a role is not changed with its name."""

        exclude = ("reach",)


class RolePermissionsSchema(Schema):
    """The intended permissions of a role: these and no others."""

    permission_ids = ListOf(Text(), most=1000, data_key="permissionIds")
