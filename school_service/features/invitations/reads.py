"""Read models of invitations, and of the rights to invite."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import (
    DateTime,
    Select,
    String,
    Text,
    Uuid,
    bindparam,
    case,
    delete,
    func,
    insert,
    or_,
    select,
)

from school_service.core.reach import Reach
from school_service.core.read_models import Query, array_of, json_object, read_model
from school_service.core.records import json_rows, lock_in_order, one_of
from school_service.core.statements import statement
from school_service.core.texts import SURNAME_FIRST
from school_service.features.people.models import (
    Guardian,
    Invitation,
    Role,
    RolePermission,
    StoredPermission,
    Student,
    User,
    UserRole,
)
from school_service.features.reach import scopes
from school_service.features.school.cohorts.reads import class_name
from school_service.features.school.models import CURRENT, Batch, Classroom, Cohort, Enrollment
from school_service.features.school.settings.service import name_order, time_zone
from tenants.clock import now

SWEPT_AT_ONCE = 20
"""How many expired invitations of the school go with each new one, at most."""

_full_name = func.concat(User.first_name, " ", User.last_name)


def _name_on_paper() -> Any:
    """The name of a user as it stands on the school's papers, with a student's middle name."""
    middle = select(func.nullif(Student.middle_name, "")).where(Student.user_id == User.id).correlate(User)
    first, last, of_student = User.first_name, User.last_name, middle.scalar_subquery()
    return case(
        (name_order() == SURNAME_FIRST, func.concat_ws(" ", last, first, of_student)),
        else_=func.concat_ws(" ", first, of_student, last),
    )


def _moment() -> Any:
    return bindparam("the_moment", callable_=now, type_=DateTime(timezone=True))


def _in_batch(batch_id: Any) -> Select[Any]:
    """Select the accounts of the students now in a batch."""
    return (
        select(Student.user_id)
        .join(Enrollment, Enrollment.student_id == Student.id)
        .where(Enrollment.batch_id == batch_id, CURRENT)
    )


@read_model
def invitations(batch: UUID | None = None, user: UUID | None = None) -> Query:
    """Read model of InvitationSchema, the open ones, by the names of the invited users."""
    query = (
        select(
            Invitation.id,
            Invitation.user_id.label("user"),
            User.username,
            _full_name.label("name"),
            Invitation.email,
            Invitation.created_at,
            Invitation.created_by_name,
            Invitation.expires_at,
        )
        .join(User, User.id == Invitation.user_id)
        .where(Invitation.expires_at > _moment(), User.deleted_at.is_(None))
        .order_by(User.name_sort_key, Invitation.id)
    )
    if batch is not None:
        query = query.where(Invitation.user_id.in_(_in_batch(batch)))
    return query if user is None else query.where(Invitation.user_id == user)


# The accounts to invite.


@statement
def lock_students(batch_id: UUID) -> Any:
    """Lock the accounts of the students now in a batch, in the order of their ids."""
    return lock_in_order(User, User.id.in_(_in_batch(batch_id)))


@read_model
def facts_of_accounts(user_ids: list[UUID] | None = None, batch_id: UUID | None = None) -> Query:
    """Select, of accounts or of those of a batch, the facts deciding whether they may be invited; in one row.

    `users` are the accounts without the deleted ones, in the order of the class list. `roles` has reach and permissions
    of each role of theirs, without the roles given to all of a kind. `batch` tells whether there is such a batch.
    """
    wanted = _in_batch(batch_id) if user_ids is None else select(func.unnest(user_ids))
    roles_of = (
        select(array_of(UserRole.role_id)).where(UserRole.user_id == User.id).correlate(User)
    ).scalar_subquery()
    is_kin = or_(
        select(Guardian.id).where(Guardian.user_id == User.id).correlate(User).exists(),
        select(Student.id).where(Student.user_id == User.id).correlate(User).exists(),
    )
    class_of = (
        select(class_name(Classroom.name, Batch.name, Batch.cohort_id))
        .select_from(Student)
        .join(Enrollment, (Enrollment.student_id == Student.id) & CURRENT)
        .join(Batch, Batch.id == Enrollment.batch_id)
        .join(Cohort, Cohort.id == Batch.cohort_id)
        .join(Classroom, Classroom.id == Cohort.classroom_id)
        .where(Student.user_id == User.id)
        .order_by(Enrollment.started_at.desc(), Enrollment.id)
        .limit(1)
        .correlate(User)
        .scalar_subquery()
    )
    user = json_object(
        id=User.id,
        username=User.username,
        name=_full_name,
        name_on_paper=_name_on_paper(),
        **{"class": class_of},
        has_password=User.password_hash.is_not(None),
        is_kin=is_kin,
        roles=roles_of,
    )
    # As students are listed by name.
    number = select(Student.admission_number.collate("C")).where(Student.user_id == User.id).correlate(User)
    in_order = (User.name_sort_key, number.scalar_subquery(), User.id)
    users = (
        select(array_of(user, *in_order))
        .where(User.id.in_(wanted), User.deleted_at.is_(None))
        .scalar_subquery()
    )
    granted = (
        select(array_of(func.concat(StoredPermission.access, ":", StoredPermission.section)))
        .join(RolePermission, RolePermission.permission_id == StoredPermission.id)
        .where(RolePermission.role_id == Role.id)
        .correlate(Role)
        .scalar_subquery()
    )
    role = json_object(id=Role.id, reach=Role.reach, permissions=granted)
    roles = (
        select(array_of(role))
        .where(
            Role.given_to.is_(None), Role.id.in_(select(UserRole.role_id).where(UserRole.user_id.in_(wanted)))
        )
        .scalar_subquery()
    )
    there = select(Batch.id).where(Batch.id == batch_id).exists()
    return select(
        users.label("users"),
        roles.label("roles"),
        there.label("batch"),
        time_zone().label("time_zone"),
    )


@statement
def replace_invitations(rows: str) -> Any:
    """Delete the open invitations of the accounts with new ones in `rows`, an array in JSON."""
    return delete(Invitation).where(Invitation.user_id.in_(select(_recorded(rows).c.user_id)))


@statement
def insert_invitations(rows: str, actor: str, actor_name: str, moment: datetime, until: datetime) -> Any:
    """Insert invitations: `rows` is an array in JSON, each row with id, user_id, code_hash and email."""
    recorded = _recorded(rows)
    return insert(Invitation).from_select(
        [*recorded.c.keys(), "created_by", "created_by_name", "created_at", "expires_at"],
        select(recorded, actor, actor_name, moment, until),  # type: ignore[call-overload]
        include_defaults=False,
    )


def _recorded(rows: Any) -> Any:
    return json_rows("recorded", rows, id=Uuid, user_id=Uuid, code_hash=String, email=String)


@statement
def sweep_expired(moment: datetime) -> Any:
    """Delete a few expired invitations, but none locked by somebody."""
    expired = (
        select(Invitation.id)
        .where(Invitation.expires_at < moment)
        .limit(SWEPT_AT_ONCE)
        .with_for_update(skip_locked=True)
    )
    return delete(Invitation).where(Invitation.id.in_(expired))


# The one that is deleted, or taken.


@read_model
def invitee(invitation_id: UUID, reach: Reach | None = None) -> Query:
    """Select the user of an invitation; no row if there is none."""
    query = select(Invitation.user_id).where(Invitation.id == invitation_id)
    return query if reach is None else query.where(scopes.accounts_in_reach(reach, Invitation.user_id))


@statement
def delete_invitation(invitation_id: UUID) -> Any:
    """Delete an invitation; answers its id."""
    return delete(Invitation).where(Invitation.id == invitation_id).returning(Invitation.id)


@read_model
def found_by_code(hashes: list[str]) -> Query:
    """Select the account of the open invitation with one of these hashes of its code."""
    query = select(
        Invitation.user_id,
        User.username,
        _full_name.label("name"),
        User.session_number,
        Invitation.code_hash,
    )
    return query.join(User, User.id == Invitation.user_id).where(
        *_is_open(Invitation.code_hash == one_of(hashes, Text))
    )


@statement
def lock_by_code(hashes: list[str]) -> Any:
    """Lock the account of the open invitation with one of these hashes of its code."""
    return _lock(Invitation.code_hash == one_of(hashes, Text))


@statement
def use_by_code(hashes: list[str]) -> Any:
    """Delete the open invitation with one of these hashes of its code; answers its id and its account's."""
    return _use(Invitation.code_hash == one_of(hashes, Text))


@statement
def lock_by_email(email: str) -> Any:
    """Lock the accounts of the open invitations made with an e-mail address."""
    return _lock(Invitation.email == email)


@statement
def use_by_email(email: str) -> Any:
    """Delete the only open invitation made with an e-mail address; answers its id and its account's."""
    others = select(func.count()).select_from(Invitation).where(*_is_open(Invitation.email == email))
    return _use(Invitation.email == email, others.scalar_subquery() == 1)


def _is_open(condition: Any) -> tuple[Any, ...]:
    alive = select(User.id).where(User.id == Invitation.user_id, User.deleted_at.is_(None))
    return condition, Invitation.expires_at > _moment(), alive.correlate(Invitation).exists()


def _lock(condition: Any) -> Any:
    accounts = select(Invitation.user_id).where(*_is_open(condition))
    return lock_in_order(User, User.id.in_(accounts))


def _use(condition: Any, *others: Any) -> Any:
    return (
        delete(Invitation)
        .where(*_is_open(condition), *others)
        .returning(Invitation.id, Invitation.user_id, Invitation.expires_at)
    )
