"""Accounts and invitations for the guardians of a class who have none."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from sqlalchemy import Text, Uuid, func, select, update

from school_service.auth.principal import Principal
from school_service.core.errors import Invalid
from school_service.core.narrowing import judged_before
from school_service.core.read_models import Query, array_of, fetch_document, json_object, read_model
from school_service.core.records import array_text, lock_in_order, unknown_reference, unnest_rows
from school_service.core.statements import NewRows, execute, in_one_round_trip, new_row, statement
from school_service.features.audit.service import Change, audit_changes
from school_service.features.invitations.service import MOST_AT_ONCE, invite
from school_service.features.people.guardians.accounts import divided
from school_service.features.people.guardians.people import require_results
from school_service.features.people.guardians.service import ENTITY
from school_service.features.people.models import (
    GUARDIANS,
    Guardian,
    Role,
    Student,
    StudentGuardian,
    User,
    UserRole,
)
from school_service.features.people.students.reads import BY_NAME
from school_service.features.people.usernames import first_free, stem_of
from school_service.features.people.users.service import ENTITY as USER
from school_service.features.people.users.service import new_user
from school_service.features.school.models import CURRENT, Batch, Enrollment


def give_accounts(*, batch: UUID, days: int, principal: Principal, **inviting: Any) -> list[dict[str, Any]]:
    """Give each guardian of a class without an account a new one, and invite them.

    They are guardians of the students now in the batch whose guardianship is not stopped. A username is made of the
    names, `adaeze.okafor`, with a number if it is taken. The other arguments are those of `invite`. Returns the
    invitations with their codes, each with its guardian, in the order of the class list. Raises Invalid for an unknown
    batch and too many guardians, Forbidden if the caller may not read results, and Conflict if somebody takes one of
    the usernames at this moment.
    """
    require_results("Giving guardians accounts")
    row = fetch_document(in_one_round_trip(_lock(batch), read=_guardians_without_account(batch)))
    if not row["is_batch"]:
        raise unknown_reference(Batch, "batch")
    people = row["guardians"]
    if len(people) > MOST_AT_ONCE:
        raise Invalid.field(
            "batch", f"has {len(people)} guardians to be invited; at most {MOST_AT_ONCE} are at once"
        )
    if not people:
        return []
    accounts = _make_accounts(people, row["role"])
    invited = invite(users=list(accounts), everybody=True, days=days, principal=principal, **inviting)
    return [{"guardian": accounts[UUID(invitation["user"])], **invitation} for invitation in invited]


def _make_accounts(people: list[list[str]], role: dict[str, str] | None) -> dict[UUID, str]:
    """Make an account of each guardian; returns the ids of the guardians by the accounts' ids."""
    names = [divided(full_name) for _, full_name in people]
    stems = [stem_of(*name) for name in names]
    taken = {*fetch_document(_usernames_with(array_text(dict.fromkeys(stems))))["taken"]}
    users, accounts = [], {}
    for (guardian, _), stem, (first_name, last_name) in zip(people, stems, names, strict=True):
        username = first_free(stem, taken)
        taken.add(username)
        user = new_user(
            username=username, first_name=first_name, last_name=last_name, gender="", password_hash=None
        )
        users.append(user)
        accounts[user.id] = guardian
    audit_changes(
        ENTITY,
        [Change(UUID(guardian), {"user": None}, {"user": user}) for user, guardian in accounts.items()],
    )
    writes: list[Any] = [NewRows(users)]
    if role is not None:
        audit_changes(USER, [Change(user, {"role": None}, {"role": role["name"]}) for user in accounts])
        writes.append(
            NewRows([new_row(UserRole, user_id=user, role_id=UUID(role["id"])) for user in accounts])
        )
    execute(*writes, _link(array_text(accounts), array_text(accounts.values())))
    return accounts


def _of_class(batch_id: Any) -> Any:
    """Whether a guardian without an account is one of a student now in a batch, and not stopped there."""
    theirs = (
        select(StudentGuardian.guardian_id)
        .join(Enrollment, Enrollment.student_id == StudentGuardian.student_id)
        .where(Enrollment.batch_id == batch_id, CURRENT, StudentGuardian.stopped_at.is_(None))
    )
    return Guardian.id.in_(theirs) & Guardian.user_id.is_(None) & Guardian.erased_at.is_(None)


@statement
def _lock(batch_id: UUID) -> Any:
    """Lock the guardians of a class without an account FOR NO KEY UPDATE, in the order of their ids."""
    return lock_in_order(Guardian, _of_class(batch_id))


@read_model
def _guardians_without_account(batch_id: UUID) -> Query:
    """Select the guardians of a class without an account, in the order of the class list, and their role."""
    place = (
        select(Student.id, func.row_number().over(order_by=BY_NAME).label("number"))
        .join(User, User.id == Student.user_id)
        .join(Enrollment, Enrollment.student_id == Student.id)
        .where(Enrollment.batch_id == batch_id, CURRENT)
        .subquery("place")
    )
    first = (
        select(func.min(place.c.number))
        .join(StudentGuardian, StudentGuardian.student_id == place.c.id)
        .where(StudentGuardian.guardian_id == Guardian.id)
        .correlate(Guardian)
        .scalar_subquery()
    )
    listed = (
        select(Guardian.id, Guardian.full_name, first.label("first"))
        .where(_of_class(batch_id))
        .subquery("listed")
    )
    person = func.json_build_array(listed.c.id, listed.c.full_name)
    role = select(json_object(id=Role.id, name=Role.name)).where(Role.given_to == GUARDIANS)
    return select(
        select(Batch.id).where(Batch.id == batch_id).exists().label("is_batch"),
        select(array_of(person, listed.c.first, listed.c.full_name, listed.c.id))
        .select_from(listed)
        .scalar_subquery()
        .label("guardians"),
        role.scalar_subquery().label("role"),
    )


@judged_before
def _usernames_with(stems: str) -> Query:
    """Select the keys of usernames that begin with one of these stems, the literal of an array of texts."""
    given: Any = unnest_rows(stem=(Text, stems))
    keys = select(User.username_key).join(given, User.username_key.startswith(given.c.stem))
    return select(func.array(keys.scalar_subquery()).label("taken"))


@statement
def _link(accounts: str, guardians: str) -> Any:
    """Give guardians their accounts: the ids of both are the literals of arrays, in one order."""
    given: Any = unnest_rows(account=(Uuid, accounts), guardian=(Uuid, guardians))
    return update(Guardian).where(Guardian.id == given.c.guardian).values(user_id=given.c.account)
