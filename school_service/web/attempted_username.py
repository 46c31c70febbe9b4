"""The username of an attempt to sign in, as the logs have it."""

from __future__ import annotations

from flask import g

from school_service.auth.username_hash import hash_username
from school_service.web.request_scope import app_state


def attempted_username(realm: str, username: str) -> str:
    """Hash the username of an attempt to sign in, and let the access log have it; realm as in LoginThrottle."""
    hashed = hash_username(app_state().verifier.key, realm, username)
    g.username_hash = hashed
    return hashed
