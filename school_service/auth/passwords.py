"""Passwords: which are good enough; hashed with Argon2id (RFC 9106); checked with the same work for all users."""

from __future__ import annotations

import os
import secrets
import unicodedata
from functools import cache, lru_cache

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError
from flask import Flask, current_app

from school_service.core.database import db
from school_service.core.errors import Invalid
from school_service.core.shares import Shares
from school_service.core.texts import casefolded
from tenants.registry.schools import STRICT_PASSWORDS, password_policy

MIN_LENGTH = 10
"""The fewest characters of a password under the strict policy."""
MOST_GUESSES = 10**7
"""A password that is found by fewer guesses is refused under the strict policy: many more than an attacker has who is
let in some ten times a minute."""
MAX_GUESSED = 40
"""Characters of the longest password that zxcvbn is asked about; its time grows with the square of the length."""
_STRICT = "STRICT_PASSWORDS"

# A cost that OWASP's Password Storage Cheat Sheet recommends: 46 MiB, one pass, one lane. More lanes would
# take the processors from other requests; the default costs three times as much of them.
hasher = PasswordHasher(time_cost=1, memory_cost=46 * 1024, parallelism=1)


def configure(app: Flask, policy: str | None) -> None:
    """Set which new passwords an application takes: those of a policy; None: of the one that the registry names."""
    app.config[_STRICT] = None if policy is None else policy == STRICT_PASSWORDS
    if app.config[_STRICT]:
        _common_passwords()  # now, and not in the first request that needs them


def is_strict() -> bool:
    """Tell whether the application takes new passwords of the strict policy alone.

    Where no setting says it, the registry is asked, once in the life of an application. Raises NotInstalled.
    """
    strict: bool | None = current_app.config[_STRICT]
    if strict is None:
        with db.engines["registry"].connect() as connection:
            strict = current_app.config[_STRICT] = password_policy(connection) == STRICT_PASSWORDS
    return strict


def hash_new_password(password: str, *, username: str) -> str:
    """Hash a password that a user is to have from now on; raises Invalid where the policy refuses it."""
    faults = password_faults(password, username=username)
    if faults:
        raise Invalid(f"password: {'; '.join(faults)}", {"password": faults})
    return hash_password(password)


def password_faults(password: str, *, username: str) -> list[str]:
    """Say what the application's policy misses in a new password: nothing where it takes any."""
    return strict_faults(password, username=username) if is_strict() else []


def strict_faults(password: str, *, username: str) -> list[str]:
    """Say what the strict policy misses in a new password; nothing where it is good enough.

    MIN_LENGTH characters in normal form NFC; not one of the most common, nor made of such as zxcvbn finds them with
    fewer than MOST_GUESSES; not the username, whatever their case and form, nor the username with digits and signs
    alone added to it.
    """
    faults = []
    if len(unicodedata.normalize("NFC", password)) < MIN_LENGTH:
        faults.append(f"must have at least {MIN_LENGTH} characters")
    folded = casefolded(password)
    if folded in _common_passwords():
        faults.append("is one of the most common passwords")
    elif not faults and _is_easily_guessed(folded):
        faults.append(
            "is easily guessed: it is made of common passwords, names, words, dates or rows of keys"
        )
    name = casefolded(username)
    if name and name in folded and not any(letter.isalpha() for letter in folded.replace(name, "", 1)):
        faults.append("must be more than the username")
    return faults


def _is_easily_guessed(folded: str) -> bool:
    """Tell whether a password is made of common ones, names, words, dates and rows of keys, so that it is soon found.

    What repeats one part alone is left to its length: it is long by choice, and in many writings all that zxcvbn sees.
    """
    if len(folded) > MAX_GUESSED:
        return False
    # Imported where it is needed: see below.
    from zxcvbn import zxcvbn

    found = zxcvbn(folded)
    return found["guesses"] < MOST_GUESSES and [part["pattern"] for part in found["sequence"]] != ["repeat"]


@cache
def _common_passwords() -> frozenset[str]:
    """The 30,000 most common passwords, in lower case."""
    # Imported where it is needed: it takes 13 MB and a fifth of a second, and where any password will do nobody asks.
    from zxcvbn.frequency_lists import FREQUENCY_LISTS

    return frozenset(FREQUENCY_LISTS["passwords"])


# Half of the processors are left to other requests. Some hundred hashes can be waited for within the patience.
_turns = Shares(max(1, (os.cpu_count() or 2) // 2), waiting=500, patience=5.0)


def hash_password(password: str) -> str:
    """Hash a password, with a salt of its own; the password policy is not asked.

    Raises Busy where too many are being hashed.
    """
    with _turns.of("hash"):
        return hasher.hash(password)


def check_password(stored: str | None, password: str) -> bool:
    """Tell whether the password is the one of the stored hash.

    Where the hash is None (no such user, or no password set), the same work is done, so that nobody can tell from the
    time. Raises Busy where too many are being hashed.
    """
    try:
        with _turns.of("hash"):
            hasher.verify(stored or _dummy_hash(hasher), password)
    except (VerificationError, InvalidHashError):
        return False
    return stored is not None


def needs_rehash(stored: str) -> bool:
    """Tell whether a hash was made at another cost than the present one."""
    return hasher.check_needs_rehash(stored)


@lru_cache(maxsize=1)
def _dummy_hash(current: PasswordHasher) -> str:
    # Made by the present hasher, since checking a hash costs what making it cost: so it takes as long as a real one.
    return current.hash(secrets.token_urlsafe())
