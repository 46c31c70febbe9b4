"""ID tokens: a client's information on the person signed in by it (OpenID Connect Core, section 2).

Their issuer is the address of the sign-in pages, the issuer of access tokens is the installation: neither passes for
the other.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import jwt

from school_service.auth.signing_key import SigningKey, SigningKeys

LIFETIME = 3600  # seconds
MAX_HINT_LENGTH = 8192  # characters


@dataclass(frozen=True, slots=True)
class Hint:
    """The content of an ID token signed by us: its client, and the user, school and session of the sign-in."""

    client_id: str
    user_id: UUID
    school_id: UUID
    session_id: UUID


def issue_id_token(key: SigningKey, claims: Mapping[str, Any], *, issuer: str, at: int) -> str:
    """Sign an ID token, issued at a moment (seconds since 1970)."""
    content = {"iss": issuer, **claims, "iat": at, "exp": at + LIFETIME}
    return jwt.encode(content, key.private, key.algorithm, headers={"kid": key.key_id})


def read_hint(keys: SigningKeys, token: str, *, issuer: str) -> Hint | None:
    """Read an ID token of ours, expired or not; None for any other text."""
    if len(token) > MAX_HINT_LENGTH or "=" in token:
        return None
    try:
        header = jwt.get_unverified_header(token)
        key = keys.find(header.get("kid"), header.get("alg"))
        if key is None:
            return None
        claims = jwt.decode(
            token,
            key.private.public_key(),
            algorithms=[key.algorithm],
            issuer=issuer,
            options={
                "require": ["iss", "sub", "aud", "sid", "school_id"],
                "verify_aud": False,
                "verify_exp": False,
            },
        )
        return Hint(str(claims["aud"]), UUID(claims["sub"]), UUID(claims["school_id"]), UUID(claims["sid"]))
    except (jwt.PyJWTError, ValueError, TypeError, AttributeError, RecursionError):
        return None
