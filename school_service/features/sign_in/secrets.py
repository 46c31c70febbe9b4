"""Authorization codes and refresh tokens: how they are written, read and stored.

Both begin with the school's id, so the token endpoint knows the school without a header; a refresh token also has the
handle of its session. Of either only the SHA-256 is stored: 32 random bytes need no slower hash.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
from dataclasses import dataclass
from uuid import UUID

_CODE, _TOKEN = "ssc_", "ssr_"
_ID, _SECRET = 16, 32  # bytes


@dataclass(frozen=True, slots=True)
class RefreshToken:
    """A refresh token, in its parts."""

    school_id: UUID
    handle: UUID
    secret: bytes

    def __str__(self) -> str:
        return _write(_TOKEN, self.school_id.bytes + self.handle.bytes + self.secret)

    def successor(self, salt: str) -> RefreshToken:
        """Make the next token: this one and the stored salt always make the same one.

        The secret is HMAC-SHA256 of the salt, keyed by this token.
        """
        secret = hmac.new(str(self).encode(), salt.encode(), hashlib.sha256).digest()
        return RefreshToken(self.school_id, self.handle, secret)


def new_code(school_id: UUID) -> str:
    """Make an authorization code for a school."""
    return _write(_CODE, school_id.bytes + secrets.token_bytes(_SECRET))


def new_salt() -> str:
    """Draw the salt for the successor of a refresh token."""
    return secrets.token_hex(_SECRET)


def new_refresh_token(school_id: UUID, handle: UUID) -> RefreshToken:
    """Make the first refresh token of a session."""
    return RefreshToken(school_id, handle, secrets.token_bytes(_SECRET))


def school_of_code(code: str) -> UUID | None:
    """Tell the school of an authorization code; None for any other text."""
    content = _read(_CODE, code, _ID + _SECRET)
    return None if content is None else UUID(bytes=content[:_ID])


def read_refresh_token(token: str) -> RefreshToken | None:
    """Read a refresh token; None for any other text."""
    content = _read(_TOKEN, token, 2 * _ID + _SECRET)
    if content is None:
        return None
    return RefreshToken(UUID(bytes=content[:_ID]), UUID(bytes=content[_ID : 2 * _ID]), content[2 * _ID :])


def stored_hash(secret: str) -> str:
    """Hash a code or a refresh token as it is stored."""
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


def is_of_hash(secret: str, stored: str | None) -> bool:
    """Tell whether a stored hash is of this code or token, in a time independent of their first difference."""
    return stored is not None and hmac.compare_digest(stored_hash(secret), stored)


def is_of_challenge(verifier: str, challenge: str) -> bool:
    """Tell whether a code challenge is of this verifier, by S256 (RFC 7636, section 4.6)."""
    digest = hashlib.sha256(verifier.encode("utf-8", "surrogatepass")).digest()
    return hmac.compare_digest(_encode(digest), challenge)


def _write(prefix: str, content: bytes) -> str:
    return prefix + _encode(content)


def _read(prefix: str, text: str, length: int) -> bytes | None:
    if not text.startswith(prefix) or not text.isascii():
        return None
    encoded = text.removeprefix(prefix)
    try:
        content = base64.urlsafe_b64decode(encoded + "=" * (-len(encoded) % 4))
    except ValueError:
        return None
    # A text that `_encode` writes otherwise has not come from here.
    return content if len(content) == length and _encode(content) == encoded else None


def _encode(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).rstrip(b"=").decode()
