"""An application by which people sign in, a school with people, and clients."""

from __future__ import annotations

import base64
import hashlib
import secrets
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit
from uuid import uuid4

import pytest
from flask import Flask
from werkzeug.test import TestResponse

from school_service.app import create_app
from school_service.auth.login_throttle import limiter
from school_service.config import Settings
from tenants.registry.clients import PeoplesOptions, create_client
from tenants.registry.schools import schema_name
from tenants.tenancy import Tenancy
from tests.client import ApiClient, Document
from tests.conftest import Place, dispose, make_place
from tests.factories import Factory

PUBLIC_URL = "https://schools.example.org"
ISSUER = f"{PUBLIC_URL}/auth"
REDIRECT = "https://app.example.com/back"
AFTER_LOGOUT = "https://app.example.com/bye"
PERSON_PASSWORD = "nine purple elephants"


def challenge_of(verifier: str) -> str:
    """Make the S256 challenge of a verifier."""
    return base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).rstrip(b"=").decode()


@dataclass
class Entrance:
    """An application by which people sign in to one school, with its parts."""

    app: Flask
    document: Document
    tenancy: Tenancy
    place: Place

    @property
    def admin(self) -> ApiClient:
        """The school's administrator, with a token of POST /users/login."""
        return ApiClient(self.app, self.document, self.place.admin_token, self.place.id)

    @property
    def make(self) -> Factory:
        """Makes records of the school."""
        return Factory(self.admin)

    def with_token(self, token: str | None) -> ApiClient:
        """A caller with a token."""
        return ApiClient(self.app, self.document, token, self.place.id)

    def client(self, *, secret: bool = False, **options: Any) -> Client:
        """Register a client by which people sign in: public, unless it has a `secret`."""
        of_people = {"redirect_uris": (REDIRECT,), "post_logout_uris": (AFTER_LOGOUT,), **options}
        return self.granted(f"app-{uuid4()}", secret=secret, **of_people)

    def granted(self, client_id: str, *, secret: bool = False, **options: Any) -> Client:
        """Grant an id the school, for people."""
        schools = options.pop("school_ids", [self.place.id])
        of_people = PeoplesOptions(is_public=not secret, **options)
        with self.tenancy.admin.begin() as connection:
            created = create_client(connection, client_id=client_id, school_ids=schools, of_people=of_people)
        return Client(self, client_id, created)

    def person(self, *permissions: str, reach: str = "SCHOOL") -> Person:
        """Make a user with a password and a role of these permissions."""
        username = f"person.{secrets.token_hex(6)}"
        user = self.admin.post(
            "/users",
            {
                "username": username,
                "first_name": "Adé",
                "last_name": "Ọláwálé",
                "gender": "FEMALE",
                "password": PERSON_PASSWORD,
            },
        )
        assert user.status_code == 200, user.json
        user_id = user.json["user"]["id"]
        if permissions:
            role = self.make.role(*permissions, reach=reach)
            given = self.admin.put(f"/users/{user_id}/roles", {"role": role["id"]})
            assert given.status_code == 200, given.json
        return Person(user_id, username)

    def sql(self, statement: str, *parameters: Any) -> list[Any]:
        """Run a statement in the school, as the operator."""
        with self.tenancy.admin.begin() as connection:
            connection.exec_driver_sql(f'SET LOCAL search_path TO "{schema_name(self.place.id)}"')
            result = connection.exec_driver_sql(statement, parameters)
            return list(result.all()) if result.returns_rows else []


@dataclass(frozen=True)
class Person:
    """A user who signs in."""

    id: str
    username: str
    password: str = PERSON_PASSWORD


