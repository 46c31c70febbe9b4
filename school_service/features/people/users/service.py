"""User accounts: create, sign in, delete and restore, roles, passwords."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import Any
from uuid import UUID, uuid4

from sqlalchemy import Select, delete, func, literal, null, or_, select, update
from sqlalchemy.dialects.postgresql import insert

from school_service.auth.login_throttle import LoginThrottle
from school_service.auth.passwords import check_password, hash_new_password, hash_password, needs_rehash
from school_service.auth.principal import Principal
from school_service.core.database import db, outside_transaction, request_context
from school_service.core.errors import Invalid, Locked, NotFound, WrongPassword
from school_service.core.permissions import Permission
from school_service.core.read_models import Query, fetch_row, read_model
from school_service.core.records import find, get, not_found, unknown_reference
from school_service.core.statements import NewRow, execute, new_row, statement, stored_in
from school_service.features.audit.service import (
    REFUSED_SIGN_IN,
    SIGN_IN,
    addresses_of,
    audit_change,
    audit_refusal,
    change_audited,
)
from school_service.features.people.access import require_to_change
from school_service.features.people.gains.service import (
    IDENTITY_ENTITY,
    USER_ENTITY,
    gain_of_restored,
    gain_of_role,
)
from school_service.features.people.models import (
    BY_PASSWORD,
    CREATED,
    SCHOOL,
    Guardian,
    Invitation,
    Role,
    Student,
    User,
    UserIdentity,
    UserRole,
    must_change_password,
)
from school_service.features.people.roles.administrators import require_administrator
from school_service.features.people.roles.reads import role_for_user
from school_service.features.people.roles.service import require_permissions
from school_service.features.people.usernames import first_free, stem_of, username_key
from tenants.clock import now

ENTITY = USER_ENTITY
KNOWN_FOR = timedelta(days=90)
"""How long the address of a user's sign-in is known."""
AUDITED = ("username", "first_name", "last_name", "gender")
"""The members of an account in the audit log."""

WRONG_PASSWORD = "The username or the password is wrong."  # noqa: S105


def create_user(
    *, username: str, first_name: str, last_name: str, gender: str = "", password: str | None = None
) -> NewRow:
    """Add an account without roles; without a password nobody can sign in to it.

    To be called first in a transaction: it ends while the password is hashed, and another begins. A taken username,
    without regard to case, is a conflict. Raises Invalid for a password refused by the policy, Busy.
    """
    user = new_user(
        username=username,
        first_name=first_name,
        last_name=last_name,
        gender=gender,
        password_hash=hash_first(password, username=username),
    )
    execute(user)
    return user


def hash_first(password: str | None, *, username: str) -> str | None:
    """Hash a new password, if there is one, before anything is locked or written: no connection waits meanwhile.

    Raises Invalid if the policy refuses it, Busy.
    """
    if password is None:
        return None
    return outside_transaction(partial(hash_new_password, password, username=username))


def new_user(
    *, username: str, first_name: str, last_name: str, gender: str, password_hash: str | None
) -> NewRow:
    """Make an account to insert, with the hash of its password, and its entry in the audit log."""
    user = new_row(
        User,
        username=username,
        username_key=username_key(username),
        password_hash=password_hash,
        first_name=first_name,
        last_name=last_name,
        gender=gender,
    )
    audit_change(ENTITY, user.id, new={name: user.values[name] for name in AUDITED})
    return user


def create_named_user(*, first_name: str, last_name: str, gender: str, taken: Collection[str]) -> UUID:
    """Add an account without roles or password, named after its user: `adaeze.okafor`, with a number if it is taken.

    `taken` are the keys of the usernames with the same beginning. Returns the account's id.
    """
    stem, user_id = stem_of(first_name, last_name), uuid4()
    while True:
        username = first_free(stem, taken)
        # Another transaction may take the name at this moment; the next query then finds it taken.
        if fetch_row(_name_user(user_id, username, first_name, last_name, gender, now())):
            named = {"username": username, "first_name": first_name, "last_name": last_name, "gender": gender}
            audit_change(ENTITY, user_id, new=named)
            return user_id
        taken = set(db.session.scalars(select(User.username_key).where(User.username_key.startswith(stem))))


