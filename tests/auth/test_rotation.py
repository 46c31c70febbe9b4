"""Several signing keys at once, a rotation from one to the next, and two installations that have a key in common."""

from __future__ import annotations

from uuid import uuid4

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ed25519
from sqlalchemy import URL

from school_service.app import create_app
from school_service.auth.signing_key import SigningKey, SigningKeys
from school_service.auth.tokens import issue_client_token, issue_user_token, own_issuer
from school_service.config import ConfigError, Settings
from tenants.provisioning.create import create_school
from tenants.registry.clients import create_client
from tests.client import ApiClient
from tests.conftest import dispose
from tests.tenants.installations import ADMINISTRATOR, installation

OLD, NEW = SigningKey.generate(), SigningKey.generate()
PARAMETERS = "-----BEGIN EC PARAMETERS-----\nBggqhkjOPQMBBw==\n-----END EC PARAMETERS-----\n"


def pem(*keys):
    return "".join(key.to_pem() for key in keys)


@pytest.fixture
def server_of(start, document, place):
    """Starts a server with keys; answers a client of it with a token that it has issued to the administrator."""

    def starting(*keys):
        app = start(SIGNING_KEY=pem(*keys))
        with app.app_context():
            key = app.extensions["school-service"].verifier.key
            token = issue_user_token(key, place.admin_id, place.id, 1)["access_token"]
        return ApiClient(app, document, token, place.id)

    return starting


def signer_of(api):
    return jwt.get_unverified_header(api.token)["kid"]


def published(api):
    keys = api.ok(api.using(token=None, school=None).get("/auth/.well-known/jwks.json"))["keys"]
    return [key["kid"] for key in keys]


def accepts(api, other):
    """Tell whether a server accepts the token that another one issued."""
    return {200: True, 401: False}[api.using(token=other.token).get("/roles").status_code]


def test_the_first_key_signs_all_verify_and_all_are_published(server_of):
    both = server_of(NEW, OLD)

    assert signer_of(both) == NEW.key_id
    assert published(both) == [NEW.key_id, OLD.key_id]
    assert accepts(both, both)
    assert accepts(both, server_of(OLD))
    assert not accepts(both, server_of(SigningKey.generate()))


def test_an_outsider_verifies_tokens_of_each_server_with_the_published_keys(server_of):
    both, old = server_of(NEW, OLD), server_of(OLD)
    key_set = jwt.PyJWKSet.from_dict(both.get("/auth/.well-known/jwks.json").get_json())

    for api in (both, old):
        claims = jwt.decode(api.token, key_set[signer_of(api)], ["ES256"], audience="school-service")
        assert claims["sub"]


def test_a_rotation_ends_no_token_before_its_time(server_of):
    """The steps of docs/deployment/rotate-keys.md: between two of them, servers of both run side by side."""
    steps = [server_of(*keys) for keys in ((OLD,), (OLD, NEW), (NEW, OLD), (NEW,))]
    before, added, moved, removed = steps

    for api, next_ in ((before, added), (added, moved), (moved, removed)):
        assert accepts(next_, next_)
        # The last step alone ends tokens: it removes their key, and they were issued before the key in front of it.
        assert accepts(next_, api)
        assert accepts(api, next_)
    assert [signer_of(api) for api in steps] == [OLD.key_id, OLD.key_id, NEW.key_id, NEW.key_id]
    assert not accepts(removed, added)
    assert not accepts(before, moved)


def test_a_token_that_names_one_key_and_is_signed_by_another_is_refused(server_of, own_claims):
    both = server_of(NEW, OLD)
    for key, named, accepted in ((NEW, NEW, True), (OLD, OLD, True), (NEW, OLD, False), (OLD, NEW, False)):
        headers = {"kid": named.key_id}
        token = jwt.encode(own_claims, key.private, key.algorithm, headers=headers)
        assert (both.using(token=token).get("/roles").status_code == 200) is accepted


