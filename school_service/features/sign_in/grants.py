"""The exchange of codes and refresh tokens for tokens of people, and the end of their sessions.

Each works in the transaction of a client, with the row of the session locked. The end of a session, because somebody
has a code or token without a right to it, is committed although the answer is a refusal: so it is told by the outcome,
and not by an exception.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import orjson

from school_service.auth.id_tokens import issue_id_token
from school_service.auth.signing_key import SigningKey
from school_service.auth.tokens import issue_session_token
from school_service.core.database import current_session, request_context
from school_service.core.permissions import Permission
from school_service.core.statements import stored_in
from school_service.features.audit.service import audit_change
from school_service.features.people.models import User, UserSession
from school_service.features.sign_in.secrets import (
    RefreshToken,
    is_of_challenge,
    is_of_hash,
    new_refresh_token,
    new_salt,
    stored_hash,
)
from tenants.clock import now
from tenants.connections.statements import write
from tenants.registry.clients import TokenClient

ENTITY = "user-session"
SIGNED_OUT, ENDED, REUSED = "SIGNED_OUT", "ENDED", "REUSED"
"""Why a session was deleted."""
LIFETIME = 3600  # seconds of an access token
REPEATABLE = timedelta(seconds=60)
"""The time for sending a used refresh token again: its answer may have been lost on the way."""
MOST_SESSIONS = 20
"""Of a person; a further one ends the session unused for the longest time."""
SCOPES = ("openid", "profile", "offline_access")
"""Scopes other than permissions."""
CLAIMS = (
    *("iss", "sub", "aud", "exp", "iat", "auth_time", "nonce", "sid", "amr", "school_id"),
    *("name", "given_name", "family_name", "preferred_username"),
)
"""Of an ID token; the last four are those of the scope `profile`."""
PERMISSIONS = frozenset(map(str, Permission))
"""All permissions, by name; each is a scope, too."""

_log = logging.getLogger(__name__)

_FIND = """
SELECT s.*, u.session_number AS user_number, u.deleted_at, u.username, u.first_name, u.last_name
FROM {user_sessions} s JOIN {users} u ON u.id = s.user_id
WHERE s.{key} = %(value)s
FOR NO KEY UPDATE OF s
"""
_DELETE = "DELETE FROM {user_sessions} WHERE id = %(session_id)s"
# Two exchanges of one person wait for each other here, at the very end: each sees the other's session.
_EXCHANGE = """
UPDATE {user_sessions} SET code_used = true, token_hash = %(session_token_hash)s, last_used_at = %(session_at)s,
    idle_until = %(session_idle_until)s, expires_at = %(session_expires_at)s
WHERE id = %(session_id)s;
SELECT pg_advisory_xact_lock(%(session_lock)s);
DELETE FROM {user_sessions} WHERE id IN (
    SELECT id FROM {user_sessions} WHERE user_id = %(session_user_id)s AND code_used
    ORDER BY session_number = %(session_number)s DESC, last_used_at DESC, id OFFSET %(session_most)s
    FOR UPDATE SKIP LOCKED
)
"""
_ROTATE = """
UPDATE {user_sessions} SET previous_hash = token_hash, token_hash = %(session_token_hash)s, salt = %(session_salt)s,
    rotated_at = %(session_at)s, last_used_at = %(session_at)s, idle_until = %(session_idle_until)s
