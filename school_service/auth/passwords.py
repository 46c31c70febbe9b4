"""Passwords: the policy of good ones; hashed with Argon2id (RFC 9106); checked with the same work for all users."""

from __future__ import annotations

import os
import secrets
import unicodedata
from collections.abc import Callable
from functools import cache, lru_cache
from typing import TypeVar

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError
from flask import Flask, current_app

from school_service.core.database import registry_connection
from school_service.core.errors import Invalid
from school_service.core.priority import give_way
from school_service.core.shares import Shares
from school_service.core.texts import casefolded
from tenants.names import is_too_long
from tenants.registry.schools import STRICT_PASSWORDS, password_policy
from tenants.tenancy import MAX_PASSWORD_LENGTH

MIN_LENGTH = 10
"""The fewest characters of a password under the strict policy."""
MIN_WORD = 4
"""The fewest letters of a common password, word or name to look for in a longer password."""
_STRICT = "STRICT_PASSWORDS"

Answer = TypeVar("Answer")

# A cost that OWASP's Password Storage Cheat Sheet recommends: 46 MiB, one pass, one lane. More lanes would
# take the processors from other requests; the default costs three times as much of them.
hasher = PasswordHasher(time_cost=1, memory_cost=46 * 1024, parallelism=1)


def configure(app: Flask, policy: str | None) -> None:
    """Set the policy for new passwords of an application; None: the policy named by the registry."""
    app.config[_STRICT] = None if policy is None else policy == STRICT_PASSWORDS
    if app.config[_STRICT]:
        _load()


def is_strict() -> bool:
    """Tell whether the application takes new passwords of the strict policy alone.

    Unless a setting says it, the registry is asked, once in the life of an application. Raises NotInstalled.
    """
    strict: bool | None = current_app.config[_STRICT]
    if strict is None:
        with registry_connection() as connection:
            strict = current_app.config[_STRICT] = password_policy(connection) == STRICT_PASSWORDS
        if strict:
            _load()
    return strict


def _load() -> None:
    """Read the lists now, and not in the first request with a need of them."""
    _common_passwords()
    _common_words()


def hash_new_password(password: str, *, username: str) -> str:
    """Hash the password of a user from now on; raises Invalid if the policy refuses it."""
    faults = password_faults(password, username=username)
    if faults:
        raise Invalid(f"password: {'; '.join(faults)}", {"password": faults})
    return hash_password(password)


def password_faults(password: str, *, username: str) -> list[str]:
    """Say the faults of a new password by the application's policy: nothing if it takes any."""
    return strict_faults(password, username=username) if is_strict() else []


def strict_faults(password: str, *, username: str) -> list[str]:
    """Say the faults of a new password by the strict policy; nothing if it is good enough.

    MIN_LENGTH characters in normal form NFC; not one of the most common, and neither a common password, word or name
    nor the username, with digits and signs alone added to it; all regardless of case and form.
    """
    faults = []
    may_be_short = not is_too_long(password, MIN_LENGTH - 1)
    if may_be_short and len(unicodedata.normalize("NFC", password)) < MIN_LENGTH:
        faults.append(f"must have at least {MIN_LENGTH} characters")
    folded = casefolded(password, MAX_PASSWORD_LENGTH)
    if folded in _common_passwords():
        faults.append("is one of the most common passwords")
    name = casefolded(username)
    if name and name in folded and not any(letter.isalpha() for letter in folded.replace(name, "", 1)):
        faults.append("must be more than the username")
    if not faults and _is_common_word(folded):
        faults.append("must be more than a common password, word or name")
    return faults


def _is_common_word(folded: str) -> bool:
    """Tell whether a password is a common password, word or name, or such with digits and signs alone around it."""
    first = next((place for place, letter in enumerate(folded) if letter.isalpha()), 0)
    last = next((place for place, letter in enumerate(reversed(folded)) if letter.isalpha()), 0)
    word = folded[first : len(folded) - last]
    return len(word) >= MIN_WORD and word in _common_words()


@cache
def _common_passwords() -> frozenset[str]:
    """The 30,000 most common passwords, in lower case."""
    # Imported where it is needed: it takes 13 MB and a fifth of a second, and where any password will do nobody asks.
    from zxcvbn.frequency_lists import FREQUENCY_LISTS

    return frozenset(FREQUENCY_LISTS["passwords"])


@cache
def _common_words() -> frozenset[str]:
    """The most common passwords, English words, words of films, first names and surnames, some 75,000."""
    from zxcvbn.frequency_lists import FREQUENCY_LISTS

    return frozenset().union(*FREQUENCY_LISTS.values())


# Half of the processors are left to other requests. Some hundred hashes can be waited for within the patience.
_turns = Shares(
    max(1, (os.cpu_count() or 2) // 2), waiting=500, patience=5.0, name="hashing", of_machine=True
)


def _in_turn(work: Callable[[], Answer]) -> Answer:
    """Hash something when the turn comes, at a lower priority: a hash takes a processor for 50 ms. Raises Busy."""
    with _turns.of("hash"):
        return give_way(work)


def hash_password(password: str) -> str:
    """Hash a password, with a salt of its own; the password policy is not asked.

    Raises Busy while too many are being hashed.
    """
    return _in_turn(lambda: hasher.hash(password))


def check_password(stored: str | None, password: str) -> bool:
    """Tell whether the password is the one of the stored hash.

    If the hash is None (no such user, or no password set), the same work is done, so nobody can tell from the time.
    Raises Busy while too many are being hashed.
    """
    try:
        _in_turn(lambda: hasher.verify(stored or _dummy_hash(hasher), password))
    except (VerificationError, InvalidHashError):
        return False
    return stored is not None


def needs_rehash(stored: str) -> bool:
    """Tell whether a hash was made at another cost than the present one."""
    return hasher.check_needs_rehash(stored)


@lru_cache(maxsize=1)
def _dummy_hash(current: PasswordHasher) -> str:
    # Made by the present hasher, since checking a hash costs as much as making it: so it takes as long as a real one.
    return current.hash(secrets.token_urlsafe())
