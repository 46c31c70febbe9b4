"""Applications with other settings, forged tokens, machine clients and an outside provider."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Callable, Iterator
from typing import Any
from uuid import uuid4

import jwt
import pytest
from flask import Flask
from sqlalchemy import delete

from school_service.app import create_app
from school_service.auth.login_throttle import limiter
from school_service.auth.tokens import TokenVerifier, own_issuer
from school_service.config import Settings
from school_service.web.app_state import AppState
from tenants.registry.clients import create_client
from tenants.registry.schools import clients
from tenants.tenancy import Tenancy
from tests.auth.outside_provider import OutsideProvider
from tests.client import ApiClient, Document
from tests.conftest import Place, dispose


class Clock:
    """A clock that a test sets."""

    def __init__(self, now: float = 0.0) -> None:
        self.now = now

    def __call__(self) -> float:
        """The time it shows, in seconds."""
        return self.now


def written(members: object) -> str:
    """Write a part of a token: JSON text, or a given text or bytes, in base64url."""
    text = json.dumps(members) if not isinstance(members, str | bytes) else members
    return base64.urlsafe_b64encode(text.encode() if isinstance(text, str) else text).rstrip(b"=").decode()


@pytest.fixture
def own_claims(app: Flask, place: Place) -> dict[str, Any]:
    """The claims of a sound token of the school's administrator."""
    now = int(time.time())
    with app.app_context():
        issuer = own_issuer()
    return {
        "sub": str(place.admin_id),
        "iss": issuer,
        "aud": "school-service",
        "iat": now,
        "exp": now + 3600,
        "school_id": str(place.id),
        "session": 1,
    }


@pytest.fixture
def verifier(app: Flask) -> TokenVerifier:
    """The application's verifier."""
    verifier: TokenVerifier = app.extensions["school-service"].verifier
    return verifier


@pytest.fixture
def sign(verifier: TokenVerifier) -> Callable[..., str]:
    """Signs claims with the application's own key."""

    def signing(claims: dict[str, Any], **headers: Any) -> str:
        key = verifier.key
        return jwt.encode(claims, key.private, key.algorithm, headers={"kid": key.key_id, **headers})

    return signing


@pytest.fixture(scope="session")
def load(settings: Settings) -> Callable[..., Settings]:
    """Loads settings of their own for the same database."""
    defaults = {
        "DATABASE_URL": settings.database_url.render_as_string(hide_password=False),
        "ADMIN_DATABASE_URL": settings.admin_database_url.render_as_string(hide_password=False),
        "SIGNING_KEY": settings.signing_key or "",
        "POOL_SIZE": "3",
    }

    def loading(**environment: str) -> Settings:
        return Settings.load({**defaults, **environment})

    return loading


@pytest.fixture
def start(load: Callable[..., Settings], tenancy: Tenancy) -> Iterator[Callable[..., Flask]]:
    """Makes applications on the same database, with settings of their own; their requests commit."""
    apps = []

    def starting(**environment: str) -> Flask:
        apps.append(create_app(load(**environment)))
        return apps[-1]

    yield starting
    for app in apps:
        dispose(app)


@pytest.fixture
def provider() -> Iterator[OutsideProvider]:
    """An outside identity provider, over HTTP."""
    with OutsideProvider() as running:
        yield running


@pytest.fixture(scope="session")
def trusting(load: Callable[..., Settings], tenancy: Tenancy) -> Iterator[tuple[Flask, Document]]:
    """An application that trusts some outside provider, and its document: making them takes longer than most tests."""
    app = create_app(load(AUTH_URL="https://provider.example.org"))
    yield app, Document(app)
    dispose(app)


@pytest.fixture
def outside_with(
    trusting: tuple[Flask, Document], load: Callable[..., Settings], place: Place
) -> Callable[..., ApiClient]:
    """Gives the trusting application other settings of an outside provider; answers a client without a token of it.

    It knows no keys of the provider yet.
    """
    app, document = trusting

    def make(**environment: str) -> ApiClient:
        state: AppState = app.extensions["school-service"]
        settings = load(**environment)
        app.extensions["school-service"] = AppState(
            settings,
            TokenVerifier(settings, state.verifier.keys),
            state.user_state,
            state.audit_insertions,
            state.binding_options,
            state.shares,
        )
        with app.app_context():
            limiter.limiter.storage.reset()
        return ApiClient(app, document, None, place.id)

    return make


@pytest.fixture
def outside(outside_with: Callable[..., ApiClient], provider: OutsideProvider) -> ApiClient:
    """A client without a token of an application that trusts the outside provider."""
    return outside_with(AUTH_URL=provider.url)


@pytest.fixture
def grant(tenancy: Tenancy) -> Iterator[Callable[..., tuple[str, str]]]:
    """Grants machine clients schools and permissions; answers id and secret."""
    made = []

    def granting(*, client_id: str | None = None, **grants: Any) -> tuple[str, str]:
        client_id = client_id or f"client-{uuid4()}"
        with tenancy.admin.begin() as connection:
            secret = create_client(connection, client_id=client_id, **grants)
        made.append(client_id)
        return client_id, secret

    yield granting
    with tenancy.admin.begin() as connection:
        connection.execute(delete(clients).where(clients.c.id.in_(made)))
