"""Photos of users: each upload is made anew before it is kept."""

from __future__ import annotations

from base64 import b64encode
from dataclasses import replace
from functools import partial
from hashlib import sha256
from uuid import UUID

from school_service.auth.principal import Principal
from school_service.core.database import outside_transaction, request_context
from school_service.core.errors import Invalid, NotFound
from school_service.core.read_models import BoundQuery
from school_service.core.records import change
from school_service.core.statements import in_one_round_trip, put_row
from school_service.features.audit.service import audit_change
from school_service.features.people.access import require_to_change
from school_service.features.people.models import User, UserPhoto
from school_service.features.people.users.reads import user as read_user
from school_service.features.people.users.service import ENTITY, get_user
from school_service.features.photos import reads
from school_service.printing.picture_format import PictureLimits, read_format
from school_service.printing.printers import NotPrinted, print_paper

MOST_BYTES = 8 * 1024 * 1024
MAKE_SMALLER = "Make it smaller in the gallery of the telephone: 1,000 pixels wide are more than enough."
LIMITS = PictureLimits(
    least=64,
    most=8_000,
    most_in_all=24_000_000,
    make_smaller=MAKE_SMALLER,
    make_larger="Take it again, some 500 pixels wide.",
)
# The photo of a narrow picture has sides of a few pixels.
_MADE = replace(LIMITS, least=1)
_DIGITS = 12  # of the hash, in the column of the user and in the address


def put_photo(*, user_id: UUID, content: bytes, principal: Principal) -> BoundQuery:
    """Set the photo of a user: a JPEG or PNG within LIMITS, made anew by a printer, without a connection.

    Returns the read model of the user, stored in the same round trip; the same photo again changes nothing. Raises
    NotFound, Forbidden if the user may do more, Invalid for another file, and Busy if no printer is free in time, or it
    hangs.
    """
    _account(user_id, principal)
    read_format(content, LIMITS)
    image = outside_transaction(partial(_make, content, request_context().school_id))
    made = read_format(image, _MADE)
    digest = sha256(image).hexdigest()
    account = _account(user_id, principal, for_update=True)
    if not change(account, {"photo": digest[:_DIGITS]})[1]:
        return read_user(user_id)
    audit_change(ENTITY, user_id, old={}, new={"photo": "set"})
    photo = put_row(
        UserPhoto,
        "user_id",
        user_id=user_id,
        image=image,
        width=made.width,
        height=made.height,
        sha256=digest,
    )
    return in_one_round_trip(photo, read=read_user(user_id))


def delete_photo(*, user_id: UUID, principal: Principal) -> BoundQuery:
    """Take the photo of a user away; returns the read model of the user. Raises NotFound, Forbidden."""
    account = _account(user_id, principal, for_update=True)
    if account.photo is None:
        raise NotFound("The user has no photo.")
    change(account, {"photo": None})
    audit_change(ENTITY, user_id, old={}, new={"photo": "removed"})
    return in_one_round_trip(reads.delete_photo(user_id), read=read_user(user_id))


def _account(user_id: UUID, principal: Principal, *, for_update: bool = False) -> User:
    account = get_user(user_id, for_update=for_update)
    require_to_change(principal, user_id, "Changing this user's photo")
    return account


def _make(content: bytes, school_id: UUID) -> bytes:
    task = {"paper": "photo", "picture": b64encode(content).decode(), "most_pixels": LIMITS.most_in_all}
    try:
        return print_paper(task, school_id)
    except NotPrinted:
        raise Invalid("The image can't be read: it is broken, or of a form that is not known.") from None
