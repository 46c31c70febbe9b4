"""The operator's changes of accounts of a school: end their sessions, make sure of an administrator.

And the roles and clients unable to give pupils and parents their passwords, for lack of read:results.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from typing import Any
from uuid import UUID

from sqlalchemy import delete, func, literal, null, select, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.orm import Session

from school_service.auth.passwords import hash_password
from school_service.core.permissions import Permission
from school_service.features.audit.service import Change, record_changes
from school_service.features.people.models import (
    ADMINISTRATOR,
    CREATED,
    SCHOOL,
    Invitation,
    Role,
    RolePermission,
    StoredPermission,
    User,
    UserIdentity,
    UserRole,
)
from school_service.features.people.users.service import user_named
from tenants.clock import now
from tenants.connections.engines import execute_script
from tenants.exceptions import UnknownAccount
from tenants.operator_connection import connected_to_school
from tenants.operator_log import operator_name
from tenants.registry.clients import list_clients
from tenants.registry.schools import list_schools
from tenants.tenancy import Administrator, Tenancy


def end_sessions(tenancy: Tenancy, school_id: UUID, username: str | None = None) -> int:
    """End the sessions of every user of a school, or of one: each of their tokens is refused from now on.

    Returns the number of accounts. Raises UnknownSchool, UnknownAccount, SchoolDeleting, SchoolUpgrading.
    """
    with _session(tenancy, school_id) as session:
        chosen = select(User) if username is None else user_named(username)
        locked = chosen.order_by(User.id).with_for_update(key_share=True)
        accounts = [user.id for user in session.scalars(locked)]
        if not accounts and username is not None:
            raise UnknownAccount(f"The school {school_id} has no account {username}.")
        session.execute(
            update(User).where(User.id.in_(accounts)).values(session_number=User.session_number + 1)
        )
        ended = [Change(account, {}, {"sessions": "ended"}) for account in accounts]
        record_changes(session.connection(), "user", ended)
        return len(accounts)


def reset_administrator(tenancy: Tenancy, school_id: UUID, administrator: Administrator) -> None:
    """Make sure of a school's administrator of this name and password, with every permission.

    The account is made if there is none, and brought back if it is deleted; its sessions end, and so do its links to
    outside identities and its invitation. The role Administrator is made, or completed. Raises UnknownSchool,
    SchoolDeleting, SchoolUpgrading.
    """
    with _session(tenancy, school_id) as session:
        role, completed = _complete_role(session)
        user = session.scalars(
            user_named(administrator.username).with_for_update(key_share=True)
        ).one_or_none()
        before: dict[str, Any] | None = {"deleted": True} if user and user.deleted_at else {}
        if user is None:
            before = None
            user = User(
                username=administrator.username,
                first_name="School",
                last_name="Administrator",
                gender="",
                session_number=CREATED,
            )
            session.add(user)
        user.password_hash = hash_password(administrator.password)
        user.password_given_at = now()
        # For a plain None of a new row the column's default would be asked who acts in a request.
        user.password_given_by, user.password_given_by_name = null(), operator_name()
        user.deleted_at = None
        user.session_number += 1
        session.flush()
        given = insert(UserRole).values(user_id=user.id, role_id=role.id, created_at=now())
        session.execute(given.on_conflict_do_nothing())
        for model in (UserIdentity, Invitation):
            session.execute(delete(model).where(model.user_id == user.id))
        became = {"username": user.username, "password": "set", "role": role.name, "deleted": False}
        record_changes(session.connection(), "role", completed)
        record_changes(session.connection(), "user", [Change(user.id, before, became)])


def givers_without_results(tenancy: Tenancy) -> list[dict[str, Any]]:
    """List the roles and clients with the right to write users or students for whole schools, but not to read results.

    By them alone nobody gives a student or guardian a password, slip or invitation. Each is a record with the school
    (None of a client), `role` or `client`, and a `text`. A school with roles still without a reach is named in one,
    too.
    """
    givers: list[dict[str, Any]] = []
    with tenancy.admin.connect() as connection:
        schools = [school for school in list_schools(connection) if school.deletion != "begun"]
        for client in list_clients(connection):
            if not (client.revoked or client.all_permissions) and _gives(client.permissions):
                about = f"the client {client.id} {_LACKS}"
                givers.append({"school": None, "client": client.id, "text": about})
    for school in schools:
        about = f"{school.name} ({school.id})"
        if school.revision < _ROLES_HAVE_REACH:
            text = f"{about}: is at revision {school.revision}; look again once it is migrated"
            givers.append({"school": str(school.id), "role": None, "text": text})
            continue
        with tenancy.admin.begin() as connection:
            execute_script(connection, f'SET LOCAL search_path TO "{school.schema}", pg_temp')
            if tenancy.becomes_roles:
                execute_script(connection, f'SET LOCAL ROLE "{school.schema}"')
            for name, permissions in connection.execute(_PERMISSIONS_OF_ROLES):
                if _gives(permissions):
                    text = f"{about}: the role {name} {_LACKS}"
                    givers.append({"school": str(school.id), "role": name, "text": text})
    return givers


_ROLES_HAVE_REACH = "t0015"
_LACKS = "writes users or students and lacks read:results: it gives no student or guardian a password"
_PERMISSIONS_OF_ROLES = (
    select(Role.name, func.array_agg(StoredPermission.access + ":" + StoredPermission.section))
    .join(RolePermission, RolePermission.role_id == Role.id)
    .join(StoredPermission, StoredPermission.id == RolePermission.permission_id)
    .where(Role.reach == SCHOOL)
    .group_by(Role.id, Role.name)
    .order_by(Role.name)
)


def _gives(permissions: Collection[str]) -> bool:
    """Tell whether somebody with these permissions would give passwords, and reads no results."""
    giving = {Permission.USERS_WRITE, Permission.STUDENTS_WRITE}
    return not giving.isdisjoint(permissions) and Permission.RESULTS_READ not in permissions


def _complete_role(session: Session) -> tuple[Role, list[Change]]:
    """Find or make the role Administrator, with every permission of the school; answers the change, if there is one."""
    role = session.scalars(
        select(Role).where(Role.name == ADMINISTRATOR).with_for_update(key_share=True)
    ).one_or_none()
    old: dict[str, Any] | None = {}
    if role is None:
        old = None
        role = Role(name=ADMINISTRATOR, avatar_number=1)
        session.add(role)
        session.flush()
    having = select(literal(role.id), StoredPermission.id)
    filling = (
        insert(RolePermission).from_select(["role_id", "permission_id"], having).on_conflict_do_nothing()
    )
    given = session.scalars(filling.returning(RolePermission.permission_id)).all()
    return role, [
        Change(role.id, old, {"name": role.name, "permissions": "all"})
    ] if given or old is None else []


@contextmanager
def _session(tenancy: Tenancy, school_id: UUID) -> Iterator[Session]:
    """Yield a session within a school, in a transaction; it commits when the block has ended well."""
    with connected_to_school(tenancy, school_id) as (connection, _), Session(connection) as session:
        yield session
        session.flush()