@statement
def _name_user(
    user_id: UUID, username: str, first_name: str, last_name: str, gender: str, moment: datetime
) -> Any:
    """Insert an account unless its name is taken; returns the id if it was inserted. The name is its own key."""
    named = insert(User).values(
        id=user_id,
        username=username,
        username_key=username,
        first_name=first_name,
        last_name=last_name,
        gender=gender,
        password_given_at=moment,
        # It has no password: its giver is named once it has one.
        password_given_by=None,
        password_given_by_name=None,
        session_number=CREATED,
        created_at=moment,
    )
    return named.on_conflict_do_nothing().returning(User.id)


def change_user(*, user_id: UUID, principal: Principal, **changes: Any) -> UUID:
    """Change username, names and gender of an account: one's own, or by having every permission of the user.

    So nobody takes over, or locks out, a user with more permissions. A taken username is a conflict. Raises NotFound,
    Forbidden.
    """
    user = get_user(user_id, for_update=True)
    require_to_change(principal, user.id, "Changing this user")
    change_account(user, changes)
    return user.id


def change_account(user: User, changes: Mapping[str, Any]) -> None:
    """Change the given members of an account; the caller has locked it, and may change it.

    If no value differs, nothing is written.
    """
    change_audited(ENTITY, user, changes)


@dataclass(frozen=True, slots=True)
class SignedIn:
    """A user with the right password, and whether it has to be changed; tokens are of the session number."""

    id: UUID
    username: str
    session_number: int
    must_change_password: bool


def sign_in(
    *, username: str, password: str, throttle: LoginThrottle, username_hash: str, audited: bool = True
) -> SignedIn:
    """Find the user with this name, without regard to case, and this password.

    Does the same work whether or not there is such a user, and holds no connection meanwhile; both refusals are in the
    audit log, with the hash of the username, perhaps a password typed into the wrong field. A right password is on
    record there too, unless it is not `audited`: then the caller calls `audit_sign_in`. Raises WrongPassword, Busy, and
    TooManyAttempts; a refusal by the latter, without a look at the password, is not on record there.
    """
    account = username_key(username)
    throttle.check(account)
    # Where one has signed in is asked only where there were so many wrong passwords that it counts.
    is_capped = throttle.is_capped(account)
    since = now() - KNOWN_FOR if is_capped else None
    row = fetch_row(_credentials(username, account, since)) or {"id": None, "password_hash": None}
    user_id, stored = row["id"], row["password_hash"]
    if is_capped:
        throttle.check_known(account, row.get("addresses") or ())
    is_right, renewed = outside_transaction(partial(_check_and_renew, stored, password))
    # The hash was read in another transaction: the account may have been changed since.
    unchanged = fetch_row(_unchanged(user_id, stored)) if is_right else None
    if unchanged is None:
        audit_refusal(REFUSED_SIGN_IN, user_id, {"username_hash": username_hash})
        throttle.record_failure(account)
        raise WrongPassword(WRONG_PASSWORD)
    throttle.record_success(account)
    if unchanged["session_number"] == CREATED:
        unchanged["session_number"] = _begin_sessions(user_id, stored)
    if renewed is not None:
        # It replaces only the hash that it was checked against: the password may have been changed meanwhile.
        execute(_store_renewed(user_id, stored, renewed))
    user = SignedIn(**unchanged)
    if audited:
        audit_sign_in(user)
    return user


@read_model
def _credentials(username: str, key: str, since: datetime | None = None) -> Query:
    """Select id and hash of the user of a name, and with `since` the addresses of their sign-ins."""
    addresses = null() if since is None else addresses_of(SIGN_IN, User.id, since=since)
    query = _of_name(username, key).where(User.deleted_at.is_(None))
    return query.with_only_columns(User.id, User.password_hash, addresses.label("addresses"))


@read_model
def _unchanged(user_id: UUID, password_hash: str) -> Query:
    """Select the values of an account for a sign-in, unless it was deleted or has another password (hash) by now."""
    return select(
        User.id, User.username, User.session_number, must_change_password().label("must_change_password")
    ).where(User.id == user_id, User.password_hash == password_hash, User.deleted_at.is_(None))


def audit_sign_in(user: SignedIn | User, **by: Any) -> None:
    """Enter the sign-in of a user in the audit log; `by` a client, and the session opened by it."""
    audit_change(SIGN_IN, user.id, new={"username": user.username, **by})


