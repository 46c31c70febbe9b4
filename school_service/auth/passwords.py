"""Passwords: hashed with Argon2id (RFC 9106), checked in equal time for known and unknown users."""

from __future__ import annotations

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError

hasher = PasswordHasher()
_nobody = hasher.hash("the password of nobody")


def hash_password(password: str) -> str:
    """Hash a password, with a salt of its own."""
    return hasher.hash(password)


def check_password(kept: str | None, password: str) -> bool:
    """Tell whether this is the password of the kept hash; None (no such user, no password set) costs the same time."""
    try:
        hasher.verify(kept or _nobody, password)
    except (VerificationError, InvalidHashError):
        return False
    return kept is not None