@dataclass(frozen=True)
class Client:
    """A client by which people sign in."""

    entrance: Entrance
    id: str
    secret: str
    redirect_uri: str = REDIRECT

    def ask(self, **parameters: str) -> tuple[str, str]:
        """Write the address of the sign-in page, and the verifier of its challenge."""
        verifier = parameters.pop("verifier", None) or secrets.token_urlsafe(48)
        asked = {
            "client_id": self.id,
            "redirect_uri": self.redirect_uri,
            "response_type": "code",
            "code_challenge": challenge_of(verifier),
            "code_challenge_method": "S256",
            "school": str(self.entrance.place.id),
            **parameters,
        }
        return f"/auth/authorize?{urlencode(asked)}", verifier

    def begin(self, person: Person, **parameters: str) -> tuple[str, str]:
        """Sign a person in by the page; returns the code and its verifier."""
        address, verifier = self.ask(**parameters)
        answer = self.entrance.app.test_client().post(
            address,
            data={"username": person.username, "password": person.password},
            headers={"Sec-Fetch-Site": "same-origin", "User-Agent": "Firefox on a telephone"},
        )
        assert answer.status_code == 303, (answer.status_code, answer.get_data(as_text=True))
        query = parse_qs(urlsplit(answer.location).query)
        assert query["iss"] == [ISSUER]
        return query["code"][0], verifier

    def form(self, path: str = "/auth/oauth/token", **parameters: str) -> TestResponse:
        """Send a form as this client; None leaves a parameter out."""
        named = {
            "client_id": self.id,
            **({"client_secret": self.secret} if self.secret else {}),
            **parameters,
        }
        given = {name: value for name, value in named.items() if value is not None}
        return ApiClient(self.entrance.app, self.entrance.document).request("POST", path, data=given)

    def exchange(self, code: str, verifier: str, **parameters: str) -> TestResponse:
        """Exchange a code."""
        return self.form(grant_type="authorization_code", code=code, code_verifier=verifier, **parameters)

    def refresh(self, token: str, **parameters: str) -> TestResponse:
        """Exchange a refresh token."""
        return self.form(grant_type="refresh_token", refresh_token=token, **parameters)

    def revoke(self, token: str, **parameters: str) -> TestResponse:
        """Give a token up."""
        return self.form("/auth/oauth/revoke", token=token, **parameters)

    def sign_in(self, person: Person, **parameters: str) -> dict[str, Any]:
        """Sign a person in; returns the answer of the token endpoint."""
        answer = self.exchange(*self.begin(person, **parameters))
        assert answer.status_code == 200, answer.json
        tokens: dict[str, Any] = answer.json
        return tokens

    def at(self, redirect_uri: str) -> Client:
        """The client, leading back elsewhere."""
        return replace(self, redirect_uri=redirect_uri)


@pytest.fixture(scope="session")
def shared_entrance(settings: Settings, tenancy: Tenancy) -> Iterator[Entrance]:
    """The application and the school that all tests share: to make them costs as much as several tests."""
    app = create_app(replace(settings, public_url=PUBLIC_URL))
    yield Entrance(app, Document(app), tenancy, make_place(app, tenancy, "Ìjọba College <b>"))
    dispose(app)


@pytest.fixture(scope="module")
def enter(
    settings: Settings, tenancy: Tenancy, shared_entrance: Entrance
) -> Iterator[Callable[..., Entrance]]:
    """Makes applications by which people sign in, with settings of their own, on the school that all share."""
    apps: list[Flask] = []

    def entering(**changes: Any) -> Entrance:
        app = create_app(replace(settings, **{"public_url": PUBLIC_URL, **changes}))
        apps.append(app)
        # The document names the issuer of tokens, and is otherwise the shared one.
        own = changes.keys() & {"public_url", "auth_url"}
        document = Document(app) if own else shared_entrance.document
        return replace(shared_entrance, app=app, document=document)

    yield entering
    for app in apps:
        dispose(app)


@pytest.fixture
def entrance(shared_entrance: Entrance) -> Entrance:
    """The application, with nothing counted yet."""
    with shared_entrance.app.app_context():
        limiter.limiter.storage.reset()
    return shared_entrance
