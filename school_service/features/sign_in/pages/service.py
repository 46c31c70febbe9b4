"""The sign-in page's work in a school: the right password opens a session, or has to be changed first."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from school_service.auth.login_throttle import LoginThrottle, WrongCodes
from school_service.core.database import request_context
from school_service.features.invitations import taking
from school_service.features.people.models import User
from school_service.features.people.users import service as users
from school_service.features.sign_in.pages.requests import AuthorizationRequest
from school_service.features.sign_in.pages.steps import Step
from school_service.features.sign_in.service import NewSession, open_session


class AnotherPerson(Exception):
    """Another person would be signed in than the one the client has named."""


def sign_in(
    *,
    username: str,
    password: str,
    throttle: LoginThrottle,
    username_hash: str,
    session: NewSession,
) -> str | Step:
    """Sign a person in; returns the code for the client or, if the password has to be changed first, the step.

    Raises WrongPassword, TooManyAttempts, Busy, and AnotherPerson if the password was right.
    """
    user = users.sign_in(
        username=username, password=password, throttle=throttle, username_hash=username_hash, audited=False
    )
    _require_person(session.asked, user.id)
    if user.must_change_password:
        users.audit_sign_in(user, client=session.client.id)
        return Step(user.id, request_context().school_id, user.session_number, session.client.id)
    return _open_session(user, session)


def change_password(*, step: Step, password: str, session: NewSession) -> str:
    """Set the new password of a person after the right old one, and sign them in; returns the code for the client.

    Raises WrongPassword if the account was changed since, Invalid for a refused password, Busy, and AnotherPerson.
    """
    user = users.replace_given_password(
        user_id=step.user_id, session_number=step.session_number, password=password
    )
    return _open_session(user, session)


def take_invitation(
    hashes: Sequence[str],
    *,
    password: str,
    wrong_codes: WrongCodes | None,
    session_number: int | None,
    session: NewSession,
) -> str:
    """Set the password of an invitation's user, and sign them in; returns the code for the client.

    The first arguments are those of `taking.take_invitation`. Raises its exceptions, and AnotherPerson.
    """
    user = taking.take_invitation(
        hashes, password=password, wrong_codes=wrong_codes, session_number=session_number
    )
    return _open_session(user, session)


def _open_session(user: users.SignedIn | User, session: NewSession) -> str:
    _require_person(session.asked, user.id)
    return open_session(user, session)


def _require_person(asked: AuthorizationRequest, user_id: UUID) -> None:
    """Raise AnotherPerson if the client has named another: then nothing is stored, a new password neither."""
    if asked.person not in (None, (request_context().school_id, user_id)):
        raise AnotherPerson