def delete_user(*, user_id: UUID, principal: Principal) -> UUID:
    """Delete an account softly: its tokens stop working for good, its name stays taken.

    Raises NotFound, Forbidden if the principal lacks a permission of the user, and Conflict if nobody would be left
    with every permission.
    """
    user = get_user(user_id, for_update=True)
    held = require_to_change(principal, user.id, "Deleting this user")
    user.deleted_at = now()
    user.session_number += 1
    _end_invitation(user.id)
    if held.all_of_them:
        require_administrator("Deleting this user")
    audit_change(ENTITY, user.id, old=_audited(user))
    return user.id


def restore_user(*, user_id: UUID, principal: Principal) -> dict[str, Any] | None:
    """Bring a deleted account back, without its tokens; an account not deleted stays as it is.

    Returns the credentials others made for it, if it may do something again. Raises NotFound, Forbidden if the
    principal lacks a permission of the user, and Conflict for an account with erased data.
    """
    user = get(User, user_id, for_update=True)
    if user.erased_at is not None:
        raise Locked("The user's data were erased: the account does not come back.")
    require_to_change(principal, user.id, "Restoring this user")
    if user.deleted_at is None:
        return None
    user.deleted_at = None
    user.session_number += 1
    db.session.flush()
    audit_change(ENTITY, user.id, old={"deleted": True}, new={"deleted": False})
    return gain_of_restored(user.id).write()


def give_role(*, user_id: UUID, role: UUID, principal: Principal) -> dict[str, Any] | None:
    """Give a user a role; the principal must have every permission of it. A role they have already changes nothing.

    Returns the credentials others made for the account, if it gains. Raises NotFound, Invalid for an unknown role, and
    Forbidden.
    """
    # Locked, so that no permission is added to the role between this check and the insert; and before the user, as an
    # addition to a role locks the users of it.
    stored_role = find(Role, role, for_update=True)
    user = get_user(user_id, for_update=True)
    if stored_role is None:
        raise unknown_reference(Role, "role")
    seen = fetch_row(role_for_user(role, user.id)) or {}
    require_permissions(
        principal, seen["permissions"], stored_role.reach, f"Giving the role {stored_role.name}"
    )
    if seen["has_it"]:
        return None
    audit_change(ENTITY, user.id, old={"role": None}, new={"role": stored_role.name})
    given = new_row(UserRole, user_id=user.id, role_id=role)
    return gain_of_role(role, user.id).write(given)


def take_role(*, user_id: UUID, role_id: UUID, principal: Principal) -> UUID:
    """Take a role from a user.

    Raises NotFound if they do not have it, Forbidden if the principal lacks a permission of the user, and Conflict if
    nobody would be left with every permission.
    """
    user = get_user(user_id, for_update=True)
    held = require_to_change(principal, user.id, "Taking a role from this user")
    taken = db.session.execute(
        delete(UserRole)
        .where(UserRole.user_id == user.id, UserRole.role_id == role_id)
        .returning(UserRole.role_id)
    )
    if taken.one_or_none() is None:
        raise NotFound("The user does not have this role.")
    if held.all_of_them:
        require_administrator("Taking this role")
    audit_change(ENTITY, user.id, old={"role": get(Role, role_id).name}, new={"role": None})
    return user.id


def set_password(
    *,
    user_id: UUID,
    password: str,
    current_password: str | None = None,
    principal: Principal,
    throttle: LoginThrottle,
) -> UUID:
    """Set a password: one's own with the current one, another's by having all they have, for the whole school.

    If the school demands it, a password set by another has to be changed by its user. Links made by a password given by
    somebody else, or replaced by them now, end. Raises NotFound, Invalid for a password refused by the policy and for a
    wrong or missing current password, Forbidden, TooManyAttempts, Busy.
    """
    user = _settable(user_id, principal)
    is_own = principal.user_id == user_id
    if is_own and current_password is None:
        raise Invalid.field("current_password", "is needed to set one's own password")
    username, stored = user.username, user.password_hash
    if is_own:
        throttle.check(username_key(username))
    confirm_and_hash = partial(
        _confirm_and_hash,
        stored,
        current_password if is_own else None,
        password,
        username=username,
        must_differ=principal.must_change_password,
    )
    hashed = outside_transaction(confirm_and_hash)
    # Everything is read again: it may have been changed meanwhile.
    user = _settable(user_id, principal)
    if hashed is None or (is_own and user.password_hash != stored):
        audit_refusal(REFUSED_SIGN_IN, user.id, {"current_password": "wrong"})
        throttle.record_failure(username_key(username))
        raise Invalid.field("current_password", "is wrong")
    keeps_links = is_own and user.password_given_at is None
    user.password_hash = hashed
    user.given_by(None if is_own else principal)
    user.session_number += 1
    db.session.flush()
    _end_invitation(user.id)
    if not keeps_links:
        end_links_by_password(user.id)
    # The audit log says that a password was set, and never the password.
    audit_change(ENTITY, user.id, old={}, new={"password": "set"})
    return user.id


