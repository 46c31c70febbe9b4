"""An outside provider whose sign-ins are linked to accounts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from school_service.auth.tokens import TokenVerifier
from school_service.web.app_state import AppState
from tests.auth.outside_provider import OutsideProvider
from tests.client import ApiClient


@pytest.fixture(scope="module")
def provider() -> Iterator[OutsideProvider]:
    """An outside identity provider, over HTTP."""
    with OutsideProvider() as running:
        yield running


@pytest.fixture
def link_users(provider: OutsideProvider, monkeypatch: pytest.MonkeyPatch) -> Callable[..., AppState]:
    """Lets an application trust the provider, and link its sign-ins."""

    def linking(api: ApiClient, **settings: object) -> AppState:
        state: AppState = api.app.extensions["school-service"]
        trusting = {
            "auth_url": provider.url,
            "auth_issuers": (provider.url, "https://other.example.org"),
            "auth_jwks_url": provider.url,
            "auth_linked_users": True,
            "auth_user_claim": "school_user",
            **settings,
        }
        changed = replace(state.settings, **trusting)
        other = AppState(
            changed,
            TokenVerifier(changed, state.verifier.keys),
            state.user_state,
            state.audit_insertions,
            state.binding_options,
            state.shares,
        )
        monkeypatch.setitem(api.app.extensions, "school-service", other)
        return other

    return linking


@pytest.fixture
def state(api: ApiClient, link_users: Callable[..., AppState]) -> AppState:
    """The state of the application, which links outside sign-ins."""
    return link_users(api)