def test_keys_of_different_kinds_stand_side_by_side(server_of, own_claims):
    edwards = SigningKey(ed25519.Ed25519PrivateKey.generate(), "EdDSA")
    before, after = server_of(OLD), server_of(edwards, OLD)

    assert accepts(after, before)
    assert accepts(after, after)
    for algorithm, named in (("ES256", edwards), ("EdDSA", OLD)):
        key = OLD if algorithm == "ES256" else edwards
        token = jwt.encode(own_claims, key.private, algorithm, headers={"kid": named.key_id})
        assert after.using(token=token).get("/roles").status_code == 401


@pytest.mark.parametrize(
    ("text", "keys"),
    [
        (pem(OLD), [OLD]),
        (pem(OLD, NEW), [OLD, NEW]),
        (f"# the one that signs\n{pem(NEW)}\n\nthe one before:\r\n{pem(OLD)}", [NEW, OLD]),
        (f"{PARAMETERS}{pem(NEW)}{PARAMETERS}{pem(OLD)}", [NEW, OLD]),
        (PARAMETERS + pem(OLD), [OLD]),
        (pem(OLD, NEW, OLD), [OLD, NEW]),
    ],
)
def test_a_text_holds_any_number_of_keys(text, keys):
    read = SigningKeys.from_pem(text)

    assert [key.key_id for key in read.keys] == [key.key_id for key in keys]


@pytest.mark.parametrize(
    ("second", "reason"),
    [
        (pem(NEW)[:80], "SIGNING_KEY_FILE has a key that is cut short."),
        (pem(NEW).replace("END PRIVATE", "END PUBLIC"), "SIGNING_KEY_FILE has a key that is cut short."),
        (
            "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
            "Key 2 of SIGNING_KEY_FILE is no PEM private key without a passphrase.",
        ),
        (
            "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n",
            "Key 2 of SIGNING_KEY_FILE is no PEM private key without a passphrase.",
        ),
    ],
    ids=["cut short", "another end", "a certificate", "broken"],
)
def test_a_second_key_that_is_none_is_refused_by_its_place(second, reason):
    for text in (pem(OLD) + second, second + pem(OLD)):
        with pytest.raises(ConfigError) as refused:
            SigningKeys.from_pem(text, "SIGNING_KEY_FILE")
        assert str(refused.value) in (reason, reason.replace("Key 2", "Key 1"))
        assert NEW.to_pem()[40:60] not in str(refused.value)


# Installations


@pytest.fixture
def other_installation(server, settings):
    """An application with the same key, on a registry of its own."""
    with installation(server) as tenancy:
        addresses = {"DATABASE_URL": tenancy.serving_url, "ADMIN_DATABASE_URL": tenancy.admin_url}
        written = {name: URL.render_as_string(url, hide_password=False) for name, url in addresses.items()}
        app = create_app(Settings.load({**written, "SIGNING_KEY": settings.signing_key}))
        yield app, tenancy
        dispose(app)


def test_a_token_of_another_installation_is_refused_though_the_key_is_the_same(
    api, other_installation, document, grant
):
    app, tenancy = other_installation
    school = create_school(tenancy, name="Theirs", administrator=ADMINISTRATOR)
    # The same name in both, which no other test takes in a database shared by modules.
    client_id = f"front-end-{uuid4()}"
    grants = {"client_id": client_id, "all_schools": True, "all_permissions": True}
    with tenancy.admin.begin() as connection:
        create_client(connection, **grants)
    grant(**grants)
    issued, issuers = [], []
    for each in (api.app, app):
        with each.app_context():
            key = each.extensions["school-service"].verifier.key
            issued.append(issue_client_token(key, client_id, [])["access_token"])
            issuers.append(own_issuer())
    here, there = issued
    theirs = ApiClient(app, document, there, school.id)

    assert issuers[0] != issuers[1]
    assert [jwt.decode(token, options={"verify_signature": False})["iss"] for token in issued] == issuers
    assert api.using(token=here).get("/roles").status_code == 200
    assert theirs.get("/roles").status_code == 200
    assert api.using(token=there).get("/roles").status_code == 401
    assert theirs.using(token=here).get("/roles").status_code == 401


def test_all_applications_of_an_installation_have_one_issuer(start, app):
    with app.app_context():
        issuer = own_issuer()
    with start().app_context():
        assert own_issuer() == issuer
    assert issuer.startswith("urn:uuid:")
