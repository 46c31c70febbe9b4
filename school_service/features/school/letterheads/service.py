"""The letterhead of a school, and its pictures, each proved by printing it once."""

from __future__ import annotations

from base64 import b64encode
from functools import partial
from hashlib import sha256
from typing import Any
from uuid import UUID

from school_service.core.database import outside_transaction, request_context
from school_service.core.errors import Invalid, NotFound
from school_service.core.read_models import BoundQuery, fetch_row
from school_service.core.statements import execute, in_one_round_trip, new_row, put_row
from school_service.features.audit.service import audit_change
from school_service.features.school.letterheads import reads
from school_service.features.school.models import (
    LEAST_PIXELS,
    LETTERHEAD_TEXTS,
    MOST_PIXELS,
    Letterhead,
    Picture,
)
from school_service.features.school.settings.service import lock_settings
from school_service.printing.picture_format import JPEG, PNG, PictureLimits, read_format
from school_service.printing.printers import NotPrinted, print_paper

ENTITY = "letterhead"
HIDDEN = frozenset({"principal_name"})
"""Of a person: the audit log tells of a change without the values."""
MAKE_SMALLER = (
    "Open it in a program for pictures, such as Paint, Preview or the gallery of a telephone, cut off the empty "
    "margin, make it some 600 pixels wide, and save it as JPEG or PNG."
)
LIMITS = PictureLimits(
    least=LEAST_PIXELS,
    most=MOST_PIXELS,
    most_in_all=MOST_PIXELS**2,
    make_smaller=MAKE_SMALLER,
    make_larger="Scan or photograph it again, some 600 pixels wide.",
)

_ENDINGS = {PNG: "png", JPEG: "jpg"}
_COLUMNS = (*LETTERHEAD_TEXTS, "logo_id", "signature_id")


def change_letterhead(**changes: str | None) -> BoundQuery:
    """Change any text of the letterhead; None takes it back.

    Returns its read model; the changes are stored in the round trip of its read.
    """
    stored = _lock()
    changed = {name: value for name, value in changes.items() if value != stored[name]}
    if not changed:
        return reads.letterhead()
    hidden = sorted(HIDDEN & changed.keys())
    audit_change(
        ENTITY,
        request_context().school_id,
        old={name: stored[name] for name in changed.keys() - HIDDEN},
        new={name: changed[name] for name in changed.keys() - HIDDEN}
        | ({"changed": hidden} if hidden else {}),
    )
    return in_one_round_trip(_letterhead({**stored, **changed}), read=reads.letterhead())


def read_picture(which: str) -> tuple[str, bytes]:
    """Read the logo or the signature: a name for the file, and its bytes. Raises NotFound."""
    picture = fetch_row(reads.PICTURES[which]())
    if picture is None:
        raise _no_picture(which)
    return f"{which}.{_ENDINGS[picture['media_type']]}", bytes(picture["image"])


def put_picture(which: str, *, content: bytes) -> BoundQuery:
    """Set the logo or the signature: a printable PNG or JPEG from 16 to 2,000 pixels a side.

    It is printed once, without a connection. A picture is known by its hash and never changes; the one before goes,
    unless a publication names it. Returns the read model of the letterhead; the picture is stored in the round trip of
    its read. Raises Invalid for another file, and Busy if no printer is free in time.
    """
    about = read_format(content, LIMITS)
    outside_transaction(partial(_prove, content, request_context().school_id))
    digest = sha256(content).hexdigest()
    stored = _lock(digest)
    if stored[which] == digest:
        return reads.letterhead()
    picture = new_row(
        Picture,
        **{} if stored["picture_id"] is None else {"id": stored["picture_id"]},
        sha256=digest,
        media_type=about.media_type,
        width=about.width,
        height=about.height,
        image=content,
    )
    audit_change(ENTITY, request_context().school_id, old={which: stored[which]}, new={which: digest})
    ahead = [picture] if stored["picture_id"] is None else []
    return in_one_round_trip(*ahead, *_replacing(which, stored, picture.id), read=reads.letterhead())


def delete_picture(which: str) -> BoundQuery:
    """Take the logo or the signature away; returns the read model of the letterhead. Raises NotFound."""
    stored = _lock()
    if stored[which] is None:
        raise _no_picture(which)
    audit_change(ENTITY, request_context().school_id, old={which: stored[which]}, new={which: None})
    return in_one_round_trip(*_replacing(which, stored, None), read=reads.letterhead())


def _lock(digest: str | None = None) -> dict[str, Any]:
    """Lock the settings, and read the letterhead as it is then."""
    stored = execute(lock_settings(), reads.stored_letterhead(digest))
    if stored is None:
        raise RuntimeError("A letterhead has a row, whether the school has set any or not.")
    return stored


def _replacing(which: str, stored: dict[str, Any], picture_id: Any) -> list[Any]:
    """Make the statements for naming another picture, or none, and for deleting the former one if nothing names it."""
    before = stored[f"{which}_id"]
    removing = [] if before is None else [reads.delete_unused_picture(before)]
    return [_letterhead({**stored, f"{which}_id": picture_id}), *removing]


def _letterhead(values: dict[str, Any]) -> Any:
    return put_row(Letterhead, "singleton", **{name: values[name] for name in _COLUMNS})


def _prove(content: bytes, school_id: UUID) -> None:
    try:
        print_paper({"paper": "picture", "picture": b64encode(content).decode()}, school_id)
    except NotPrinted:
        raise Invalid("The image can't be printed: it is broken, or of a form that is not known.") from None


def _no_picture(which: str) -> NotFound:
    return NotFound(f"The letterhead has no {which}.")
