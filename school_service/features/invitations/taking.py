"""Taking an invitation: the holder of its code sets the password of the account, or links an identity to it.

Every invalid code is refused in the same words: used, replaced, expired, unknown, of a deleted account.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any
from uuid import UUID

from sqlalchemy import update

from school_service.auth.login_throttle import WrongCodes
from school_service.auth.passwords import hash_new_password
from school_service.auth.signing_key import SigningKeys
from school_service.core.database import db, outside_transaction
from school_service.core.errors import WrongPassword
from school_service.core.read_models import fetch_row
from school_service.core.statements import execute
from school_service.core.texts import mailbox
from school_service.features.audit.service import audit_change
from school_service.features.invitations import reads
from school_service.features.invitations.codes import code_hashes
from school_service.features.people.gains.service import INVITATION_ENTITY
from school_service.features.people.models import User
from school_service.features.people.users.service import ENTITY as USER
from school_service.features.people.users.service import (
    audit_ended_links,
    audit_sign_in,
    links_by_password_ended,
)

ENTITY = INVITATION_ENTITY
NOT_VALID = "The code is not valid."


@dataclass(frozen=True, slots=True)
class Invitee:
    """The account of a code; `code_hash` is the stored one of its hashes."""

    user_id: UUID
    username: str
    name: str
    session_number: int
    code_hash: str


def read_code(code: str, *, keys: SigningKeys, wrong_codes: WrongCodes | None) -> list[str]:
    """Hash a code by each of the installation's keys, as the functions here take it.

    Raises WrongPassword and TooManyAttempts for a text of another form: nothing is asked of the database then.
    """
    hashes = code_hashes(code, keys)
    if not hashes:
        raise _refusal(wrong_codes)
    return hashes


def find_invitee(
    hashes: Sequence[str], *, wrong_codes: WrongCodes | None, session_number: int | None = None
) -> Invitee:
    """Find the account of a code; it is not used up.

    Raises WrongPassword for an invalid code, also if the account has another `session_number` than the given one;
    TooManyAttempts beyond the limit of wrong ones. Without `wrong_codes` none is counted.
    """
    return _find(hashes, wrong_codes, session_number)


def take_invitation(
    hashes: Sequence[str],
    *,
    password: str,
    wrong_codes: WrongCodes | None,
    session_number: int | None = None,
) -> User:
    """Set the password of a code's account, and use the code up; all sessions of the account end.

    So do links made by the password before. Nothing may have been written in the transaction before. Returns the user,
    with the session number from now on. Raises as `find_invitee`, Busy, and Invalid for a password refused by the
    policy: then nothing is used up.
    """
    username = _find(hashes, wrong_codes, session_number).username
    password_hash = outside_transaction(partial(hash_new_password, password, username=username))
    # It is sought again, behind the lock of the account: somebody else may have taken it meanwhile.
    user_id = use_up_code(hashes, wrong_codes)
    taking = update(User).where(User.id == user_id)
    if session_number is not None:
        taking = taking.where(User.session_number == session_number)
    new = taking.values(
        password_hash=password_hash,
        password_given_at=None,
        password_given_by=None,
        password_given_by_name=None,
        session_number=User.session_number + 1,
    ).returning(User, links_by_password_ended(user_id))
    taken = db.session.execute(new, execution_options={"synchronize_session": False}).one_or_none()
    if taken is None:
        raise _refusal(wrong_codes)
    user: User
    user, ended = taken
    audit_ended_links(user_id, ended)
    audit_change(USER, user.id, old={}, new={"password": "set"})
    return user


def sign_in_by_invitation(*, code: str, password: str, keys: SigningKeys, wrong_codes: WrongCodes) -> User:
    """Take an invitation, and sign its user in; returns the user. Raises as `take_invitation`."""
    hashes = read_code(code, keys=keys, wrong_codes=wrong_codes)
    user = take_invitation(hashes, password=password, wrong_codes=wrong_codes)
    audit_sign_in(user)
    return user


def use_up_code(hashes: Sequence[str], wrong_codes: WrongCodes | None) -> UUID:
    """Use up the invitation with one of these hashes of its code, and lock its account; returns the account's id.

    The invitation is found without a lock; then the account is locked, as everybody does before changing it, and only
    then the invitation, to be judged anew. Raises WrongPassword, TooManyAttempts.
    """
    used = execute(reads.lock_by_code(list(hashes)), reads.use_by_code(list(hashes)))
    if used is None:
        raise _refusal(wrong_codes)
    return _note_use(used)


def use_up_email(email: str) -> UUID | None:
    """Use up the only open invitation made with an e-mail address, and lock its account.

    Returns the account's id, None if there is no such invitation, or more than one.
    """
    address = mailbox(email)
    used = execute(reads.lock_by_email(address), reads.use_by_email(address))
    return None if used is None else _note_use(used)


def _note_use(used: dict[str, Any]) -> UUID:
    user_id = UUID(str(used["user_id"]))
    audit_change(ENTITY, UUID(str(used["id"])), old={"used": False}, new={"used": True, "user": user_id})
    return user_id


def _find(hashes: Sequence[str], wrong_codes: WrongCodes | None, session_number: int | None) -> Invitee:
    row = fetch_row(reads.found_by_code(list(hashes)))
    if row is None or session_number not in (None, row["session_number"]):
        raise _refusal(wrong_codes)
    return Invitee(**row)


def _refusal(wrong_codes: WrongCodes | None) -> WrongPassword:
    if wrong_codes is not None:
        wrong_codes.record()
    return WrongPassword(NOT_VALID)
