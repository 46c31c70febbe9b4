"""The accounts of guardians, by which they read of their children."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from sqlalchemy import delete, func, select, update

from school_service.auth.principal import Principal
from school_service.core.database import db
from school_service.core.errors import Conflict, Invalid, NotFound
from school_service.core.read_models import BoundQuery, Query, read_model
from school_service.core.records import unknown_reference
from school_service.core.statements import Executable, execute, in_one_round_trip, new_row, statement
from school_service.features.audit.service import audit_change
from school_service.features.people.access import require_to_change
from school_service.features.people.guardians import reads
from school_service.features.people.guardians.people import require_results
from school_service.features.people.guardians.service import ENTITY, lock_and_see, lock_guardian
from school_service.features.people.guardians.storing import storing
from school_service.features.people.models import CREATED, GUARDIANS, Invitation, Role, User, UserRole
from school_service.features.people.users.service import ENTITY as USER
from school_service.features.people.users.service import hash_first, new_user


def give_account(
    *, guardian_id: UUID, user: UUID | None = None, username: str | None = None, password: str | None = None
) -> BoundQuery:
    """Give a guardian an account: a user who is there, with their roles, or a new one with the role of guardians.

    A new one has the guardian's names, divided at the last space; the same account again changes nothing. Returns the
    read model of the guardian, which is stored with it. Raises NotFound, Invalid for user and username both or neither,
    an unknown or deleted user, and a password that the policy refuses, Forbidden where children or a password come with
    it and the caller may not read results, Conflict where the guardian has another account, the user or the username is
    another's, or the guardian's data were erased, and Busy.
    """
    if (user is None) == (username is None):
        raise Invalid.field("username", "either user or username is needed")
    if user is not None and password is not None:
        raise Invalid.field("password", "is of a new user alone")
    if password is not None:
        require_results("Setting a guardian's password")
    password_hash = hash_first(password, username=username or "")
    person, seen = lock_and_see(guardian_id, _seen_with_role(guardian_id))
    account = None if user is None else execute(_lock_account(user))
    person.refuse_erased()
    if user is not None and str(person.row["user_id"]) == str(user):
        return reads.guardian(guardian_id)
    if person.children:
        require_results("Giving this guardian an account")
    if person.has_account:
        raise Conflict("The guardian has an account already.")
    writes: list[Executable] = []
    if user is None:
        first_name, last_name = divided(person.row["full_name"])
        made = new_user(
            username=str(username),
            first_name=first_name,
            last_name=last_name,
            gender="",
            password_hash=password_hash,
        )
        user = made.id
        writes = [made]
        if seen["role"] is not None:
            writes.append(new_row(UserRole, user_id=user, role_id=seen["role"]["id"]))
            audit_change(USER, user, old={"role": None}, new={"role": seen["role"]["name"]})
    elif account is None or account["deleted_at"] is not None:
        raise unknown_reference(User, "user")
    else:
        # Whoever invited the user may know the code, which must not lead to the children.
        writes = [_end_invitation(user)]
        if account["session_number"] == CREATED:
            # Nor must the token that whoever made the account was given of it.
            writes.append(_end_sessions(user))
    person.row["user_id"] = str(user)
    audit_change(ENTITY, guardian_id, old={"user": None}, new={"user": user})
    return in_one_round_trip(*writes, *storing(changed=[person.row]), read=reads.guardian(guardian_id))


def take_account(*, guardian_id: UUID, principal: Principal) -> BoundQuery:
    """Take a guardian's account away: the role of guardians goes with it, and its sessions end. The user stays.

    Returns the read model of the guardian, which is stored with it. Raises NotFound, also where there is no account,
    and Forbidden where the principal lacks a permission that the user has.
    """
    person = lock_guardian(guardian_id, then=reads.lock_account_of(guardian_id))
    if not person.has_account:
        raise NotFound("The guardian has no account.")
    user_id = UUID(person.row["user_id"])
    require_to_change(principal, user_id, "Taking this guardian's account away")
    person.row["user_id"] = None
    audit_change(ENTITY, guardian_id, old={"user": user_id}, new={"user": None})
    writes = [*end_guardian(user_id), *storing(changed=[person.row])]
    return in_one_round_trip(*writes, read=reads.guardian(guardian_id))


def end_guardian(user_id: UUID) -> list[Executable]:
    """Take the role of guardians from an account, which is none of a guardian any more.

    Returns the statement that ends its sessions.
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
def _seen_with_role(guardian_id: UUID) -> Query:
    """Select what decides of a guardian, and the role that a new account gets: null where the school has none."""
    role = select(func.json_build_object("id", Role.id, "name", Role.name)).where(Role.given_to == GUARDIANS)
    return reads.seen.query(guardian_id=guardian_id).add_columns(role.scalar_subquery().label("role"))


@statement
def _lock_account(user_id: UUID) -> Any:
    return (
        select(User.id, User.deleted_at, User.session_number)
        .where(User.id == user_id)
        .with_for_update(key_share=True)
    )


@statement
def _end_invitation(user_id: UUID) -> Any:
    return delete(Invitation).where(Invitation.user_id == user_id)


@statement
def _end_sessions(user_id: UUID) -> Any:
    return update(User).where(User.id == user_id).values(session_number=User.session_number + 1)
