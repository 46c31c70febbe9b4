"""Switching roles between the whole school's records and their bearers' own, with a look at the changes."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID, uuid4

from sqlalchemy import String, Text, cast, insert, select, update
from sqlalchemy.dialects.postgresql import insert as insert_or_leave

from school_service.auth.principal import Principal
from school_service.core.permissions import Permission
from school_service.core.records import one_of, unnest_rows
from school_service.core.statements import Executable, new_row, statement
from school_service.features.audit.service import Change
from school_service.features.people.gains.service import OF_THE_REQUEST, Means, gain_of_widened
from school_service.features.people.models import (
    GIVEN_TO,
    OWN,
    SCHOOL,
    Role,
    RolePermission,
    StoredPermission,
    UserRole,
)
from school_service.features.people.roles.administrators import lock_administrators
from school_service.features.people.roles.service import ENTITY
from school_service.features.people.users.service import ENTITY as USER
from school_service.features.role_reaches import reads
from school_service.features.role_reaches.judging import MOST, Switch, judge, loses_nothing
from tenants.clock import now


def switch(
    *,
    roles: Sequence[Mapping[str, Any]],
    add_seeded: bool = False,
    dry_run: bool = False,
    served: Collection[str],
    principal: Principal | None,
    means: Means = OF_THE_REQUEST,
) -> dict[str, Any]:
    """Give roles another reach, each `{role, reach}`, and tell the changes, or with `dry_run` the changes to expect.

    `add_seeded` makes the seeded roles with a name unused in the school, and gives the roles of students and of
    guardians to their accounts. `served` are the permissions serving OWN at all. `principal` None is the operator. A
    caller without permission to read subjects of cohorts, or cohorts, is told the number of the ones without a teacher,
    and not their names. If roles come to reach the whole school, the credentials made by others for gaining accounts
    are told, and end, by `means` as all is written.

    Raises Invalid for an unknown role and one named twice, Forbidden if the principal lacks a permission of the roles
    for the whole school, and Conflict for a role unable to have the reach, and if nobody would be left with every
    permission for the whole school.
    """
    ids = [each["role"] for each in roles]
    # The roles first, as in a change of a role's permissions.
    locks = () if dry_run else (reads.lock_roles(ids), lock_administrators())
    row = means.send(*locks, reads.switching(ids, list(GIVEN_TO) if add_seeded else []))
    switching = judge(row or {}, roles, add_seeded=add_seeded)
    if principal is not None:
        principal.require(switching.needed_permissions, "Switching these roles")
    switching.require_administrator()
    told = _carry_out(switching, means, dry_run=dry_run)
    return {**_preview(switching, served, principal), **(told or {})}


def _preview(switching: Switch, served: Collection[str], principal: Principal | None) -> dict[str, Any]:
    """Tell the changes by a switch, as the caller may read them."""
    users = switching.users(served)
    losing = sum(not loses_nothing(user) for user in users)
    uncovered: dict[str, Any] = {}
    for part, permission in (
        ("subjects", Permission.COHORT_SUBJECTS_READ),
        ("batches", Permission.COHORTS_READ),
    ):
        rows = switching.present[part]
        may_read = principal is None or principal.has(permission)
        uncovered |= {part: rows[:MOST] if may_read else [], f"{part}_total": len(rows)}
    return {
        "roles": [
            {
                "id": role,
                "name": switching.roles[role]["name"],
                "before": switching.roles[role]["reach"],
                "reach": reach,
            }
            for role, reach in switching.targets.items()
        ],
        "added": [role.name for role in switching.added],
        "users": users[: max(MOST, losing)],
        "users_total": len(users),
        "users_losing": losing,
        "differs": list(switching.differing()),
        "uncovered": uncovered,
    }


def _carry_out(switching: Switch, means: Means, *, dry_run: bool) -> dict[str, Any] | None:
    """Write a switch, but in a dry run; returns credentials others made for gaining accounts, None if none gains."""
    changing = switching.changing
    widened, narrowed = (
        [UUID(role) for role, reach in changing.items() if reach == target] for target in (SCHOOL, OWN)
    )
    gain = gain_of_widened(widened, narrowed) if widened else None
    if dry_run:
        return gain.foresee(means=means) if gain else None
    writes = _writes(switching, means)
    if gain:
        return gain.write(*writes, means=means)
    if writes:
        means.send(*writes)
    return None


def _writes(switching: Switch, means: Means) -> list[Executable]:
    """Audit a switch, and give the statements writing it: none if all is so already."""
    changing, writes = switching.changing, list[Executable]()
    if changing:
        writes.append(_switch([*changing], [*changing.values()]))
    changes = [
        Change(UUID(role), {"reach": switching.roles[role]["reach"]}, {"reach": reach})
        for role, reach in changing.items()
    ]
    for number, role in enumerate(switching.added, len(switching.roles) + 1):
        made = new_row(
            Role, id=uuid4(), name=role.name, avatar_number=number, reach=role.reach, given_to=role.given_to
        )
        names = sorted(map(str, role.permissions))
        writes += [made, _fill(made.id, names)]
        changes.append(Change(made.id, None, {"name": role.name, "reach": role.reach, "permissions": names}))
    if switching.given:
        writes.append(give_to_all_of_a_kind(now()))
    means.audit(ENTITY, changes)
    means.audit(
        USER, [Change(UUID(user), {"role": None}, {"role": name}) for user, name in switching.gaining]
    )
    return writes


@statement
def _switch(role_ids: list[str], reaches: list[str]) -> Any:
    target = unnest_rows("target", role_id=(Role.id.type, role_ids), reach=(String(), reaches))
    return update(Role).where(Role.id == target.c.role_id).values(reach=target.c.reach)


@statement
def _fill(role_id: UUID, permissions: list[str]) -> Any:
    """Give a role permissions, by their names."""
    name = StoredPermission.access + ":" + StoredPermission.section
    having = select(cast(role_id, Role.id.type), StoredPermission.id).where(name == one_of(permissions, Text))
    return insert(RolePermission).from_select(["role_id", "permission_id"], having)


@statement
def give_to_all_of_a_kind(moment: datetime) -> Any:
    """Give the roles of students and of guardians to each of their accounts without its role."""
    accounts = reads.accounts_lacking_theirs().subquery("accounts_lacking")
    rows: Any = (accounts.c.user_id, Role.id, moment)
    lacking = select(*rows).join(Role, Role.given_to == accounts.c.kind)
    giving = insert_or_leave(UserRole).from_select(["user_id", "role_id", "created_at"], lacking)
    return giving.on_conflict_do_nothing()
