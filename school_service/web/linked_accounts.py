"""The linked account of an outside provider's identity in a school, as a process remembers it for a moment.

The remembered account only chooses the state for the binding to read: the binding tells whether the link still stands.
"""

from __future__ import annotations

from typing import TypeAlias
from uuid import UUID

from sqlalchemy import select

from school_service.core.database import Model
from school_service.core.read_models import Query, read_model
from school_service.core.remembered import Remembered

REMEMBERED = 10_000  # identities
REMEMBERED_FOR = 60.0  # seconds

Identity = tuple[str, str]


@read_model
def account_of_identity(issuer: str, subject: str) -> Query:
    """Select the linked account of an identity, its issuer and subject; no row if there is none."""
    # By its name, since the models are above this module.
    links = Model.metadata.tables["user_identities"]
    return select(links.c.user_id).where(links.c.issuer == issuer, links.c.subject == subject)


LinkedAccounts: TypeAlias = Remembered[tuple[UUID, Identity], UUID]
"""The accounts of identities, by school, as they were found last; identities without an account are not remembered."""


def linked_accounts() -> LinkedAccounts:
    """Make the memory of an application."""
    return Remembered(REMEMBERED, REMEMBERED_FOR)
