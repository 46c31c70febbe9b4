"""The permissions needed to see or to change a person, the same for each operation.

An operation on several areas of a person asks here for all of them: so none of them is a way around the refusal of
another.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from sqlalchemy import select

from school_service.auth.principal import Principal
from school_service.core.database import db
from school_service.core.narrowing import everybodys
from school_service.core.permissions import Permission
from school_service.features.people.models import (
    OWN,
    SCHOOL,
    Role,
    RolePermission,
    StoredPermission,
    UserRole,
)
from school_service.features.people.roles.service import require_permissions

READ_WITH: dict[str, Collection[Permission]] = {
    "users": {Permission.USERS_READ},
    "user_roles": {Permission.USERS_READ, Permission.ROLES_READ},
    "user_sessions": {Permission.USERS_READ},
    "user_identities": {Permission.USERS_READ},
    "invitations": {Permission.USERS_READ},
    "user_photos": {Permission.USERS_READ},
    "contacts": {Permission.CONTACTS_READ},
    "audit_entries": {Permission.AUDIT_READ},
    "students": {Permission.STUDENTS_READ},
    "guardians": {Permission.STUDENTS_READ},
    "student_guardians": {Permission.STUDENTS_READ},
    "enrollments": {Permission.COHORTS_READ},
    "subject_enrollments": {Permission.COHORTS_READ},
    "gradebook_entries": {Permission.GRADEBOOKS_READ},
    "absences": {Permission.GRADEBOOKS_READ},
    "marks": {Permission.ATTENDANCE_READ},
    "term_comments": {Permission.RESULTS_READ},
    "report_cards": {Permission.RESULTS_READ},
    "issued_transcripts": {Permission.RESULTS_READ},
    "left_out_students": {Permission.RESULTS_READ},
    "promotion_decisions": {Permission.RESULTS_READ},
    "promotion_amendments": {Permission.RESULTS_READ},
    "metrics": {Permission.METRICS_READ},
    "metric_scores": {Permission.METRICS_READ},
    "graduates": {Permission.GRADUATES_READ},
    "employees": {Permission.EMPLOYEES_READ},
    "bank_accounts": {Permission.EMPLOYEES_READ},
    "next_of_kin": {Permission.EMPLOYEES_READ},
    "form_teachers": {Permission.TEACHERS_READ},
    "subject_teachers": {Permission.TEACHERS_READ},
}
"""The permissions for reading the records of people, by table; `docs/privacy.md` has the same."""


def needed_to_read(*tables: str) -> tuple[Permission, ...]:
    """Name the permissions needed to be shown records of people from all of these tables, in their order."""
    return tuple(sorted({permission for table in tables for permission in READ_WITH[table]}))


def require_to_change(principal: Principal, user_id: UUID, purpose: str) -> HeldPermissions:
    """Check the principal's right to change an account or its powers: it is their own, or they have all it has.

    So nobody takes over, locks out or renames a user with more permissions. Returns the permissions of the account.
    Raises Forbidden, with a message beginning with `purpose`.
    """
    held = held_permissions(user_id)
    if principal.user_id != user_id:
        held.require_of(principal, purpose)
    return held


@dataclass(frozen=True, slots=True)
class HeldPermissions:
    """The permissions of all roles of a user, as `access:section`: for the whole school, and for their own records.

    `all_of_them`: the ones for the whole school are all there are.
    """

    for_school: frozenset[str]
    for_own: frozenset[str]
    all_of_them: bool

    def require_of(self, principal: Principal, purpose: str) -> None:
        """Require a principal to have all of them, with at least their reach. Raises Forbidden."""
        require_permissions(principal, self.for_school, SCHOOL, purpose)
        require_permissions(principal, self.for_own, OWN, purpose)


def held_permissions(user_id: UUID) -> HeldPermissions:
    """Find the permissions of a user, deleted or not, without the ones of a role given to all of a kind."""

    def is_held(reach: str) -> Any:
        return (
            select(RolePermission.permission_id)
            .join(UserRole, UserRole.role_id == RolePermission.role_id)
            .join(Role, Role.id == UserRole.role_id)
            .where(
                UserRole.user_id == user_id,
                Role.reach == reach,
                Role.given_to.is_(None),
                RolePermission.permission_id == StoredPermission.id,
            )
            .exists()
        )

    rows = db.session.execute(everybodys(select(StoredPermission, is_held(SCHOOL), is_held(OWN)))).all()
    return HeldPermissions(
        for_school=frozenset(str(permission) for permission, for_school, _ in rows if for_school),
        for_own=frozenset(str(permission) for permission, _, for_own in rows if for_own),
        all_of_them=all(for_school for _, for_school, _ in rows),
    )
