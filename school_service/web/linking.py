"""Linking: the user of an outside token is the one linked to its identity in the school of the request."""

from __future__ import annotations

from functools import partial
from uuid import UUID

import orjson
from sqlalchemy.exc import DBAPIError

from school_service.auth.principal import NotLinked, VerifiedToken
from school_service.core.database import context_globals
from school_service.web.app_state import app_state
from school_service.web.linked_accounts import account_of_identity
from school_service.web.reading import read_text
from school_service.web.rendering import render_one
from school_service.web.transactions import find_reason, in_context
from tenants.connections.binding import SchoolBinding


def linked(token: VerifiedToken, school_id: UUID, *, anew: bool) -> VerifiedToken:
    """Find the user of an outside token in a school by its identity; `anew`: not by the remembered account.

    Raises NotLinked.
    """
    state, identity = app_state(), token.identity
    if identity is None:
        raise RuntimeError("The token has no identity that can be linked.")
    account = None if anew else state.linked_accounts.find((school_id, identity))
    if account is None:
        with state.shares.of(school_id):
            account = _account_of(identity, school_id)
        state.linked_accounts.remember((school_id, identity), account)
    if account is None:
        raise NotLinked
    context_globals().token = linked = token.of_linked(account)
    return linked


def _account_of(identity: tuple[str, str], school_id: UUID) -> UUID | None:
    """Read the linked account of an identity in a school, in one round trip; None if there is none."""
    binding = SchoolBinding(school_id, read_only=True)
    with in_context(binding, None, partial(read_text, binding)):
        try:
            text = render_one(account_of_identity(*identity))
        except DBAPIError as error:
            find_reason(error, school_id)
            raise
    return None if text is None else UUID(orjson.loads(text)["user_id"])
