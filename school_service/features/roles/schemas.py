"""Roles and permissions as the interface shows them."""

from __future__ import annotations

from marshmallow import fields, validate

from school_service.web.fields import Schema, Text, Whole

PART = validate.Regexp(r"^[a-z][a-z0-9-]*$", error="Must be lower-case letters, digits and hyphens.")


class PermissionSchema(Schema):
    """An access to a section of the service."""

    id = fields.UUID(required=True)
    section = fields.String(required=True)
    access = fields.String(required=True)


class NewPermissionSchema(Schema):
    """A permission to create."""

    section = Text(required=True, pattern=PART)
    access = Text(required=True, pattern=PART)


class RoleSchema(Schema):
    """A role with its permissions."""

    id = fields.UUID(required=True)
    name = fields.String(required=True)
    avatarNumber = fields.Integer(required=True)  # noqa: N815
    permissions = fields.List(fields.Nested(PermissionSchema), required=True)


class NewRoleSchema(Schema):
    """A role to create, without permissions."""

    name = Text(required=True)
    avatar = Whole(required=True)


class RolePermissionsSchema(Schema):
    """The permissions that a role shall have: these and no others."""

    permissionIds = fields.List(Text(), required=True, validate=validate.Length(max=1000))  # noqa: N815
