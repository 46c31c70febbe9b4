"""The accounts of guardians, for reading of their children."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from sqlalchemy import delete, exists, select, update

from school_service.auth.principal import Principal
from school_service.core.database import db
from school_service.core.errors import Duplicate, Forbidden, Invalid, NotFound
from school_service.core.read_models import BoundQuery, Query, json_object, read_model
from school_service.core.records import unknown_reference
from school_service.core.statements import (
    Executable,
    NewRow,
    answered_beside,
    in_one_round_trip,
    new_row,
    row_lock,
    statement,
)
from school_service.features.audit.service import audit_change
from school_service.features.people.access import require_to_change
from school_service.features.people.gains.service import NOTHING, gain_of_accounts
from school_service.features.people.guardians import reads
from school_service.features.people.guardians.people import GuardianRow, is_caller, require_results
from school_service.features.people.guardians.service import ENTITY, lock_and_see, lock_guardian
from school_service.features.people.guardians.storing import storing
from school_service.features.people.models import GUARDIANS, Role, User, UserRole
from school_service.features.people.users.service import ENTITY as USER
from school_service.features.people.users.service import hash_first, new_user

_lock_account = row_lock(User)


def give_account(
    *, guardian_id: UUID, user: UUID | None = None, username: str | None = None, password: str | None = None
) -> BoundQuery:
    """Give a guardian an account: an existing user, with their roles, or a new one with the role of guardians.

    A new one has the guardian's names, divided at the last space; the same account again changes nothing. Returns the
    read model of the guardian, with the credentials others made for the account. Raises NotFound, Invalid for user and
    username both or neither, an unknown or deleted user, and a password refused by the policy, Forbidden if the caller
    may not read results, or the account is their own, Conflict if the guardian has another account, the user or the
    username is another's, or the guardian's data were erased, and Busy.
    """
    require_results("Giving a guardian an account")
    if user is not None and is_caller(user):
        raise Forbidden("Nobody gives their own account to a guardian's record.")
    if (user is None) == (username is None):
        raise Invalid.field("username", "either user or username is needed")
    if user is not None and password is not None:
        raise Invalid.field("password", "is of a new user alone")
    password_hash = hash_first(password, username=username or "")
    # Asked again, since hashing may have begun another transaction.
    require_results("Giving a guardian an account")
    then = None if user is None else _lock_account(user)
    person, seen = lock_and_see(guardian_id, _seen_with_account(guardian_id, user), then=then)
    person.refuse_erased()
    if user is not None and str(person.row["user_id"]) == str(user):
        return reads.guardian(guardian_id)
    if person.has_account:
        raise Duplicate("The guardian has an account already.")
    if user is not None and not seen["is_user"]:
        raise unknown_reference(User, "user")
    made = [] if user is not None else _new_account(person, str(username), password_hash, seen["role"])
    account = user or made[0].id
    person.row["user_id"] = str(account)
    audit_change(ENTITY, guardian_id, old={"user": None}, new={"user": account})
    writes, read = (*made, *storing(changed=[person.row])), reads.guardian(guardian_id)
    if made:
        # Nobody has made anything of it before.
        return in_one_round_trip(*writes, read=answered_beside(read, NOTHING))
    return answered_beside(read, gain_of_accounts(account).write(*writes))


def _new_account(
    person: GuardianRow, username: str, password_hash: str | None, role: Mapping[str, Any] | None
) -> list[NewRow]:
    """Make the account of a guardian, with the role of guardians, if the school has one."""
    first_name, last_name = divided(person.row["full_name"])
    user = new_user(
        username=username,
        first_name=first_name,
        last_name=last_name,
        gender="",
        password_hash=password_hash,
    )
    if role is None:
        return [user]
    audit_change(USER, user.id, old={"role": None}, new={"role": role["name"]})
    return [user, new_row(UserRole, user_id=user.id, role_id=role["id"])]


def take_account(*, guardian_id: UUID, principal: Principal) -> BoundQuery:
    """Take a guardian's account away: the role of guardians goes with it, and its sessions end. The user stays.

    Returns the read model of the guardian, stored with it. Raises NotFound, also for a guardian without an account, and
    Forbidden if the principal lacks a permission of the user, and for one's own account while there is a stop: it would
    be given back without.
    """
    person = lock_guardian(guardian_id, then=reads.lock_account_of(guardian_id))
    user_id = person.account
    if user_id is None:
        raise NotFound("The guardian has no account.")
    if person.stops and is_caller(user_id):
        raise Forbidden(
            "Nobody takes their own account from a guardian whose access to a student is stopped."
        )
    require_to_change(principal, user_id, "Taking this guardian's account away")
    person.row["user_id"] = None
    audit_change(ENTITY, guardian_id, old={"user": user_id}, new={"user": None})
    writes = [*end_guardian(user_id), *storing(changed=[person.row])]
    return in_one_round_trip(*writes, read=reads.guardian(guardian_id))


def end_guardian(user_id: UUID) -> list[Executable]:
    """Take the role of guardians from an account, no longer a guardian's.

    Returns the statement ending its sessions.
    """
    taking = delete(UserRole).where(
        UserRole.user_id == user_id, UserRole.role_id == Role.id, Role.given_to == GUARDIANS
    )
    taken = db.session.scalars(
        taking.returning(Role.name), execution_options={"synchronize_session": False}
    ).all()
    for name in taken:
        audit_change(USER, user_id, old={"role": name}, new={"role": None})
    audit_change(USER, user_id, old={}, new={"sessions": "ended"})
    return [_end_sessions(user_id)]


def divided(full_name: str) -> tuple[str, str]:
    """Divide a name at its last space into first names and last name; of one word, the last name is empty."""
    first, space, last = full_name.rpartition(" ")
    return (first.rstrip(), last) if space else (last, "")


@read_model
def _seen_with_account(guardian_id: UUID, user_id: UUID | None = None) -> Query:
    """Select the facts of a guardian, and of the account intended for them.

    `role` is the role of a new account, null if the school has none; `is_user` tells whether there is such a user.
    """
    role = select(json_object(id=Role.id, name=Role.name)).where(Role.given_to == GUARDIANS)
    is_user = exists().where(User.id == user_id, User.deleted_at.is_(None))
    return reads.facts_of_guardians.query(guardian_id=guardian_id).add_columns(
        role.scalar_subquery().label("role"), is_user.label("is_user")
    )


@statement
def _end_sessions(user_id: UUID) -> Any:
    return update(User).where(User.id == user_id).values(session_number=User.session_number + 1)
