"""Links of accounts to outside identities: by an administrator, by an invitation's code, or by its e-mail address.

Never by an address of the records: whoever may write contacts could become the principal.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from uuid import UUID

from school_service.auth.login_throttle import WrongCodes
from school_service.auth.principal import NotLinked, Principal, VerifiedToken
from school_service.auth.signing_key import SigningKeys
from school_service.core.database import db, request_context
from school_service.core.errors import Conflict, Forbidden, Invalid, NotFound
from school_service.core.read_models import BoundQuery, fetch_row
from school_service.core.records import get, not_found
from school_service.core.statements import execute, in_one_round_trip, new_row
from school_service.features.audit.service import audit_change
from school_service.features.identities import reads
from school_service.features.invitations.codes import code_hashes
from school_service.features.invitations.taking import use_up_code, use_up_email
from school_service.features.people.gains.service import IDENTITY_ENTITY
from school_service.features.people.models import (
    BY_ADMINISTRATOR,
    BY_EMAIL,
    BY_INVITATION,
    CREATED,
    User,
    UserIdentity,
)
from school_service.features.people.users.service import require_to_take_over

ENTITY = IDENTITY_ENTITY
MOST = 5
"""How many identities an account is linked to at most."""


@dataclass(frozen=True, slots=True)
class _Person:
    """Whoever has just proved to be the owner of an account, as the one who acts."""

    actor: str
    actor_name: str


def check_user(*, id: UUID) -> None:
    """Tell whether there is a user whose links are asked for. Raises NotFound."""
    if get(User, id).deleted_at is not None:
        raise not_found(User)


def link_identity(
    *, user_id: UUID, issuer: str, subject: str, issuers: Collection[str], principal: Principal
) -> BoundQuery:
    """Link an account to an identity of one of the `issuers`; returns the read model of the link.

    Raises NotFound, Invalid for another issuer, Forbidden where the principal may not do what the user may, and
    Conflict where the identity has an account, or the account MOST.
    """
    if issuer not in issuers:
        raise Invalid.field("issuer", "is none whose tokens are accepted here")
    user = require_to_take_over(user_id, principal, "Linking this user")
    return _link(user, (issuer, subject), BY_ADMINISTRATOR, by=principal)


def link_own(
    *, token: VerifiedToken, code: str | None, keys: SigningKeys, wrong_codes: WrongCodes
) -> BoundQuery:
    """Link the identity of an outside token to the account of an invitation, which is used up; returns the read model.

    It is the invitation with this code or, without one, the only one that was made with the token's verified e-mail
    address. Raises Forbidden for a token without such an identity, NotLinked, WrongPassword for a code that is not
    valid, TooManyAttempts, and Conflict as `link_identity` does.
    """
    if token.identity is None:
        raise Forbidden("This needs a token of an outside provider, by which people are linked here.")
    if code is None:
        user_id, way = None if token.email is None else use_up_email(token.email), BY_EMAIL
        if user_id is None:
            raise NotLinked
    else:
        wrong_codes.check()
        user_id, way = use_up_code(code_hashes(code, keys), wrong_codes), BY_INVITATION
    user = get(User, user_id, judged=True)
    person = _Person(str(user.id), f"{user.first_name} {user.last_name}")
    request_context().principal = person
    if user.session_number == CREATED:
        # The account has its user now: the token that its creator was given ends.
        user.session_number += 1
        db.session.flush()
    return _link(user, token.identity, way, by=person)


def unlink(*, user_id: UUID, identity_id: UUID, principal: Principal) -> UUID:
    """Delete a link of an account: one's own, or that of a user whose every permission the principal has.

    Returns the link's id. Raises NotFound, Forbidden, and Conflict for one's own last way in.
    """
    require_to_take_over(user_id, principal, "Unlinking this user")
    found = fetch_row(reads.ways_in(user_id, identity_id))
    if found is None or found["id"] is None:
        raise NotFound("No such identity.")
    if principal.user_id == user_id and not found["has_password"] and found["links"] == 1:
        raise Conflict("You would have no way in any more: you have no password, and no other identity.")
    execute(reads.delete_identity(identity_id))
    audit_change(ENTITY, identity_id, old=_audited(found["issuer"], found["way"], user_id))
    return identity_id


def _link(user: User, identity: tuple[str, str], way: str, *, by: Principal | _Person) -> BoundQuery:
    """Link an account, which is locked, to an identity."""
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
    audit_change(ENTITY, link.id, new=_audited(issuer, way, user.id))
    return in_one_round_trip(link, read=reads.identity(link.id))


def _audited(issuer: str, way: str, user_id: UUID) -> dict[str, str]:
    return {"issuer": issuer, "way": way, "user": str(user_id)}
