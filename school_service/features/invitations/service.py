"""Inviting: the right to do so, the stored invitations, and the slips to hand out."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from functools import partial
from typing import Any
from uuid import UUID, uuid4

import orjson

from school_service.auth.principal import Principal
from school_service.auth.signing_key import SigningKeys
from school_service.core.database import current_school, request_context
from school_service.core.errors import Forbidden, Invalid, Unknown
from school_service.core.permissions import Permission
from school_service.core.read_models import fetch_row
from school_service.core.records import get_referenced, not_found, unknown_reference
from school_service.core.statements import execute
from school_service.core.texts import mailbox
from school_service.features.audit.service import Change, audit_change, audit_changes
from school_service.features.invitations import reads
from school_service.features.invitations.codes import code_hasher, new_code
from school_service.features.invitations.sheet import write_sheet
from school_service.features.invitations.taking import ENTITY
from school_service.features.people.gains.reads import lock_accounts
from school_service.features.people.models import Invitation, User
from school_service.features.school.models import Batch
from school_service.printing.printers import print_paper
from tenants.clock import now

FORMATS = (PDF, XLSX) = ("pdf", "xlsx")
MOST_AT_ONCE = 500
File = tuple[str, Callable[[], bytes]]

_PURPOSE = "Inviting this user"


def invite(*, users: Sequence[UUID] | None = None, **inviting: Any) -> list[dict[str, Any]]:
    """Invite users, or the students now in a batch; the arguments are those of `make_slips`.

    Nobody invites themselves: of a batch the principal is left out. Returns the invitations with their codes, known to
    nobody afterwards, in the order of `users` or of the class list. Raises Invalid and Forbidden.
    """
    made, _ = _invite(users=users, **inviting)
    if users is not None:
        place = {str(user): number for number, user in enumerate(users)}
        made.sort(key=lambda invitation: place[invitation["user"]])
    return made


def make_slips(*, format: str, issuer: str | None, **inviting: Any) -> File:
    """Invite users, or the students now in a batch, and make a file of slips, `pdf` or `xlsx`.

    They are in the order of the class list, class by class. The file is made after the transaction; if that fails,
    slips are made again, with other codes. `issuer` is the address of the sign-in pages, None if there are none. The
    other arguments: the `principal`; the installation's `keys`; `takes_emails`, whether outside sign-ins are linked;
    and the members of `NewInvitationsSchema`. Raises Invalid and Forbidden.
    """
    made, time_zone = _invite(issuer=issuer, **inviting)
    made.sort(key=lambda invitation: invitation["class"] or "")
    classes = {invitation["class"] for invitation in made}
    of_class = f" {made[0]['class']}" if len(classes) == 1 and None not in classes else ""
    about = {"school": current_school().name, "title": f"Invitations{of_class}", "time_zone": time_zone}
    shown = ("class", "username", "code", "url")
    slips = [
        {
            **{name: invitation[name] for name in shown},
            "name": invitation["name_on_paper"],
            "expires_at": invitation["expires_at"].isoformat(),
        }
        for invitation in made
    ]
    if format == XLSX:
        return f"{about['title']}.xlsx", partial(write_sheet, slips, **about)
    task = {
        "paper": "slips",
        "slips": slips,
        **about,
        "address": None if issuer is None else _address(issuer),
        "made_at": now().isoformat(),
    }
    return f"{about['title']}.pdf", partial(print_paper, task, request_context().school_id)


def _address(issuer: str) -> str:
    """The address for typing a code: the page knows the school by its short name or, if it has none, its id."""
    school = current_school()
    return f"{issuer}/invitation?school={school.short_name or school.id}"


def delete_invitation(*, invitation_id: UUID, principal: Principal) -> UUID:
    """Delete an open invitation: its code is valid no more.

    One's own asks for nothing. Raises NotFound, and Forbidden as inviting the user does.
    """
    invitee = fetch_row(reads.invitee(invitation_id))
    if invitee is None:
        # Who may invite nobody is not told which invitations there are.
        principal.require([Permission.USERS_WRITE])
        raise not_found(Invitation)
    if str(invitee["user_id"]) != str(principal.user_id):
        _require(principal, _lock([UUID(str(invitee["user_id"]))], None))
    deleted = execute(reads.delete_invitation(invitation_id))
    if deleted is None:
        raise not_found(Invitation)
    audit_change(ENTITY, invitation_id, old={"user": str(invitee["user_id"])})
    return invitation_id


def check_invitation_filter(*, batch: UUID | None = None, user: UUID | None = None) -> None:
    """Tell whether the batch and the user of the filters exist. Raises Invalid."""
    if batch is not None:
        get_referenced(Batch, batch, "batch")
    if user is not None and get_referenced(User, user, "user").deleted_at is not None:
        raise unknown_reference(User, "user")


def _invite(
    *,
    principal: Principal,
    keys: SigningKeys,
    issuer: str | None,
    takes_emails: bool,
    users: Sequence[UUID] | None = None,
    batch: UUID | None = None,
    everybody: bool,
    days: int,
    emails: Sequence[str] | None = None,
) -> tuple[list[dict[str, Any]], str]:
    """Invite, and return the invitations in the order of the class list, and the school's time zone."""
    _check(users, batch, emails, takes_emails=takes_emails)
    if principal.user_id in (users or ()):
        raise Forbidden("Nobody invites themselves: ask somebody else who may invite you.")
    facts = _lock(users, batch)
    facts["users"] = [user for user in facts["users"] if user["id"] != str(principal.user_id)]
    there = {user["id"] for user in facts["users"]}
    _refuse_each(
        "users", users or (), lambda user: Unknown("no such user") if str(user) not in there else None
    )
    if batch is not None and not facts["batch"]:
        raise unknown_reference(Batch, "batch")
    _require(principal, facts)
    invited = [user for user in facts["users"] if everybody or not user["has_password"]]
    if len(invited) > MOST_AT_ONCE:
        raise Invalid.field("batch", f"has {len(invited)} to be invited; at most {MOST_AT_ONCE} are at once")
    if not invited:
        return [], facts["time_zone"]
    moment = now()
    until = moment + timedelta(days=days)
    by_user = {str(user): mailbox(email) for user, email in zip(users or (), emails or (), strict=False)}
    at = None if issuer is None else f"{issuer}/{request_context().school_id}/invitation"
    made = [
        {
            "id": str(uuid4()),
            "user": user["id"],
            "username": user["username"],
            "name": user["name"],
            "name_on_paper": user["name_on_paper"],
            "class": user["class"],
            "code": code,
            "url": None if at is None else f"{at}/{code}",
            "expires_at": until,
        }
        for user, code in ((user, new_code()) for user in invited)
    ]
    hashed = code_hasher(keys)
    rows = [
        {
            "id": invitation["id"],
            "user_id": invitation["user"],
            "code_hash": hashed(invitation["code"]),
            "email": by_user.get(invitation["user"]),
        }
        for invitation in made
    ]
    text = orjson.dumps(rows).decode()
    execute(
        reads.replace_invitations(text),
        reads.insert_invitations(text, principal.actor, principal.actor_name, moment, until),
        reads.sweep_expired(moment),
    )
    values = {"expires_at": until, "emails": bool(emails)}
    audit_changes(
        ENTITY,
        [Change(UUID(invitation["id"]), None, {"user": invitation["user"], **values}) for invitation in made],
    )
    return made, facts["time_zone"]


