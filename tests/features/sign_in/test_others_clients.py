"""Clients of others sign people in, over HTTP: Authlib and requests-oauthlib, by their documented ways."""

from __future__ import annotations

import secrets
import socket
from urllib.parse import parse_qs, urlsplit

import pytest
import requests
from authlib.integrations.requests_client import OAuth2Session as AuthlibSession
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from joserfc import jwt
from joserfc.jwk import KeySet
from requests_oauthlib import OAuth2Session

from school_service.auth.signing_key import SigningKey
from tests.features.sign_in.conftest import AFTER_LOGOUT, REDIRECT, Client, Person
from tests.features.sign_in.test_grants import claims_of
from tests.served_apps import serving_app

# It is a JOSE library's own opinion of the name that keys of Ed25519 have had since RFC 8037.
pytestmark = pytest.mark.filterwarnings("ignore:EdDSA is deprecated")

SCOPE = "openid profile read:classrooms"
KEYS = {
    "EdDSA": lambda: ed25519.Ed25519PrivateKey.generate(),
    "ES256": lambda: ec.generate_private_key(ec.SECP256R1()),
    "RS256": lambda: rsa.generate_private_key(65537, 2048),
}


@pytest.fixture(params=KEYS, scope="module")
def served(request, enter, settings, shared_entrance):
    """An application that is served at its PUBLIC_URL, and signs with a key of this kind; its algorithm."""
    # Held from here on: a port that is only free now may be another program's later.
    listener = socket.create_server(("127.0.0.1", 0))
    port = listener.getsockname()[1]
    pem = SigningKey(KEYS[request.param](), request.param).to_pem()
    # The key of before still verifies.
    entrance = enter(public_url=f"http://127.0.0.1:{port}", signing_key=f"{pem}\n{settings.signing_key}")
    with serving_app(entrance.app, sockets=[listener]):
        yield entrance, request.param


@pytest.fixture(scope="module")
def person(shared_entrance) -> Person:
    return shared_entrance.person("read:classrooms", "read:students")


def discover(base):
    metadata = requests.get(f"{base}/auth/.well-known/openid-configuration", timeout=60).json()
    assert metadata["issuer"] == f"{base}/auth"
    return metadata


def sign_in_at(address: str, person: Person, school) -> str:
    """Type name and password into the page, as a browser sends them; answers where it leads."""
    page = requests.get(f"{address}&school={school}", timeout=60)
    assert page.status_code == 200
    answer = requests.post(
        f"{address}&school={school}",
        data={"username": person.username, "password": person.password},
        headers={"Sec-Fetch-Site": "same-origin"},
        allow_redirects=False,
        timeout=60,
    )
    assert answer.status_code == 303, answer.text
    return answer.headers["Location"]


def assert_id_token(token, metadata, algorithm, client: Client, person: Person, **more):
    keys = KeySet.import_key_set(requests.get(metadata["jwks_uri"], timeout=60).json())
    id_token = jwt.decode(token, keys, algorithms=[algorithm])
    assert metadata["id_token_signing_alg_values_supported"] == [algorithm]
    registry = jwt.JWTClaimsRegistry(
        iss={"essential": True, "value": metadata["issuer"]},
        aud={"essential": True, "value": client.id},
        sub={"essential": True, "value": person.id},
        exp={"essential": True},
        **{name: {"essential": True, "value": value} for name, value in more.items()},
    )
    registry.validate(id_token.claims)
    assert id_token.claims["preferred_username"] == person.username


@pytest.mark.parametrize("secret", [False, True], ids=["public", "confidential"])
def test_authlib(served, person, secret):
    entrance, algorithm = served
    client = entrance.client(secret=secret)
    base = entrance.app.extensions["school-service"].settings.public_url
    metadata = discover(base)
    session = AuthlibSession(
        client.id,
        client.secret or None,
        scope=SCOPE,
        redirect_uri=REDIRECT,
        code_challenge_method="S256",
        token_endpoint_auth_method="client_secret_basic" if secret else "none",
    )
    verifier, nonce = secrets.token_urlsafe(48), secrets.token_urlsafe(16)
    address, state = session.create_authorization_url(
        metadata["authorization_endpoint"], code_verifier=verifier, nonce=nonce
    )
    led_to = sign_in_at(address, person, entrance.place.id)
    assert parse_qs(urlsplit(led_to).query)["iss"] == [metadata["issuer"]]

    token = session.fetch_token(
        metadata["token_endpoint"], authorization_response=led_to, code_verifier=verifier, state=state
    )

    assert_id_token(token["id_token"], metadata, algorithm, client, person, nonce=nonce)
    told = session.get(metadata["userinfo_endpoint"]).json()
    assert (told["sub"], told["name"]) == (person.id, "Adé Ọláwálé")
    school = {"X-SCHOOL-ID": token["school_id"]}
    assert session.get(f"{base}/classrooms", headers=school).status_code == 200
    assert session.get(f"{base}/students", headers=school).status_code == 403
    newer = session.refresh_token(metadata["token_endpoint"])
    assert newer["refresh_token"] != token["refresh_token"]
    assert session.get(metadata["userinfo_endpoint"]).status_code == 200
    done = session.revoke_token(metadata["revocation_endpoint"], token=newer["refresh_token"])
    assert done.status_code == 200
    assert (
        requests.get(
            metadata["userinfo_endpoint"],
            headers={"Authorization": f"Bearer {newer['access_token']}"},
            timeout=60,
        ).status_code
        == 401
    )


@pytest.mark.parametrize("secret", [False, True], ids=["public", "confidential"])
def test_requests_oauthlib(served, person, secret, monkeypatch):
    monkeypatch.setenv("OAUTHLIB_INSECURE_TRANSPORT", "1")  # it is served without TLS here
    entrance, algorithm = served
    client = entrance.client(secret=secret)
    base = entrance.app.extensions["school-service"].settings.public_url
    metadata = discover(base)
    session = OAuth2Session(client.id, redirect_uri=REDIRECT, scope=SCOPE.split(), pkce="S256")
    address, _ = session.authorization_url(metadata["authorization_endpoint"], nonce="n")
    led_to = sign_in_at(address, person, entrance.place.id)
    shown = {"client_secret": client.secret} if secret else {}

    token = session.fetch_token(
        metadata["token_endpoint"], authorization_response=led_to, include_client_id=True, **shown
    )

    assert_id_token(token["id_token"], metadata, algorithm, client, person, nonce="n")
    assert session.get(metadata["userinfo_endpoint"]).json()["sub"] == person.id
    newer = session.refresh_token(metadata["token_endpoint"], client_id=client.id, **shown)
    assert session.get(f"{base}/classrooms", headers={"X-SCHOOL-ID": newer["school_id"]}).status_code == 200
    out = requests.get(
        metadata["end_session_endpoint"],
        params={
            "id_token_hint": token["id_token"],
            "post_logout_redirect_uri": AFTER_LOGOUT,
            "state": "s",
        },
        allow_redirects=False,
        timeout=60,
    )
    assert (out.status_code, out.headers["Location"]) == (303, f"{AFTER_LOGOUT}?state=s")
    assert session.get(metadata["userinfo_endpoint"]).status_code == 401
    assert claims_of(newer["access_token"])["sid"] == claims_of(token["id_token"])["sid"]
