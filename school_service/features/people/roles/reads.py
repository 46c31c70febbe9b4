"""Read models of roles and permissions."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from sqlalchemy import exists, func, literal_column, select

from school_service.core.read_models import Query, array_of, read_model
from school_service.core.records import lock_in_order
from school_service.features.audit.models import AuditEntry
from school_service.features.people.models import (
    ADMINISTRATOR,
    Role,
    RolePermission,
    StoredPermission,
    UserRole,
)

ENTITY = "role"
"""The audit log's name of a role."""


@read_model
def permissions() -> Query:
    """Read model of PermissionSchema, by section and access."""
    return select(StoredPermission.id, StoredPermission.section, StoredPermission.access).order_by(
        StoredPermission.section, StoredPermission.access, StoredPermission.id
    )


@read_model
def permission(permission_id: UUID) -> Query:
    """Read model of PermissionSchema, for one."""
    return permissions.query().where(StoredPermission.id == permission_id)


def permissions_as_json(query: Query) -> Any:
    """Write the permissions found by a query as a JSON array, in the order of the query."""
    table = query.subquery("permission")
    return (
        select(array_of(func.row_to_json(literal_column("permission")))).select_from(table).scalar_subquery()
    )


def names_of_permissions() -> Any:
    """A column of a query of Role: the names of its permissions, as `access:section`, in order."""
    name = StoredPermission.access + ":" + StoredPermission.section
    named = (
        select(name)
        .join(RolePermission, RolePermission.permission_id == StoredPermission.id)
        .where(RolePermission.role_id == Role.id)
        .order_by(name)
        .correlate(Role)
    )
    return func.array(named.scalar_subquery())


@read_model
def lock_administrator() -> Query:
    """Lock the role Administrator FOR NO KEY UPDATE, if there is one; answers its id."""
    return lock_in_order(Role, Role.name == ADMINISTRATOR)


@read_model
def role_for_user(role_id: UUID, user_id: UUID) -> Query:
    """Select the facts for giving a user a role: the names of its permissions, and whether they have it, `has_it`."""
    has_it = exists().where(UserRole.user_id == user_id, UserRole.role_id == Role.id).correlate(Role)
    return select(names_of_permissions().label("permissions"), has_it.label("has_it")).where(
        Role.id == role_id
    )


@read_model
def had_name(role_id: UUID, name: str) -> Query:
    """Select `had`: whether a role was once called so, by the audit log."""
    renamed = exists().where(
        AuditEntry.entity_id == role_id, AuditEntry.entity == ENTITY, AuditEntry.old["name"].astext == name
    )
    return select(renamed.label("had"))


@read_model
def roles() -> Query:
    """Read model of RoleSchema, by name."""
    granted = (
        permissions.query()
        .join(RolePermission, RolePermission.permission_id == StoredPermission.id)
        .where(RolePermission.role_id == Role.id)
        .correlate(Role)
    )
    return select(
        Role.id,
        Role.name,
        Role.avatar_number.label("avatarNumber"),
        Role.reach,
        Role.given_to,
        permissions_as_json(granted).label("permissions"),
    ).order_by(Role.name, Role.id)


@read_model
def role(role_id: UUID) -> Query:
    """Read model of RoleSchema, for one."""
    return roles.query().where(Role.id == role_id)
