"""The hash of a username that somebody tried to sign in with, for logs.

It may be a password, typed into the wrong field: so it is never written down itself. The hash is keyed, so that nobody
who has the logs alone can try usernames on it, and the same for the same name in all logs of a school.
"""

from __future__ import annotations

import hashlib
import hmac
import unicodedata

from school_service.auth.signing_key import SigningKey

_PURPOSE = "attempted username"
LENGTH = 32  # hex digits


def hash_username(key: SigningKey, realm: str, username: str) -> str:
    """Hash a username of a realm, a school's id or the token endpoint; without regard to case and form (NFKC).

    With another signing key the hashes are others.
    """
    name = unicodedata.normalize("NFKC", username).casefold()
    message = f"{realm}\n{name}".encode("utf-8", "surrogatepass")
    return hmac.new(key.derive(_PURPOSE), message, hashlib.sha256).hexdigest()[:LENGTH]
