"""Codes of invitations: 60 random bits in Crockford's base32, as a person reads, types and says them."""

from __future__ import annotations

import hmac
import re
import secrets
from collections.abc import Callable

from school_service.auth.signing_key import SigningKeys
from tenants.names import is_too_long

_DIGITS = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"  # without I, L, O and U
_LENGTH, _GROUP = 12, 4
MOST_TYPED = 64
"""The most characters of a typed code, with the spaces and hyphens in it."""
_READ_AS = str.maketrans("OIL", "011")
_BETWEEN = re.compile(r"[\s-]++")
_CODE = re.compile(f"[{_DIGITS}]{{{_LENGTH}}}")
_PURPOSE = "invitation"


def new_code() -> str:
    """Draw a code: `K7QM-4TZ9-XDR2`."""
    drawn = secrets.randbits(5 * _LENGTH)
    digits = "".join(_DIGITS[drawn >> 5 * place & 31] for place in range(_LENGTH))
    return "-".join(digits[start : start + _GROUP] for start in range(0, _LENGTH, _GROUP))


def code_hasher(keys: SigningKeys) -> Callable[[str], str]:
    """Make the function for hashing new codes, by the signing key."""
    secret = keys.signing.derive(_PURPOSE)
    return lambda code: _hash(secret, _digits(code))


def code_hashes(text: str, keys: SigningKeys) -> list[str]:
    """Hash a typed code by each of the installation's keys.

    Case, spaces and hyphens make no difference; O is read as 0, I and L as 1. A text of another form has no hash.
    """
    digits = "" if is_too_long(text, MOST_TYPED) else _digits(text)
    if not _CODE.fullmatch(digits):
        return []
    return [_hash(key.derive(_PURPOSE), digits) for key in keys.keys]


def _digits(text: str) -> str:
    return _BETWEEN.sub("", text).upper().translate(_READ_AS)


def _hash(secret: bytes, digits: str) -> str:
    return hmac.digest(secret, digits.encode(), "sha256").hex()