WHERE id = %(session_id)s
"""
_LOWER = """
UPDATE {user_sessions} SET permissions = %(session_permissions)s::jsonb, scope = %(session_scope)s
WHERE id = %(session_id)s
"""


class InvalidScope(Exception):
    """A refresh asks for more than the session has, or a client for more than its grant."""


@dataclass(frozen=True, slots=True)
class Issuer:
    """The signer of the tokens: the address of the sign-in pages, and the key."""

    address: str
    key: SigningKey


def exchange_code(
    code: str, *, client: TokenClient, verifier: str, redirect_uri: str | None, issuer: Issuer
) -> dict[str, Any] | None:
    """Exchange an authorization code for the tokens of its session; None if it is refused.

    A wrong verifier or client uses nothing up. A code used before, with the right verifier, ends its session.
    """
    session = _find("code_hash", stored_hash(code))
    moment = now()
    if session is None or not is_of_challenge(verifier, session["code_challenge"]):
        return None
    if session["code_used"]:
        _end_reused(session, "an authorization code was used again", client)
        return None
    if (
        session["client_id"] != client.id
        or (redirect_uri is not None and redirect_uri != session["redirect_uri"])
        or not _is_alive(session, client, moment)
    ):
        return None
    if not _lower(session, client):
        return None
    expires_at = session["created_at"] + timedelta(days=client.session_days)
    token = new_refresh_token(request_context().school_id, session["handle"])
    values = {
        "token_hash": stored_hash(str(token)),
        "at": moment,
        "idle_until": min(moment + timedelta(days=client.idle_days), expires_at),
        "expires_at": expires_at,
        "lock": _lock_number(session["user_id"]),
        "user_id": session["user_id"],
        "number": session["session_number"],
        "most": MOST_SESSIONS,
    }
    _with_commit(_EXCHANGE, session, values)
    return _answer({**session, **values}, token, issuer, session["scope"].split(), moment)


def refresh(
    token: RefreshToken, *, client: TokenClient, scope: Collection[str] | None, issuer: Issuer
) -> dict[str, Any] | None:
    """Exchange a refresh token for its successor and an access token, with less `scope` if that is given.

    The same token gets the same successor for REPEATABLE. Returns None if it is refused: a token used before, or of
    another client, ends its session, and so does a ceiling leaving nothing of it. Raises InvalidScope.
    """
    session = _find("handle", token.handle)
    moment = now()
    if session is None or not session["code_used"]:
        return None
    if session["client_id"] != client.id:
        _end_reused(session, "a refresh token was used by another client", client)
        return None
    is_newest = is_of_hash(str(token), session["token_hash"])
    if not is_newest and not _may_repeat(session, token, moment):
        _end_reused(session, "a refresh token was used again", client)
        return None
    if not _is_alive(session, client, moment):
        return None
    if not _lower(session, client):
        return None
    granted = _narrowed(session, scope)
    # It is no answer to an authorization request (OpenID Connect Core, section 12.2).
    session["nonce"] = None
    if not is_newest:
        return _answer(session, token.successor(session["salt"]), issuer, granted, moment)
    salt = new_salt()
    successor = token.successor(salt)
    values = {
        "token_hash": stored_hash(str(successor)),
        "salt": salt,
        "at": moment,
        "idle_until": min(moment + timedelta(days=client.idle_days), session["expires_at"]),
    }
    _with_commit(_ROTATE, session, values)
    return _answer({**session, **values}, successor, issuer, granted, moment)


def revoke_refresh_token(token: RefreshToken, client: TokenClient) -> None:
    """End the session of a refresh token of a client; anything else changes nothing (RFC 7009)."""
    session = _find("handle", token.handle)
    if session is None or session["client_id"] != client.id:
        return
    if any(is_of_hash(str(token), session[name]) for name in ("token_hash", "previous_hash")):
        _end(session, SIGNED_OUT)


def revoke_session(session_id: UUID, client: TokenClient) -> None:
    """End a session of a client, known by an access or ID token of it; without a session nothing happens."""
    session = _find("id", session_id)
    if session is not None and session["client_id"] == client.id:
        _end(session, SIGNED_OUT)


def _find(key: str, value: object) -> dict[str, Any] | None:
    """Lock a session, and read the deciding columns of its user; None if there is none."""
    sql = _FIND.format(
        user_sessions=stored_in(UserSession.__tablename__), users=stored_in(User.__tablename__), key=key
    )
    return write(current_session().bound_connection(), sql, {"value": value})


def _is_alive(session: dict[str, Any], client: TokenClient, moment: datetime) -> bool:
    """Tell whether neither time, nor an end of the user's or the client's sessions, has ended this one."""
    return bool(
        moment < session["idle_until"]
        and session["deleted_at"] is None
        and session["session_number"] == session["user_number"]
        and session["client_session_number"] == client.session_number
    )


def _may_repeat(session: dict[str, Any], token: RefreshToken, moment: datetime) -> bool:
    rotated_at = session["rotated_at"]
    return is_of_hash(str(token), session["previous_hash"]) and moment <= rotated_at + REPEATABLE


def _lower(session: dict[str, Any], client: TokenClient) -> bool:
    """Narrow a session to the client's present ceiling, for good; returns whether the session goes on.

    Without any permission left it ends, unless the client is for signing in alone.
    """
    had, ceiling = session["permissions"], client.user_permissions
    left = had
    if ceiling is not None:
        left = sorted(ceiling) if had is None else [name for name in had if name in ceiling]
    if left == [] and ceiling != []:
        _end(session, ENDED)
        return False
    if left != had:
        names = [name for name in session["scope"].split() if name in SCOPES]
        session["permissions"], session["scope"] = left, " ".join([*names, *left])
        stored = {"permissions": orjson.dumps(left).decode(), "scope": session["scope"]}
        _with_commit(_LOWER, session, stored)
    return True


def _narrowed(session: dict[str, Any], scope: Collection[str] | None) -> list[str]:
    """Give the scope of an access token: the asked scope, within the session's; raises InvalidScope."""
    granted: list[str] = session["scope"].split()
    if scope is None:
        return granted
    # Where nothing narrows the roles, each of the permissions was granted.
    within = {*granted, *(PERMISSIONS if session["permissions"] is None else ())}
    if not within.issuperset(scope):
        raise InvalidScope
    asked = [name for name in dict.fromkeys(scope) if name in SCOPES]
    permissions = [name for name in dict.fromkeys(scope) if name not in SCOPES]
    return asked + (permissions or [name for name in granted if name not in SCOPES])


