"""Taking an invitation: whoever has its code sets the password of the account, or links an identity to it.

Every code that is not valid is refused in the same words: used, replaced, expired, unknown, of a deleted account.
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
from school_service.features.audit.service import audit_change
from school_service.features.invitations import reads
from school_service.features.invitations.codes import code_hashes
from school_service.features.people.gains.service import INVITATION_ENTITY
from school_service.features.people.models import User
from school_service.features.people.users.service import ENTITY as USER
from school_service.features.people.users.service import audit_sign_in

ENTITY = INVITATION_ENTITY
NOT_VALID = "The code is not valid."


@dataclass(frozen=True, slots=True)
class Invitee:
    """Whose account a code is for."""

    user_id: UUID
    username: str
    name: str


def find_invitee(*, code: str, keys: SigningKeys, wrong_codes: WrongCodes) -> Invitee:
    """Find whose account a code is for; it is not used up. Raises WrongPassword and TooManyAttempts."""
    wrong_codes.check()
    found = _find(code_hashes(code, keys), wrong_codes)
    return Invitee(found["user_id"], found["username"], found["name"])


def take_invitation(*, code: str, password: str, keys: SigningKeys, wrong_codes: WrongCodes) -> User:
    """Set the password of the account that a code is for, which is used up; all sessions of the account end.

    Nothing may have been written in the transaction before. Returns the user, with the session number that holds from
    now on. Raises WrongPassword for a code that is not valid, TooManyAttempts, Invalid for a password that the policy
    refuses, which uses nothing up, and Busy.
    """
    wrong_codes.check()
    hashes = code_hashes(code, keys)
    username = _find(hashes, wrong_codes)["username"]
    password_hash = outside_transaction(partial(hash_new_password, password, username=username))
    # It is sought again: somebody else may have taken it meanwhile.
    taking = (
        update(User)
        .where(User.id == use_up_code(hashes, wrong_codes))
        .values(
            password_hash=password_hash,
            password_given_at=None,
            password_given_by=None,
            password_given_by_name=None,
            session_number=User.session_number + 1,
        )
        .returning(User)
    )
    user = db.session.scalars(taking, execution_options={"synchronize_session": False}).one()
    audit_change(USER, user.id, old={}, new={"password": "set"})
    return user


def sign_in_by_invitation(*, code: str, password: str, keys: SigningKeys, wrong_codes: WrongCodes) -> User:
    """Take an invitation, and sign its user in; returns the user. Raises as `take_invitation`."""
    user = take_invitation(code=code, password=password, keys=keys, wrong_codes=wrong_codes)
    audit_sign_in(user)
    return user


def use_up_code(hashes: Sequence[str], wrong_codes: WrongCodes) -> UUID:
    """Use the invitation up whose code has one of these hashes, and lock its account; returns the account's id.

    Raises WrongPassword, TooManyAttempts.
    """
    used = execute(reads.lock_by_code(list(hashes)), reads.use_by_code(list(hashes)))
    if used is None:
        raise _refusal(wrong_codes)
    return _used(used)


def use_up_email(email: str) -> UUID | None:
    """Use the only open invitation up that was made with an e-mail address, and lock its account.

    Returns the account's id, None where there is no such invitation, or more than one.
    """
    address = email.casefold()
    used = execute(reads.lock_by_email(address), reads.use_by_email(address))
    return None if used is None else _used(used)


def _used(used: dict[str, Any]) -> UUID:
    user_id = UUID(str(used["user_id"]))
    audit_change(ENTITY, UUID(str(used["id"])), old={"used": False}, new={"used": True, "user": user_id})
    return user_id


def _find(hashes: Sequence[str], wrong_codes: WrongCodes) -> dict[str, Any]:
    found = fetch_row(reads.found_by_code(list(hashes)))
    if found is None:
        raise _refusal(wrong_codes)
    return found


def _refusal(wrong_codes: WrongCodes) -> WrongPassword:
    wrong_codes.record()
    return WrongPassword(NOT_VALID)
