"""Which account of a school an identity of an outside provider is linked to, as a process remembers it for a moment.

What is remembered chooses whose state the binding reads, and no more: the binding tells whether the link still stands.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from uuid import UUID

from cachetools import TTLCache
from sqlalchemy import select

from school_service.core.database import Model
from school_service.core.read_models import Query, read_model

REMEMBERED = 10_000  # identities
REMEMBERED_FOR = 60.0  # seconds

Identity = tuple[str, str]


@read_model(judged=True)
def account_of_identity(issuer: str, subject: str) -> Query:
    """Select the account that an identity, its issuer and subject, is linked to; no row where there is none."""
    # By its name, since the models are above this module.
    links = Model.metadata.tables["user_identities"]
    return select(links.c.user_id).where(links.c.issuer == issuer, links.c.subject == subject)


@dataclass
class LinkedAccounts:
    """The accounts of identities, by school, as they were found last; of those that are linked to none, nothing."""

    _accounts: TTLCache[tuple[UUID, Identity], UUID] = field(
        default_factory=lambda: TTLCache(REMEMBERED, REMEMBERED_FOR)
    )
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def find(self, school_id: UUID, identity: Identity) -> UUID | None:
        """Find the account of an identity in a school, where it is remembered."""
        with self._lock:
            return self._accounts.get((school_id, identity))

    def remember(self, school_id: UUID, identity: Identity, account: UUID | None) -> None:
        """Remember the account of an identity; where it has none, what was remembered is forgotten."""
        with self._lock:
            if account is None:
                self._accounts.pop((school_id, identity), None)
            else:
                self._accounts[school_id, identity] = account
