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


def check_password(stored: str | None, password: str) -> bool:
    """Tell whether this is the password of the stored hash.

    None (no such user, no password set) costs the same work.
    """
    try:
        hasher.verify(stored or _dummy_hash(hasher), password)
    except (VerificationError, InvalidHashError):
        return False
    return stored is not None


def needs_rehash(stored: str) -> bool:
    """Tell whether a hash was made at another cost than the present one."""
    return hasher.check_needs_rehash(stored)


@lru_cache(maxsize=1)
def _dummy_hash(current: PasswordHasher) -> str:
    # Made by the present hasher: a hash carries its cost, which must be that of real hashes.
    return current.hash(secrets.token_urlsafe())
