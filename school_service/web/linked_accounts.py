"""Which account of a school an identity of an outside provider is linked to, as a process remembers it for a moment.

What is remembered chooses whose state the binding reads, and no more: the binding tells whether the link still stands.
"""

from __future__ import annotations

from uuid import UUID

from sqlalchemy import select

from school_service.core.database import Model
from school_service.core.read_models import Query, read_model
from school_service.core.remembered import Remembered

REMEMBERED = 10_000  # identities
REMEMBERED_FOR = 60.0  # seconds

Identity = tuple[str, str]


@read_model(judged=True)
def account_of_identity(issuer: str, subject: str) -> Query:
    """Select the account that an identity, its issuer and subject, is linked to; no row where there is none."""
    # By its name, since the models are above this module.
    links = Model.metadata.tables["user_identities"]
    return select(links.c.user_id).where(links.c.issuer == issuer, links.c.subject == subject)


class LinkedAccounts:
    """The accounts of identities, by school, as they were found last; of those that are linked to none, nothing."""

    def __init__(self) -> None:
        self._accounts: Remembered[tuple[UUID, Identity], UUID] = Remembered(REMEMBERED, REMEMBERED_FOR)

    def find(self, school_id: UUID, identity: Identity) -> UUID | None:
        """Find the account of an identity in a school, where it is remembered."""
        return self._accounts.find((school_id, identity))

    def remember(self, school_id: UUID, identity: Identity, account: UUID | None) -> None:
        """Remember the account of an identity; where it has none, what was remembered is forgotten."""
        self._accounts.remember((school_id, identity), account)
