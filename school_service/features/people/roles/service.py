"""Roles and permissions: nobody gives away, or takes away, permissions they lack."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import Uuid, cast, delete, insert, select

from school_service.auth.principal import Principal
from school_service.core.database import db
from school_service.core.deletion import Deletion
from school_service.core.errors import SAID_BACK, Duplicate, Invalid, Locked, Unknown
from school_service.core.read_models import BoundQuery, fetch_row
from school_service.core.records import change, get, unnest_rows
from school_service.core.statements import (
    NewRow,
    answered_beside,
    execute,
    in_one_round_trip,
    insert_row,
    new_row,
    statement,
)
from school_service.core.texts import casefolded
from school_service.features.audit.service import audit_change
from school_service.features.people.gains.service import gain_of_bearers
from school_service.features.people.models import (
    ADMINISTRATOR,
    SCHOOL,
    Role,
    RolePermission,
    StoredPermission,
    UserRole,
)
from school_service.features.people.roles import reads
from school_service.features.people.roles.administrators import has_administrator, require_administrator
from school_service.features.people.roles.reads import ENTITY as ENTITY
from school_service.features.people.roles.seeded import ROLES_OF_NEW_SCHOOL

DELETION = Deletion(
    Role,
    {
        "name": Role.name,
        "avatar": Role.avatar_number,
        "reach": Role.reach,
        "permissions": reads.names_of_permissions(),
    },
)
_SEEDED = {casefolded(name): name for name in ROLES_OF_NEW_SCHOOL}
_TAKEN = {"name": ["already taken"]}


def create_permission(*, section: str, access: str) -> BoundQuery:
    """Add a permission of the school's own, held by the role Administrator at once.

    Returns its read model, with the credentials others made for administrators, as these gain. An existing one is a
    conflict.
    """
    permission = new_row(StoredPermission, section=section, access=access)
    audit_change("permission", permission.id, new={"section": section, "access": access})
    read = reads.permission(permission.id)
    # Locked, so that nobody becomes an administrator meanwhile.
    administrator = execute(reads.lock_administrator())
    if administrator is None:
        return in_one_round_trip(permission, read=read)
    role_id = UUID(str(administrator["id"]))
    given = new_row(RolePermission, role_id=role_id, permission_id=permission.id)
    told = gain_of_bearers(role_id, permission_ids=[permission.id]).write(permission, given)
    audit_change(ENTITY, role_id, old={}, new={"given": f"{access}:{section}"})
    return answered_beside(read, told)


def create_role(*, name: str, avatar: int, reach: str = SCHOOL) -> NewRow:
    """Add a role without permissions; a name already taken, and an Administrator with reach OWN, is a conflict.

    So is the name of a seeded role, without regard to case.
    """
    check_reach(name, reach)
    if seeded := _SEEDED.get(casefolded(name)):
        raise _name_of_seeded(seeded)
    role = insert_row(Role, name=name, avatar_number=avatar, reach=reach)
    limited = {} if reach == SCHOOL else {"reach": reach}
    audit_change(ENTITY, role.id, new={"name": name, "avatar": avatar, **limited})
    return role


def change_role(*, role_id: UUID, name: str | None = None, avatar: int | None = None) -> UUID:
    """Change name or avatar of a role; a name already taken is a conflict.

    So are another name of the role Administrator, given permissions by its name, and the name of a seeded role, without
    regard to case, for a role without this name in the past. Raises NotFound.
    """
    role = get(Role, role_id, for_update=True)
    if name is not None and name != role.name:
        _check_new_name(role, name)
    given = {"name": name, "avatar_number": avatar}
    old, new = change(role, {column: value for column, value in given.items() if value is not None})
    if new:
        audit_change(ENTITY, role_id, old=_by_member(old), new=_by_member(new))
    return role_id


def _check_new_name(role: Role, name: str) -> None:
    if role.name == ADMINISTRATOR:
        raise Locked(f"The role {ADMINISTRATOR} keeps its name.", {"name": ["stays"]})
    seeded = _SEEDED.get(casefolded(name))
    if seeded is None or role.name == seeded:
        return
    row = fetch_row(reads.had_name(role.id, name))
    if row is None or not row["had"]:
        raise _name_of_seeded(seeded)


def _name_of_seeded(name: str) -> Duplicate:
    return Duplicate(f"{name} is the name of a role that every school begins with.", _TAKEN)


def _by_member(columns: Mapping[str, Any]) -> dict[str, Any]:
    """Name columns of a role as its members."""
    return {"avatar" if name == "avatar_number" else name: value for name, value in columns.items()}


def delete_role(*, role_id: UUID, principal: Principal) -> UUID:
    """Delete a role; a role of a user, deleted or not, and Administrator are a conflict.

    Raises NotFound, and Forbidden if the principal lacks a permission of the role with its reach.
    """
    record = DELETION.lock(role_id)
    name, reach = record.values["name"], record.values["reach"]
    require_permissions(principal, record.values["permissions"], reach, f"Deleting the role {name}")
    if name == ADMINISTRATOR:
        raise Locked(f"The role {ADMINISTRATOR} can't be deleted.")
    audit_change(ENTITY, role_id, old=record.values)
    return record.delete()


def check_reach(name: str, reach: str) -> None:
    """Refuse the role Administrator any reach but the whole school. Raises Conflict."""
    if name == ADMINISTRATOR and reach != SCHOOL:
        raise Locked(f"The role {ADMINISTRATOR} reaches the whole school.")


def require_permissions(principal: Principal, names: Iterable[str], reach: str, purpose: str) -> None:
    """Require permissions of a principal with at least this reach. Raises Forbidden."""
    if reach == SCHOOL:
        principal.require(names, purpose)
    else:
        principal.require_own(names, purpose)


def set_permissions(*, role_id: UUID, permission_ids: Sequence[str], principal: Principal) -> BoundQuery:
    """Set a role's permissions to exactly these; returns its read model.

    Beside it are the credentials others made for gaining accounts. Additions to a role need every permission it has
    then; removals, every permission it had; with reach SCHOOL, if the role has it. Raises NotFound, Invalid for an
    unknown permission, Forbidden, and Conflict if nobody would be left with every permission.
    """
    role = get(Role, role_id, for_update=True)
    new = _find_permissions(permission_ids)
    old = _permissions_of(role.id)
    added, removed = new.keys() - old.keys(), old.keys() - new.keys()
    if removed:
        purpose = f"Taking permissions from the role {role.name}"
        require_permissions(principal, old.values(), role.reach, purpose)
    if added:
        purpose = f"Giving permissions to the role {role.name}"
        require_permissions(principal, new.values(), role.reach, purpose)
        execute(_fill(role.id, list(added)))
    if removed:
        had_administrator = has_administrator()
        db.session.execute(
            delete(RolePermission).where(
                RolePermission.role_id == role.id, RolePermission.permission_id.in_(removed)
            )
        )
        if had_administrator:
            require_administrator(f"Taking permissions from the role {role.name}")
    if old.keys() != new.keys():
        before, after = ({"permissions": sorted(names.values())} for names in (old, new))
        audit_change(ENTITY, role.id, old=before, new=after)
    # A role given to all students or guardians opens their own records alone: by it no account gains.
    gains = added and role.given_to is None
    told = gain_of_bearers(role.id, permission_ids=added).write() if gains else None
    return answered_beside(reads.role(role.id), told)


@statement
def _fill(role_id: UUID, permission_ids: list[UUID]) -> Any:
    """Give a role permissions."""
    permissions = unnest_rows(permission_id=(Uuid, permission_ids))
    giving = select(cast(role_id, Uuid), permissions.c.permission_id)
    return insert(RolePermission).from_select(["role_id", "permission_id"], giving)


@statement
def give_to_new(user_ids: list[UUID], given_to: str, moment: datetime) -> Any:
    """Give new accounts the role given to all of their kind, if there is one, for `execute`."""
    accounts = unnest_rows(user_id=(Uuid, user_ids))
    rows: Any = (accounts.c.user_id, Role.id, moment)
    giving = select(*rows).join(Role, Role.given_to == given_to)
    return insert(UserRole).from_select(["user_id", "role_id", "created_at"], giving)


def _permissions_of(role_id: UUID) -> dict[UUID, str]:
    permissions = db.session.scalars(
        select(StoredPermission)
        .join(RolePermission, RolePermission.permission_id == StoredPermission.id)
        .where(RolePermission.role_id == role_id)
    )
    return {permission.id: str(permission) for permission in permissions}


def _find_permissions(texts: Sequence[str]) -> dict[UUID, str]:
    ids = []
    for text in texts:
        try:
            ids.append(UUID(text))
        except ValueError:
            raise Invalid.field("permissionIds", Unknown(f"no such permission: {text[:SAID_BACK]}")) from None
    permissions = {
        row.id: str(row)
        for row in db.session.scalars(select(StoredPermission).where(StoredPermission.id.in_(ids)))
    }
    for permission_id in ids:
        if permission_id not in permissions:
            raise Invalid.field("permissionIds", Unknown(f"no such permission: {permission_id}"))
    return permissions
