"""Passwords: hashed with Argon2id (RFC 9106), checked with the same work for known and unknown users."""

from __future__ import annotations

import secrets
from functools import lru_cache

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError

# A cost that OWASP's Password Storage Cheat Sheet recommends: 46 MiB, one pass, one lane. More lanes would
# take the processors from other requests; the default costs three times as much of them.
hasher = PasswordHasher(time_cost=1, memory_cost=46 * 1024, parallelism=1)


def hash_password(password: str) -> str:
    """Hash a password, with a salt of its own."""
    return hasher.hash(password)


def check_password(kept: str | None, password: str) -> bool:
    """Tell whether this is the password of the kept hash.

    None (no such user, no password set) costs the same work.
    """
    try:
        hasher.verify(kept or _nobodys_hash(hasher), password)
    except (VerificationError, InvalidHashError):
        return False
    return kept is not None


def needs_rehash(kept: str) -> bool:
    """Tell whether a hash was made at another cost than the present one."""
    return hasher.check_needs_rehash(kept)


@lru_cache(maxsize=1)
def _nobodys_hash(present: PasswordHasher) -> str:
    # Made by the present hasher: a hash carries its cost, and for nobody it must be that of the others.
    return present.hash(secrets.token_urlsafe())
