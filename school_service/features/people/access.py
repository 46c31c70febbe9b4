"""What somebody needs in order to see or to change a person, whatever the operation that they do it by.

An operation that shows or changes several areas of a person asks here for all of them: so none of them is a way to what
another would refuse.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from uuid import UUID

from sqlalchemy import select

from school_service.auth.principal import Principal
from school_service.core.database import db
from school_service.core.permissions import Permission
from school_service.features.people.models import RolePermission, StoredPermission, UserRole

READ_WITH: dict[str, Collection[Permission]] = {
    "users": {Permission.USERS_READ},
    "user_roles": {Permission.USERS_READ, Permission.ROLES_READ},
    "contacts": {Permission.CONTACTS_READ},
    "audit_entries": {Permission.AUDIT_READ},
    "students": {Permission.STUDENTS_READ},
    "enrollments": {Permission.COHORTS_READ},
    "subject_enrollments": {Permission.COHORTS_READ},
    "gradebook_entries": {Permission.GRADEBOOKS_READ},
    "absences": {Permission.GRADEBOOKS_READ},
    "term_comments": {Permission.RESULTS_READ},
    "report_cards": {Permission.RESULTS_READ},
    "left_out_students": {Permission.RESULTS_READ},
    "promotion_decisions": {Permission.RESULTS_READ},
    "metrics": {Permission.METRICS_READ},
    "metric_scores": {Permission.METRICS_READ},
    "graduates": {Permission.GRADUATES_READ},
    "employees": {Permission.EMPLOYEES_READ},
    "bank_accounts": {Permission.EMPLOYEES_READ},
    "next_of_kin": {Permission.EMPLOYEES_READ},
    "form_teachers": {Permission.TEACHERS_READ},
}
"""The permissions with which the records of people are read, by table; `docs/privacy.md` has the same."""


def needed_to_read(*tables: str) -> tuple[Permission, ...]:
    """Name the permissions that whoever is shown records of people from all of these tables needs, in their order."""
    return tuple(sorted({permission for table in tables for permission in READ_WITH[table]}))


def require_to_change(principal: Principal, user_id: UUID, purpose: str) -> HeldPermissions:
    """Check that the principal may change what an account is or may do: it is their own, or they have all it has.

    So nobody takes over, locks out or renames who may do more. Returns what the account has. Raises Forbidden, whose
    message begins with `purpose`.
    """
    held = held_permissions(user_id)
    if principal.user_id != user_id:
        principal.require(held.names, purpose)
    return held


@dataclass(frozen=True, slots=True)
class HeldPermissions:
    """The permissions of all roles of a user: their names, as `access:section`, and whether these are all there are."""

    names: frozenset[str]
    all_of_them: bool


def held_permissions(user_id: UUID) -> HeldPermissions:
    """Find the permissions that a user has, deleted or not."""
    held = (
        select(RolePermission.permission_id)
        .join(UserRole, UserRole.role_id == RolePermission.role_id)
        .where(UserRole.user_id == user_id, RolePermission.permission_id == StoredPermission.id)
        .exists()
    )
    found = db.session.execute(select(StoredPermission, held)).all()
    return HeldPermissions(
        names=frozenset(str(permission) for permission, is_held in found if is_held),
        all_of_them=all(is_held for _, is_held in found),
    )
