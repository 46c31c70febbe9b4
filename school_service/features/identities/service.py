"""Links of accounts to outside identities: by an administrator, by an invitation's code or address, or by the password.

Never by an address of the records: anybody with the right to write contacts could become the principal. Nor does
anybody link their own account as an administrator does: a token for that alone would be a way to all rights of its
user.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from school_service.auth.login_throttle import WrongCodes
from school_service.auth.principal import NotLinked, PasswordGiven, Principal, VerifiedToken
from school_service.auth.signing_key import SigningKeys
from school_service.core.database import db, request_context
from school_service.core.errors import Conflict, Forbidden, Invalid, NotFound, WrongPassword
from school_service.core.read_models import BoundQuery, fetch_row
from school_service.core.records import get
from school_service.core.statements import execute, in_one_round_trip, new_row
from school_service.features.audit.service import audit_change
from school_service.features.identities import reads
from school_service.features.invitations.taking import read_code, use_up_code, use_up_email
from school_service.features.people.gains.service import IDENTITY_ENTITY
from school_service.features.people.models import (
    BY_ADMINISTRATOR,
    BY_EMAIL,
    BY_INVITATION,
    BY_PASSWORD,
    CREATED,
    User,
    UserIdentity,
)
from school_service.features.people.users.service import (
    WRONG_PASSWORD,
    audited_link,
    get_user,
    require_to_take_over,
    sign_in,
)

MOST = 5
"""How many identities an account is linked to at most."""


@dataclass(frozen=True, slots=True)
class _Person:
    """The owner of an account, proved just now, as the actor."""

    actor: str
    actor_name: str


def check_user(*, id: UUID) -> None:
    """Tell whether there is a user, for a question about their links. Raises NotFound."""
    get_user(id)


def link_identity(
    *, user_id: UUID, issuer: str, subject: str, issuers: Collection[str], principal: Principal
) -> BoundQuery:
    """Link an account to an identity of one of the `issuers`; returns the read model of the link.

    Raises NotFound, Invalid for another issuer, Forbidden for one's own account and for a user with rights the
    principal lacks, and Conflict if the identity has an account, or the account MOST.
    """
    if principal.user_id == user_id:
        raise Forbidden(
            "Nobody links an identity to their own account in this way: POST /me/identities does so, with the "
            "password or an invitation."
        )
    if issuer not in issuers:
        raise Invalid.field("issuer", "is none whose tokens are accepted here")
    user = require_to_take_over(user_id, principal, "Linking this user")
    return _link(user, (issuer, subject), BY_ADMINISTRATOR, by=principal)


def link_own(
    *,
    token: VerifiedToken,
    code: str | None,
    credentials: Mapping[str, Any] | None,
    keys: SigningKeys,
    wrong_codes: WrongCodes,
) -> BoundQuery:
    """Link the identity of an outside token to the account of an invitation or a password; returns the read model.

    The `credentials` are the arguments of `sign_in`. Without them it is the invitation with this code or, without one,
    the only one made with the token's verified e-mail address; it is used up. Raises Forbidden for a token without such
    an identity, NotLinked, Invalid for both a code and a password, WrongPassword for an invalid one, TooManyAttempts,
    Busy, and Conflict as `link_identity` does.
    """
    if token.identity is None:
        raise Forbidden("This needs a token of an outside provider, by which people are linked here.")
    if credentials is not None and code is not None:
        raise Invalid.field("code", "is given beside username and password")
    if credentials is not None:
        way, user = BY_PASSWORD, _of_password(credentials)
    elif code is not None:
        hashes = read_code(code, keys=keys, wrong_codes=wrong_codes)
        way, user = BY_INVITATION, _invited(use_up_code(hashes, wrong_codes))
    else:
        user_id = None if token.email is None else use_up_email(token.email)
        if user_id is None:
            raise NotLinked
        way, user = BY_EMAIL, _invited(user_id)
    person = _Person(str(user.id), f"{user.first_name} {user.last_name}")
    request_context().principal = person
    return _link(user, token.identity, way, by=person)


def _invited(user_id: UUID) -> User:
    """Find the user of a used invitation: the token given to the account's creator ends."""
    user = get(User, user_id, judged_before=True)
    if user.session_number == CREATED:
        user.session_number += 1
        db.session.flush()
    return user


def _of_password(credentials: Mapping[str, Any]) -> User:
    """Find and lock the user with this name and password.

    Raises as `sign_in`, and Forbidden if somebody else gave the password and it must be changed first.
    """
    signed_in = sign_in(**credentials, audited=False)
    user = get(User, signed_in.id, for_update=True, judged_before=True)
    if user.session_number != signed_in.session_number:
        # Another password was set meanwhile: a link by this one would not have ended with it.
        raise WrongPassword(WRONG_PASSWORD)
    if signed_in.must_change_password:
        raise PasswordGiven(user.id)
    return user


def unlink(*, user_id: UUID, identity_id: UUID, principal: Principal) -> UUID:
    """Delete a link of an account: one's own, or a user's without any permission the principal lacks.

    Returns the link's id. Raises NotFound, Forbidden, and Conflict for one's own last way in.
    """
    require_to_take_over(user_id, principal, "Unlinking this user")
    row = fetch_row(reads.ways_in(user_id, identity_id))
    if row is None or row["id"] is None:
        raise NotFound("No such identity.")
    if principal.user_id == user_id and not row["has_password"] and row["links"] == 1:
        raise Conflict("You would have no way in any more: you have no password, and no other identity.")
    execute(reads.delete_identity(identity_id))
    audit_change(IDENTITY_ENTITY, identity_id, old=audited_link(row["issuer"], row["way"], user_id))
    return identity_id


def _link(user: User, identity: tuple[str, str], way: str, *, by: Principal | _Person) -> BoundQuery:
    """Link an account, locked before, to an identity."""
    counted = fetch_row(reads.count(user.id))
    if counted is not None and counted["links"] >= MOST:
        raise Conflict(f"An account is linked to {MOST} identities at most.")
    issuer, subject = identity
    link = new_row(
        UserIdentity,
        user_id=user.id,
        issuer=issuer,
        subject=subject,
        way=way,
        created_by=by.actor,
        created_by_name=by.actor_name,
    )
    audit_change(IDENTITY_ENTITY, link.id, new=audited_link(issuer, way, user.id))
    return in_one_round_trip(link, read=reads.identity(link.id))