def replace_given_password(*, user_id: UUID, session_number: int, password: str) -> User:
    """Set the password of a user just signed in with one to be changed; ends all of their sessions.

    `session_number` is the user's at this sign-in. Raises WrongPassword if the account was changed since, Invalid for
    the current password and for one refused by the policy, Busy.
    """
    username, stored = _given_password(user_id, session_number)
    hashed = outside_transaction(partial(_hash_other, stored, password, username=username))
    # Everything is read again: it may have been changed meanwhile.
    user = find(User, user_id, for_update=True)
    if user is None or user.deleted_at is not None or user.session_number != session_number:
        raise WrongPassword(WRONG_PASSWORD)
    user.password_hash = hashed
    user.given_by(None)
    user.session_number += 1
    db.session.flush()
    _end_invitation(user.id)
    end_links_by_password(user.id)
    audit_change(ENTITY, user.id, old={}, new={"password": "set"})
    return user


def _given_password(user_id: UUID, session_number: int) -> tuple[str, str | None]:
    """Read the username of a user and the hash of their password; raises WrongPassword."""
    query = select(User.username, User.password_hash).where(
        User.id == user_id, User.session_number == session_number, User.deleted_at.is_(None)
    )
    row = db.session.execute(query).one_or_none()
    if row is None:
        raise WrongPassword(WRONG_PASSWORD)
    return row.username, row.password_hash


def _hash_other(stored: str | None, password: str, *, username: str) -> str:
    """Hash a new password, other than the stored one; raises Invalid, Busy."""
    hashed = hash_new_password(password, username=username)
    if check_password(stored, password):
        raise Invalid.field("password", "must be another than the current one")
    return hashed


def end_sessions(*, user_id: UUID, principal: Principal) -> UUID:
    """End a user's sessions: every token issued to them is refused from now on.

    One's own, or another user's by having every permission of theirs. Raises NotFound, Forbidden.
    """
    user = get_user(user_id, for_update=True)
    require_to_change(principal, user.id, "Ending this user's sessions")
    user.session_number += 1
    db.session.flush()
    audit_change(ENTITY, user.id, old={}, new={"sessions": "ended"})
    return user.id


def _end_invitation(user_id: UUID) -> None:
    """Delete the open invitation of an account, locked by the caller, with COMMIT."""
    ending = f"DELETE FROM {stored_in(Invitation.__tablename__)} WHERE user_id = %(not_invited)s"  # noqa: S608
    request_context().with_commit.append((ending, {"not_invited": str(user_id)}))


def end_links_by_password(user_id: UUID) -> None:
    """End the links made by the password of an account, locked by the caller.

    Anybody with this password may have made them, and is not to stay when its user gets another.
    """
    audit_ended_links(user_id, db.session.scalar(select(links_by_password_ended(user_id))))


def links_by_password_ended(user_id: UUID) -> Any:
    """Write the value, for a statement, ending those links and listing them for `audit_ended_links`."""
    ending = delete(UserIdentity).where(UserIdentity.user_id == user_id, UserIdentity.way == BY_PASSWORD)
    ended = ending.returning(UserIdentity.id, UserIdentity.issuer).cte("ended")
    return select(func.json_agg(func.json_build_array(ended.c.id, ended.c.issuer))).scalar_subquery()