def _check(
    users: Sequence[UUID] | None, batch: UUID | None, emails: Sequence[str] | None, *, takes_emails: bool
) -> None:
    if (users is None) == (batch is None):
        raise Invalid.field("users", "either users or batch is needed")
    seen: set[Any] = set()
    _refuse_each("users", users or (), partial(_repeated, seen))
    if emails is None:
        return
    if not takes_emails:
        raise Invalid.field("emails", "outside sign-ins are not linked here (AUTH_LINKED_USERS)")
    if len(emails) != len(users or ()):
        raise Invalid.field("emails", "one for each of the users is needed")
    _refuse_each("emails", [mailbox(email) for email in emails], partial(_repeated, seen))


def _repeated(seen: set[Any], value: Any) -> str | None:
    if value in seen:
        return "is there twice"
    seen.add(value)
    return None


def _refuse_each(field: str, values: Sequence[Any], fault: Callable[[Any], str | None]) -> None:
    """Refuse the values of a list with a fault, each by its place; raises Invalid."""
    faults = {f"{field}.{place}": said for place, value in enumerate(values) if (said := fault(value))}
    if faults:
        raise Invalid.fields(faults)


def _lock(users: Sequence[UUID] | None, batch: UUID | None) -> dict[str, Any]:
    """Lock the accounts, and read the facts deciding whether they may be invited."""
    if users is None:
        if batch is None:
            raise RuntimeError("Either users or batch was checked to be there.")
        facts = execute(reads.lock_students(batch), reads.facts_of_accounts(batch_id=batch))
    else:
        facts = execute(lock_accounts(list(users)), reads.facts_of_accounts(list(users)))
    if facts is None:
        raise RuntimeError("The facts of accounts are one row.")
    return facts


def _require(principal: Principal, facts: Mapping[str, Any]) -> None:
    """Check that the principal has all permissions of each account, for the whole school. Raises Forbidden.

    The holder of the code signs in as its user, and reaches the records of that person. So a permission they
    have as OWN is needed for the whole school. Students and guardians read their own results or those of the children:
    for them `read:results` is needed.
    """
    roles = {role["id"]: role["permissions"] for role in facts["roles"]}
    needed: set[str] = set()
    for user in facts["users"]:
        needed.update(*(roles.get(role, ()) for role in user["roles"]))
        if user["is_kin"]:
            needed.add(Permission.RESULTS_READ)
    principal.require(needed, _PURPOSE)
