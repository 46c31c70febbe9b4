"""The hidden value of a page for a new password: it proves the right old password, or code, of a moment ago."""

from __future__ import annotations

import hashlib
import hmac
import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from dataclasses import asdict, dataclass
from typing import ClassVar, TypeVar
from uuid import UUID

from school_service.auth.signing_key import SigningKey, SigningKeys

LIFETIME = 600
"""A person's seconds for choosing a password."""


@dataclass(frozen=True, slots=True)
class Step:
    """A person with the right password, their school, and the client.

    The user's `session_number` rises with the new password: so a value is good for one.
    """

    PURPOSE: ClassVar[str] = "step of signing in"

    user_id: UUID
    school_id: UUID
    session_number: int
    client_id: str


@dataclass(frozen=True, slots=True)
class CodeStep:
    """A person with the right code of an invitation, at a school, and its hash; likewise good for one new password."""

    PURPOSE: ClassVar[str] = "step of taking an invitation"

    user_id: UUID
    school_id: UUID
    session_number: int
    code_hash: str


Kind = TypeVar("Kind", Step, CodeStep)


def sign_step(keys: SigningKeys, step: Step | CodeStep, *, at: float) -> str:
    """Write the value; `at`: seconds since 1970."""
    members = {**asdict(step), "until": at + LIFETIME}
    content = urlsafe_b64encode(json.dumps(members, default=str).encode()).rstrip(b"=")
    return f"{content.decode()}.{_signature(keys.signing, content, step.PURPOSE)}"


def read_step(keys: SigningKeys, value: str, kind: type[Kind], *, at: float) -> Kind | None:
    """Read a value of a kind; None unless it was signed here as such, with any of the keys, and is not too old."""
    text, _, signature = value.partition(".")
    content = text.encode(errors="replace")
    given = signature.encode(errors="replace")
    if not any(
        hmac.compare_digest(_signature(key, content, kind.PURPOSE).encode(), given) for key in keys.keys
    ):
        return None
    members = json.loads(urlsafe_b64decode(content + b"=" * (-len(content) % 4)))
    if at > members.pop("until"):
        return None
    ids = {name: UUID(members[name]) for name in ("user_id", "school_id")}
    return kind(**{**members, **ids})


def _signature(key: SigningKey, content: bytes, purpose: str) -> str:
    return hmac.new(key.derive(purpose), content, hashlib.sha256).hexdigest()