def audit_ended_links(user_id: UUID, ended: Sequence[tuple[str, str]] | None) -> None:
    """Enter in the audit log the links of an account ended with its password, if any."""
    for link_id, issuer in ended or ():
        audit_change(IDENTITY_ENTITY, UUID(link_id), old=audited_link(issuer, BY_PASSWORD, user_id))


def audited_link(issuer: str, way: str, user_id: UUID) -> dict[str, str]:
    """Give the values of the link of an account for the audit log: never the subject."""
    return {"issuer": issuer, "way": way, "user": str(user_id)}


def _audited(user: User) -> dict[str, str]:
    return {name: getattr(user, name) for name in AUDITED}


def _begin_sessions(user_id: UUID, stored: str) -> int:
    """Make the account its user's at the first sign-in: the token given to its creator ends.

    Returns the session number. Raises WrongPassword if the password, just proved right, was changed meanwhile.
    """
    begun = execute(_count_first_sign_in(user_id, stored))
    if begun is None:
        raise WrongPassword(WRONG_PASSWORD)
    number: int = begun["session_number"]
    return number


@statement
def _count_first_sign_in(user_id: UUID, password_hash: str) -> Any:
    """Raise the session number of an account without any sign-in before, if it has this password (hash)."""
    counted = update(User).where(User.id == user_id, User.password_hash == password_hash)
    raised = func.greatest(User.session_number, literal(CREATED + 1))
    return counted.values(session_number=raised).returning(User.session_number)


def _check_and_renew(stored: str | None, password: str) -> tuple[bool, str | None]:
    """Tell whether the password is right; the second value is a new hash if the old one was made at another cost."""
    if not check_password(stored, password):
        return False, None
    return True, hash_password(password) if stored is not None and needs_rehash(stored) else None


@statement
def _store_renewed(user_id: UUID, password_hash: str, renewed: str) -> Any:
    """Replace the hash of a password by another one of the same password."""
    replaced = update(User).where(User.id == user_id, User.password_hash == password_hash)
    return replaced.values(password_hash=renewed)


def _settable(user_id: UUID, principal: Principal) -> User:
    """Lock a user for the principal to set their password; raises NotFound, Forbidden."""
    return require_to_take_over(user_id, principal, "Setting this user's password")


def require_to_take_over(user_id: UUID, principal: Principal, purpose: str) -> User:
    """Lock a user for letting somebody sign in as them, and return them: oneself, or by having all they have.

    Raises NotFound, and Forbidden, with a message beginning with `purpose`.
    """
    user = get_user(user_id, for_update=True)
    held = require_to_change(principal, user.id, purpose)
    if principal.user_id != user.id:
        # Signing in as a user reaches the user's own records, so it needs a reach of the whole school.
        require_permissions(principal, held.for_own, SCHOOL, purpose)
        # The password of a student or guardian opens their results, or their children's.
        of_student = select(Student.id).where(Student.user_id == user.id)
        of_guardian = select(Guardian.id).where(Guardian.user_id == user.id)
        if db.session.scalars(of_student.union_all(of_guardian).limit(1)).first() is not None:
            principal.require([Permission.RESULTS_READ], purpose)
    return user


def _confirm_and_hash(
    stored: str | None, current_password: str | None, password: str, *, username: str, must_differ: bool
) -> str | None:
    """Hash a new password; returns None if the current one must be confirmed and is wrong. Raises Invalid, Busy."""
    if current_password is not None:
        if not check_password(stored, current_password):
            return None
        if must_differ and password == current_password:
            raise Invalid.field("password", "must be another than the current one")
    return hash_new_password(password, username=username)


def user_named(username: str) -> Select[User]:
    """Select the user of exactly this name, deleted or not, else the one with a name differing in case alone.

    Only accounts older than the rule can be two (docs/rules/people.md, "Usernames").
    """
    return _of_name(username, username_key(username))


def _of_name(username: str, key: str) -> Select[User]:
    either = or_(User.username == username, User.username_key == key)
    return (
        select(User).where(either).order_by(User.deleted_at.is_not(None), User.username != username).limit(1)
    )


def get_user(user_id: UUID, *, for_update: bool = False) -> User:
    """Get a user who is not deleted; `for_update` as in `get`. Raises NotFound."""
    user = get(User, user_id, for_update=for_update)
    if user.deleted_at is not None:
        raise not_found(User)
    return user
