"""Switching roles between the whole school's records and their bearers' own, with a look at what that changes."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID, uuid4

import orjson
from sqlalchemy import ARRAY, String, Text, any_, cast, exists, insert, select, update
from sqlalchemy.dialects.postgresql import insert as insert_or_leave

from school_service.auth.principal import Principal
from school_service.core.errors import Conflict, Invalid
from school_service.core.permissions import Permission
from school_service.core.records import unnest_rows
from school_service.core.statements import Executable, execute, new_row, statement
from school_service.features.audit.service import Change, audit_changes
from school_service.features.people.models import (
    ADMINISTRATOR,
    CREATED,
    OWN,
    SCHOOL,
    Role,
    RolePermission,
    StoredPermission,
    User,
    UserRole,
)
from school_service.features.people.roles.administrators import lock_administrators
from school_service.features.people.roles.seeded import SEEDED_ROLES, SeededRole
from school_service.features.people.roles.service import ENTITY
from school_service.features.role_reaches import reads
from tenants.clock import now

Send = Callable[..., dict[str, Any] | None]


def switch(
    *,
    roles: Sequence[Mapping[str, Any]],
    add_seeded: bool = False,
    fingerprint: str | None = None,
    dry_run: bool = False,
    served: Collection[str],
    principal: Principal | None,
    send: Send = execute,
    audit: Callable[[str, Iterable[Change]], None] = audit_changes,
) -> dict[str, Any]:
    """Give roles another reach, each `{role, reach}`, and tell what that changes, or would with `dry_run`.

    `add_seeded` makes the seeded roles that the school has none of the name of, and gives those that are given to
    students and to guardians to their accounts. `served` are the permissions that serve OWN at all. A commit needs the
    fingerprint of the dry run that was seen, unless all is so already. `principal` None is the operator; who may not
    read subjects of cohorts, or cohorts, is told how many nobody looks after, and not which. `send` sends statements.

    Raises Invalid for an unknown role, one that is named twice and a missing fingerprint, Forbidden where the principal
    lacks a permission of the roles for the whole school, and Conflict for a role that can not have the reach, where
    nobody would be left with every permission for the whole school, and where something has changed since the dry run.
    """
    ids = [each["role"] for each in roles]
    # The roles first, as whoever changes the permissions of one does.
    found = send(reads.locked(ids), _lock_created(ids), lock_administrators(), reads.roles())
    known = {each["id"]: each for each in orjson.loads((found or {})["roles"])}
    targets = _targets(roles, known)
    names = {each["name"] for each in known.values()}
    added = [role for role in SEEDED_ROLES if add_seeded and role.name not in names]
    added = [
        role for role in added if role.given_to not in {each["given_to"] for each in known.values()} - {None}
    ]
    given = _given(known, added) if add_seeded else []
    if principal is not None:
        needed = {each for role in ids for each in known[str(role)]["permissions"]}
        needed.update(str(permission) for role in added for permission in role.permissions)
        needed.update(permission for _, permission in given)
        principal.require(needed, "Switching these roles")
    seen = (
        send(
            reads.preview(
                ids,
                [each["reach"] for each in roles],
                [kind for kind, _ in given],
                [permission for _, permission in given],
                reads.DAYS_OF_ENDED_SESSIONS,
            )
        )
        or {}
    )
    asked = orjson.dumps([sorted((str(each["role"]), each["reach"]) for each in roles), add_seeded])
    judged = hashlib.sha256(seen["fingerprint"].encode() + asked).hexdigest()[:32]
    if seen["administrated_before"] and not seen["administrated_after"]:
        raise Conflict(
            "Switching these roles would leave nobody who has every permission for the whole school."
        )

    def may_read(permission: Permission) -> bool:
        return principal is None or principal.has(permission)

    changing = {role: reach for role, reach in targets.items() if known[role]["reach"] != reach}
    users = orjson.loads(seen["users"])
    is_so = not (changing or added or (given and _gives(users)))
    if not (dry_run or is_so):
        if fingerprint is None:
            raise Invalid.field("fingerprint", "is needed: it is that of the dry run that was seen")
        if fingerprint != judged:
            raise Conflict("Something has changed since that dry run: look at a new one, and commit that.")
        _commit(changing, known, added, given, send, audit)
    return {
        "fingerprint": judged,
        "roles": [
            {"id": role, "name": known[role]["name"], "before": known[role]["reach"], "reach": reach}
            for role, reach in targets.items()
        ],
        "added": [role.name for role in added],
        "users": [_shown(each, served) for each in users],
        "users_total": seen["users_total"],
        "uncovered": {
            "subjects": orjson.loads(seen["subjects"]) if may_read(Permission.COHORT_SUBJECTS_READ) else [],
            "subjects_total": seen["subjects_total"],
            "batches": orjson.loads(seen["batches"]) if may_read(Permission.COHORTS_READ) else [],
            "batches_total": seen["batches_total"],
        },
    }


def _targets(roles: Sequence[Mapping[str, Any]], known: Mapping[str, Any]) -> dict[str, str]:
    """Give the reach that each role is to have, by id. Raises Invalid, and Conflict for one that can not have it."""
    targets: dict[str, str] = {}
    wrong: dict[str, str] = {}
    for place, each in enumerate(roles):
        role = str(each["role"])
        if role not in known:
            wrong[f"roles.{place}.role"] = "no such role"
        elif role in targets:
            wrong[f"roles.{place}.role"] = "named more than once"
        targets[role] = each["reach"]
    if wrong:
        raise Invalid.fields(wrong)
    for role, reach in targets.items():
        if reach == OWN and known[role]["name"] == ADMINISTRATOR:
            raise Conflict(f"The role {ADMINISTRATOR} reaches the whole school.")
        if reach == SCHOOL and known[role]["given_to"]:
            raise Conflict(f"The role {known[role]['name']} is given to all of a kind: it is OWN.")
    return targets


def _given(known: Mapping[str, Any], added: Collection[SeededRole]) -> list[tuple[str, str]]:
    """Name the permissions of the roles that accounts of students and of guardians get, each with whose they are."""
    there = [(role["given_to"], role["permissions"]) for role in known.values() if role["given_to"]]
    made = [(role.given_to, map(str, role.permissions)) for role in added if role.given_to]
    return sorted((kind, permission) for kind, permissions in (*there, *made) for permission in permissions)


def _gives(users: Iterable[Mapping[str, Any]]) -> bool:
    return any(each["widened"] for each in users)


def _shown(user: Mapping[str, Any], served: Collection[str]) -> dict[str, Any]:
    """Tell of a user which permissions become OWN, which of them do nothing then, and which reach more."""
    narrowed = [each for each in user["narrowed"] if each in served]
    return {
        **user,
        "narrowed": narrowed,
        "refused": [each for each in user["narrowed"] if each not in served],
    }


def _commit(
    changing: Mapping[str, str],
    known: Mapping[str, Any],
    added: Sequence[SeededRole],
    given: Collection[tuple[str, str]],
    send: Send,
    audit: Callable[[str, Iterable[Change]], None],
) -> None:
    statements: list[Executable] = []
    changes: list[Change] = []
    if changing:
        statements += [_switch([*changing], [*changing.values()]), _end_creation_tokens([*changing])]
        changes += [
            Change(UUID(role), {"reach": known[role]["reach"]}, {"reach": reach})
            for role, reach in changing.items()
        ]
    for number, role in enumerate(added, len(known) + 1):
        made = new_row(
            Role, id=uuid4(), name=role.name, avatar_number=number, reach=role.reach, given_to=role.given_to
        )
        names = sorted(map(str, role.permissions))
        statements += [made, _fill(made.id, names)]
        changes.append(Change(made.id, None, {"name": role.name, "reach": role.reach, "permissions": names}))
    if given:
        statements.append(give_to_all_of_a_kind(now()))
    send(*statements)
    audit(ENTITY, changes)


@statement
def _switch(role_ids: list[str], reaches: list[str]) -> Any:
    target = unnest_rows("target", role_id=(Role.id.type, role_ids), reach=(String(), reaches))
    return update(Role).where(Role.id == target.c.role_id).values(reach=target.c.reach)


def _created(role_ids: list[str]) -> Any:
    """Lock the users of roles who never signed in, in order of id."""
    return (
        select(User.id)
        .join(UserRole, UserRole.user_id == User.id)
        .where(UserRole.role_id == any_(cast(role_ids, ARRAY(Role.id.type))), User.session_number == CREATED)
        .order_by(User.id)
        .with_for_update(key_share=True, of=User)
    )


_lock_created = statement(_created)
"""Before the lock of administrators, which whoever takes a role or an account away asks for at their end."""


@statement
def _end_creation_tokens(role_ids: list[str]) -> Any:
    """End the tokens that were returned when users of the roles were created: their creators must not act as them."""
    return update(User).where(User.id.in_(_created(role_ids))).values(session_number=CREATED + 1)


@statement
def _fill(role_id: UUID, permissions: list[str]) -> Any:
    """Give a role permissions, by their names."""
    name = StoredPermission.access + ":" + StoredPermission.section
    having = select(cast(role_id, Role.id.type), StoredPermission.id).where(
        name == any_(cast(permissions, ARRAY(Text)))
    )
    return insert(RolePermission).from_select(["role_id", "permission_id"], having)


@statement
def give_to_all_of_a_kind(moment: datetime) -> Any:
    """Give the roles that are given to students and to guardians to the account of each who lacks theirs."""
    accounts = reads.accounts_of_a_kind().subquery("accounts")
    missing = ~exists().where(UserRole.user_id == accounts.c.user_id, UserRole.role_id == Role.id)
    rows: Any = (accounts.c.user_id, Role.id, moment)
    lacking = select(*rows).join(Role, Role.given_to == accounts.c.kind).where(missing)
    giving = insert_or_leave(UserRole).from_select(["user_id", "role_id", "created_at"], lacking)
    return giving.on_conflict_do_nothing()
