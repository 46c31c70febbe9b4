"""An outside provider whose sign-ins are linked, machine clients, and accounts in which somebody has planted a way."""

from __future__ import annotations

from tests.auth.conftest import grant
from tests.features.identities.conftest import link_users, provider, state

__all__ = ["grant", "link_users", "provider", "state"]
