"""Roles and permissions over HTTP."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from flask.views import MethodView

from school_service.core.permissions import Permission
from school_service.core.statements import row_lock
from school_service.features.people.models import Role
from school_service.features.people.roles import reads, service
from school_service.features.people.roles.schemas import (
    GrownPermissionSchema,
    GrownRoleSchema,
    NewPermissionSchema,
    NewRoleSchema,
    PermissionSchema,
    RoleChangesSchema,
    RolePermissionsSchema,
    RoleSchema,
)
from school_service.web.app_state import current_principal
from school_service.web.blueprint import Blueprint

blp = Blueprint(
    "roles", __name__, school_required=False, description="Roles and the permissions they bundle."
)


@blp.route("/permissions")
class Permissions(MethodView):
    """The permissions there are."""

    @blp.requires(Permission.ROLES_READ)
    @blp.returns_list(PermissionSchema)
    def get(self) -> Any:
        """List the permissions."""
        return reads.permissions()

    @blp.requires(Permission.ROLES_WRITE)
    @blp.arguments(NewPermissionSchema)
    @blp.returns(GrownPermissionSchema)
    def post(self, permission: dict[str, Any]) -> Any:
        """Create a permission of the school's own; administrators have it at once."""
        return service.create_permission(**permission)


@blp.route("/roles")
class Roles(MethodView):
    """The school's roles."""

    @blp.requires(Permission.ROLES_READ)
    @blp.returns_list(RoleSchema)
    def get(self) -> Any:
        """List the roles, each with its permissions."""
        return reads.roles()

    @blp.requires(Permission.ROLES_WRITE)
    @blp.arguments(NewRoleSchema)
    @blp.returns(RoleSchema)
    def post(self, role: dict[str, Any]) -> Any:
        """Create a role, without permissions."""
        return reads.role(service.create_role(**role).id)


@blp.route("/roles/<uuid:id>")
class OneRole(MethodView):
    """A role."""

    @blp.requires(Permission.ROLES_READ)
    @blp.returns(RoleSchema)
    def get(self, id: UUID) -> Any:
        """Show a role with its permissions."""
        return reads.role(id)

    @blp.requires(Permission.ROLES_WRITE, school_required=True)
    @blp.arguments(RoleChangesSchema(partial=True))
    @blp.returns(RoleSchema)
    @blp.if_match(reads.role, row_lock(Role))
    def patch(self, changes: dict[str, Any], id: UUID) -> Any:
        """Change name or avatar of a role; Administrator keeps its name, and no role takes a seeded role's."""
        return reads.role(service.change_role(role_id=id, **changes))

    @blp.requires(Permission.ROLES_DELETE, school_required=True)
    @blp.returns_deleted()
    @blp.if_match(reads.role, service.DELETION.row_lock)
    def delete(self, id: UUID) -> Any:
        """Delete a role that no user has. It needs every permission of the role; Administrator stays."""
        return service.delete_role(role_id=id, principal=current_principal())


@blp.route("/roles/<uuid:id>/permissions")
class RolePermissions(MethodView):
    """The permissions of a role."""

    @blp.requires(Permission.ROLES_WRITE)
    @blp.arguments(RolePermissionsSchema)
    @blp.returns(GrownRoleSchema)
    @blp.if_match(reads.role, row_lock(Role))
    def patch(self, body: dict[str, Any], id: UUID) -> Any:
        """Set the role's permissions to exactly those named.

        Adding to a role needs every permission that the role then holds. Where a user gains by it, credentials that
        others had made for the account end, unless their makers may do as much; the answer names them.
        """
        return service.set_permissions(role_id=id, **body, principal=current_principal())
