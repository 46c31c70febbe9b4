"""Sessions of people: opened by a sign-in, listed, ended."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import orjson
from sqlalchemy import delete, select

from school_service.auth.principal import Principal
from school_service.core.database import db, registry_connection, request_context
from school_service.core.errors import NotFound
from school_service.core.narrowing import judged_before
from school_service.core.statements import stored_in
from school_service.features.people.access import require_to_change
from school_service.features.people.models import USER_AGENT_LENGTH, User, UserSession
from school_service.features.people.users.service import SignedIn, audit_sign_in, get_user
from school_service.features.sign_in.grants import ENDED, audit_end
from school_service.features.sign_in.pages.requests import AuthorizationRequest
from school_service.features.sign_in.secrets import new_code, stored_hash
from tenants.clock import now
from tenants.registry.sign_in import PeoplesClient, find_names

CODE_LIFETIME = timedelta(seconds=60)
SWEPT_AT_ONCE = 20
"""Expired sessions of a school for a sign-in to delete, at most."""

# Nothing reads the row before its code is exchanged: so it goes out with COMMIT.
_OPEN = """
DELETE FROM {user_sessions} WHERE id IN (
    SELECT id FROM {user_sessions} WHERE idle_until < %(session_created_at)s
    ORDER BY idle_until LIMIT %(session_swept)s FOR UPDATE SKIP LOCKED
);
INSERT INTO {user_sessions} (
    id, handle, user_id, client_id, client_session_number, session_number, scope, permissions, redirect_uri, nonce,
    code_hash, code_challenge, code_used, created_at, last_used_at, idle_until, expires_at, address, user_agent
) VALUES (
    %(session_id)s, %(session_handle)s, %(session_user_id)s, %(session_client_id)s, %(session_client_session)s,
    %(session_number)s, %(session_scope)s, %(session_permissions)s::jsonb, %(session_redirect_uri)s,
    %(session_nonce)s, %(session_code_hash)s, %(session_code_challenge)s, false, %(session_created_at)s,
    %(session_created_at)s, %(session_expires_at)s, %(session_expires_at)s, %(session_address)s::inet,
    %(session_user_agent)s
)
"""


@dataclass(frozen=True, slots=True)
class NewSession:
    """A session to open for a person: a client's request as far as the session keeps it, and the browser's name."""

    client: PeoplesClient
    asked: AuthorizationRequest
    redirect_uri: str
    user_agent: str


def open_session(user: SignedIn | User, session: NewSession) -> str:
    """Open a session for a user just signed in by a client; returns the code for the client to exchange.

    In the transaction of the sign-in, and without a round trip: its rows go out with COMMIT, with the entry of the
    sign-in in the audit log. A few expired sessions of the school are deleted.
    """
    context, moment, asked = request_context(), now(), session.asked
    code, session_id = new_code(context.school_id), uuid4()
    values: dict[str, Any] = {
        "id": session_id,
        "handle": uuid4(),
        "user_id": user.id,
        "client_id": session.client.id,
        "client_session": session.client.session_number,
        "number": user.session_number,
        "scope": " ".join([*asked.scopes, *(asked.permissions or ())]),
        "permissions": None
        if asked.permissions is None
        else orjson.dumps(sorted(asked.permissions)).decode(),
        "redirect_uri": session.redirect_uri,
        "nonce": asked.nonce,
        "code_hash": stored_hash(code),
        "code_challenge": asked.code_challenge,
        "created_at": moment,
        "expires_at": moment + CODE_LIFETIME,
        "address": context.address,
        "user_agent": _browser_name(session.user_agent),
        "swept": SWEPT_AT_ONCE,
    }
    sql = _OPEN.format(user_sessions=stored_in(UserSession.__tablename__))
    context.with_commit.append((sql, {f"session_{name}": value for name, value in values.items()}))
    audit_sign_in(user, client=session.client.id, session=session_id)
    return code


def sessions_of(
    *, user_id: UUID, principal: Callable[[], Principal], current: UUID | None
) -> list[dict[str, Any]]:
    """List the sessions of a user still going on, the latest used first; `current`: the session of the request's token.

    One's own, or those of a user without any permission the principal lacks. The principal is asked for once a
    transaction has begun. Raises NotFound, Forbidden.
    """
    user = _user(user_id, principal, "Seeing this user's sessions")
    going_on = (
        select(UserSession).where(*_going_on(user)).order_by(UserSession.last_used_at.desc(), UserSession.id)
    )
    sessions = db.session.scalars(judged_before(going_on)).all()
    if not sessions:
        return []
    with registry_connection() as connection:
        clients = find_names(connection, {session.client_id for session in sessions})
    return [
        {
            "id": session.id,
            "client": session.client_id,
            "client_name": clients[session.client_id].name,
            "created_at": session.created_at,
            "last_used_at": session.last_used_at,
            "expires_at": session.expires_at,
            "address": session.address and str(session.address),
            "user_agent": session.user_agent,
            "current": session.id == current,
        }
        for session in sessions
        if session.client_id in clients
        and clients[session.client_id].session_number == session.client_session_number
    ]


def end_session(*, user_id: UUID, session_id: UUID, principal: Principal) -> UUID:
    """End a session of a user: its refresh token and its access tokens are refused from now on.

    One's own, or a session of a user without any permission the principal lacks. Raises NotFound, Forbidden.
    """
    user = _user(user_id, lambda: principal, "Ending this user's session")
    client_id = db.session.scalar(
        delete(UserSession)
        .where(UserSession.id == session_id, *_going_on(user))
        .returning(UserSession.client_id)
    )
    if client_id is None:
        raise NotFound("No such session.")
    audit_end(user.id, session_id, client_id, ENDED)
    return session_id


def _user(user_id: UUID, principal: Callable[[], Principal], purpose: str) -> User:
    """Find a user, with sessions for the principal to see and end; raises NotFound, Forbidden."""
    user = get_user(user_id)
    require_to_change(principal(), user.id, purpose)
    return user


def _going_on(user: User) -> list[Any]:
    """Write the conditions of a user's sessions still going on, as far as the school knows."""
    return [
        UserSession.user_id == user.id,
        UserSession.code_used,
        UserSession.session_number == user.session_number,
        UserSession.idle_until > now(),
    ]


def _browser_name(user_agent: str) -> str | None:
    """Keep the storable and printable letters of a browser's name."""
    return "".join(letter for letter in user_agent if letter.isprintable())[:USER_AGENT_LENGTH] or None
