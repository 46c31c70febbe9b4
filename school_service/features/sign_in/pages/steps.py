"""The hidden value by which the page of the new password knows that the old one was right, a moment ago."""

from __future__ import annotations

import hashlib
import hmac
import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from dataclasses import asdict, dataclass
from uuid import UUID

from school_service.auth.signing_key import SigningKey, SigningKeys

LIFETIME = 600
"""Seconds that a person has for choosing a password."""
_PURPOSE = "step of signing in"


@dataclass(frozen=True, slots=True)
class Step:
    """Who has given the right password, where, and by which client.

    The user's `session_number` rises with the new password: so a value is good for one.
    """

    user_id: UUID
    school_id: UUID
    session_number: int
    client_id: str


def sign_step(keys: SigningKeys, step: Step, *, at: float) -> str:
    """Write the value; `at`: seconds since 1970."""
    members = {**asdict(step), "until": at + LIFETIME}
    content = urlsafe_b64encode(json.dumps(members, default=str).encode()).rstrip(b"=")
    return f"{content.decode()}.{_signature(keys.signing, content)}"


def read_step(keys: SigningKeys, value: str, *, at: float) -> Step | None:
    """Read a value; None where it was not signed here, with any of the keys, or is too old."""
    text, _, signature = value.partition(".")
    content = text.encode(errors="replace")
    given = signature.encode(errors="replace")
    if not any(hmac.compare_digest(_signature(key, content).encode(), given) for key in keys.keys):
        return None
    members = json.loads(urlsafe_b64decode(content + b"=" * (-len(content) % 4)))
    if at > members["until"]:
        return None
    return Step(
        UUID(members["user_id"]),
        UUID(members["school_id"]),
        members["session_number"],
        members["client_id"],
    )


def _signature(key: SigningKey, content: bytes) -> str:
    return hmac.new(key.derive(_PURPOSE), content, hashlib.sha256).hexdigest()