def _answer(
    session: dict[str, Any], token: RefreshToken, issuer: Issuer, scope: list[str], moment: datetime
) -> dict[str, Any]:
    permissions = [name for name in scope if name not in SCOPES]
    narrowed = bool(permissions) or session["permissions"] is not None
    left = int((session["idle_until"] - moment).total_seconds())
    answer = issue_session_token(
        issuer.key,
        session["user_id"],
        token.school_id,
        session_id=session["id"],
        session_number=session["session_number"],
        client_id=session["client_id"],
        client_session=session["client_session_number"],
        scope=" ".join(scope),
        permissions=permissions if narrowed else None,
        lifetime=max(1, min(LIFETIME, left)),
    )
    answer |= {"refresh_token": str(token), "scope": " ".join(scope), "school_id": str(token.school_id)}
    if "openid" in scope:
        answer["id_token"] = issue_id_token(
            issuer.key, _id_claims(session, token, scope), issuer=issuer.address, at=int(time.time())
        )
    return answer


def _id_claims(session: dict[str, Any], token: RefreshToken, scope: Collection[str]) -> dict[str, Any]:
    claims: dict[str, Any] = {
        "sub": str(session["user_id"]),
        "aud": session["client_id"],
        "auth_time": int(session["created_at"].timestamp()),
        "sid": str(session["id"]),
        "amr": ["pwd"],
        "school_id": str(token.school_id),
    }
    if session["nonce"] is not None:
        claims["nonce"] = session["nonce"]
    if "profile" in scope:
        claims |= {
            "name": f"{session['first_name']} {session['last_name']}",
            "given_name": session["first_name"],
            "family_name": session["last_name"],
            "preferred_username": session["username"],
        }
    return claims


def _end(session: dict[str, Any], why: str) -> None:
    _with_commit(_DELETE, session, {})
    audit_end(session["user_id"], session["id"], session["client_id"], why)


def audit_end(user_id: UUID, session_id: UUID, client_id: str, why: str) -> None:
    """Write the deletion of a user's session to the audit log: SIGNED_OUT, ENDED or REUSED."""
    audit_change(ENTITY, user_id, old={"session": session_id, "client": client_id, "ended": why})


def _end_reused(session: dict[str, Any], what: str, client: TokenClient) -> None:
    _end(session, REUSED)
    _log.warning(
        "%s: its session is ended",
        what,
        extra={
            "school": str(request_context().school_id),
            "user": str(session["user_id"]),
            "session": str(session["id"]),
            "client": client.id,
        },
    )


def _with_commit(sql: str, session: dict[str, Any], values: dict[str, Any]) -> None:
    """Let a statement about a locked session go out with COMMIT."""
    named = {f"session_{name}": value for name, value in {**values, "id": session["id"]}.items()}
    text = sql.format(user_sessions=stored_in(UserSession.__tablename__))
    request_context().with_commit.append((text, named))


def _lock_number(user_id: UUID) -> int:
    """Number the advisory lock of a user's sessions."""
    return int.from_bytes(user_id.bytes[:8], "big", signed=True)
