"""Sessions as they are stored, for applications by which nobody signs in."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

from sqlalchemy import delete

from school_service.core.database import db
from school_service.features.people.models import (
    BY_EMAIL,
    Invitation,
    User,
    UserIdentity,
    UserPhoto,
    UserSession,
)
from school_service.web.transactions import in_transaction
from tenants.clock import now
from tenants.connections.binding import SchoolBinding


def store_session(school: Any, user_id: str, *, client_id: str = "an-app") -> str:
    """Store a session of a user that goes on; needs an application context. Returns the session's id."""
    moment = now()
    with in_transaction(SchoolBinding(UUID(str(school)))):
        user = db.session.get_one(User, UUID(user_id))
        session = UserSession(
            handle=uuid4(),
            user_id=user.id,
            client_id=client_id,
            client_session_number=0,
            session_number=user.session_number,
            scope="openid read:students",
            permissions=["read:students"],
            redirect_uri="https://app.example.com/back",
            nonce="a nonce",
            code_hash=uuid4().hex,
            code_challenge="x" * 43,
            code_used=True,
            token_hash=uuid4().hex,
            previous_hash=uuid4().hex,
            salt=uuid4().hex,
            rotated_at=moment,
            last_used_at=moment,
            idle_until=moment + timedelta(days=1),
            expires_at=moment + timedelta(days=2),
            address="192.0.2.1",
            user_agent="Firefox-Zxq",
        )
        db.session.add(session)
        db.session.flush()
        return str(session.id)


def store_identity(school: Any, user_id: str) -> str:
    """Link an account to an identity of its own; needs an application context. Returns the link's id."""
    with in_transaction(SchoolBinding(UUID(str(school)))):
        link = UserIdentity(
            user_id=UUID(user_id),
            issuer="https://id.example.com",
            subject=f"zxq {uuid4()}",
            way=BY_EMAIL,
            created_by=user_id,
            created_by_name="Ada Zxq",
        )
        db.session.add(link)
        db.session.flush()
        return str(link.id)


def store_invitation(school: Any, user_id: str) -> str:
    """Store an open invitation of a user, in place of another; needs an application context. Returns its id."""
    with in_transaction(SchoolBinding(UUID(str(school)))):
        db.session.execute(delete(Invitation).where(Invitation.user_id == UUID(user_id)))
        invited = Invitation(
            user_id=UUID(user_id),
            code_hash=uuid4().hex,
            email="ada.zxq@example.com",
            expires_at=now() + timedelta(days=1),
            created_by=user_id,
            created_by_name="Ada Zxq",
        )
        db.session.add(invited)
        db.session.flush()
        return str(invited.id)


def store_ways_in(school: Any, user_id: str, *, invitation: bool = True) -> None:
    """Store an identity, an open invitation and a photo of a user; needs an application context."""
    store_identity(school, user_id)
    if invitation:
        store_invitation(school, user_id)
    with in_transaction(SchoolBinding(UUID(str(school)))):
        account = UUID(user_id)
        photo = UserPhoto(
            user_id=account, image=b"\xff\xd8 zxq" * 20, width=480, height=600, sha256=uuid4().hex * 2
        )
        db.session.add(photo)
        db.session.get_one(User, account).photo = photo.sha256[:12]
