"""Tokens of an outside provider: which are accepted, in which schools, and with which permissions."""

from __future__ import annotations

import hashlib
import hmac
import json
import time
from uuid import uuid4

import jwt
import pytest
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from school_service.auth.jwks import KeySet
from tenants.registry.clients import revoke_client
from tests.auth.conftest import Clock, written
from tests.auth.outside_provider import ALGORITHMS, private_key, public_jwk
from tests.client import ApiClient, Document
from tests.conftest import PASSWORD, make_place

READ_ROLES = {"permissions": ["read:roles"]}


@pytest.fixture
def allowed(place):
    """The claims of a token that may list the roles of the school."""
    return {"school_id": str(place.id), **READ_ROLES}


def status_of(api, token, **using):
    return api.using(token=token, **using).get("/roles").status_code


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_the_providers_tokens_are_accepted(outside, provider, allowed, algorithm):
    assert status_of(outside, provider.token(algorithm, **allowed)) == 200


@pytest.mark.parametrize(
    ("published", "named", "status"),
    [
        ("Ed25519", "Ed25519", 200),
        ("EdDSA", "EdDSA", 200),
        (None, "Ed25519", 200),
        (None, "EdDSA", 200),
        ("Ed25519", "EdDSA", 401),
        ("EdDSA", "Ed25519", 401),
    ],
)
def test_an_ed25519_key_serves_the_name_that_it_is_published_with(
    outside, provider, allowed, published, named, status
):
    members = {} if published is None else {"alg": published}
    provider.keys = [public_jwk(private_key("Ed25519"), "Ed25519", kid="Ed25519", **members)]

    assert status_of(outside, provider.token(named, kid="Ed25519", **allowed)) == status
    assert status_of(outside, provider.token(named, name="stolen", kid="Ed25519", **allowed)) == 401


def test_the_keys_are_where_the_provider_says(outside_with, provider, allowed, place):
    provider.description = {"issuer": f"{provider.url}/realm/", "jwks_uri": f"{provider.url}/certs?client=1"}
    api = outside_with(AUTH_URL=f"{provider.url}/realm/")

    assert status_of(api, provider.token(iss=f"{provider.url}/realm/", **allowed)) == 200
    assert provider.requests == ["/realm/.well-known/openid-configuration", "/certs?client=1"]


def test_where_the_keys_are_given_the_provider_is_not_asked(outside_with, provider, allowed, place):
    provider.description = {"issuer": provider.url, "jwks_uri": f"{provider.url}/elsewhere"}
    api = outside_with(AUTH_URL=provider.url, AUTH_JWKS_URL=f"{provider.url}/certs")

    assert status_of(api, provider.token(**allowed)) == 200
    assert provider.requests == ["/certs"]


@pytest.mark.parametrize(
    "issuer", ["https://another.example", "{}/REALM", "{}/realm//", None, 5, ["{}/realm"]]
)
def test_a_description_of_another_issuer_is_not_believed(outside_with, provider, allowed, place, issuer):
    issuer = issuer.format(provider.url) if isinstance(issuer, str) else issuer
    provider.description = {"issuer": issuer, "jwks_uri": f"{provider.url}/certs"}
    api = outside_with(AUTH_URL=f"{provider.url}/realm")

    assert status_of(api, provider.token(iss=f"{provider.url}/realm", **allowed)) == 503
    assert provider.requests == ["/realm/.well-known/openid-configuration"]


def test_a_token_may_name_no_key_where_the_provider_has_one(outside, provider, allowed):
    provider.keys = [public_jwk(private_key("ES256"), "ES256")]

    assert status_of(outside, provider.token(kid=None, **allowed)) == 200


@pytest.mark.parametrize("audience", ["another", "", None, [], ["another", 5], 5])
def test_a_token_for_another_audience_is_refused(outside, provider, allowed, audience):
    assert status_of(outside, provider.token(aud=audience, **allowed)) == 401


def test_a_token_for_several_audiences_is_accepted(outside, provider, allowed):
    assert status_of(outside, provider.token(aud=["another", "school-service"], **allowed)) == 200


@pytest.mark.parametrize("expiry", ["99999999999", True, [], {}, None, -1, 0])
def test_a_token_with_a_strange_or_no_expiry_is_refused(outside, provider, allowed, expiry):
    assert status_of(outside, provider.token(exp=expiry, **allowed)) == 401


def test_a_token_is_accepted_half_a_minute_after_its_expiry(outside, provider, allowed):
    now = int(time.time())

    assert status_of(outside, provider.token(exp=now - 15, **allowed)) == 200
    assert status_of(outside, provider.token(exp=now - 31, **allowed)) == 401


def test_a_token_of_tomorrow_is_refused(outside, provider, allowed):
    tomorrow = int(time.time()) + 86400

    assert status_of(outside, provider.token(nbf=tomorrow, **allowed)) == 401


def test_the_issuer_may_end_in_a_slash(outside, provider, allowed):
    assert status_of(outside, provider.token(iss=f"{provider.url}/", **allowed)) == 200


@pytest.mark.parametrize("issuer", ["https://another.example", "", None])
def test_a_token_of_another_issuer_is_refused(outside, provider, allowed, issuer):
    assert status_of(outside, provider.token(iss=issuer, **allowed)) == 401
    assert provider.requests == []


def test_another_key_of_the_same_kind_is_refused(outside, provider, allowed):
    for algorithm in ALGORITHMS:
        assert status_of(outside, provider.token(algorithm, name="stolen", **allowed)) == 401


def test_a_key_serves_its_own_algorithm_alone(outside, provider, allowed):
    assert status_of(outside, provider.token("ES256", kid="RS256", **allowed)) == 401
    for algorithm in ("RS384", "RS512", "PS256"):
        token = jwt.encode(
            provider.claims(**allowed), private_key("RS256"), algorithm, headers={"kid": "RS256"}
        )
        assert status_of(outside, token) == 401


def test_shared_secrets_are_refused(outside, provider, allowed):
    shared = "c2VjcmV0LXNlY3JldC1zZWNyZXQtc2VjcmV0LXNlY3JldA"
    provider.keys = [*provider.keys, {"kty": "oct", "k": shared, "kid": "shared", "alg": "HS256"}]
    pem = private_key("RS256").public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    for kid, secret in (("RS256", pem), ("shared", b"secret-secret-secret-secret-secret"), ("RS256", b"")):
        content = f"{written({'alg': 'HS256', 'kid': kid})}.{written(provider.claims(**allowed))}"
        signature = hmac.new(secret, content.encode(), hashlib.sha256).digest()
        assert status_of(outside, f"{content}.{written(signature)}") == 401


def test_an_unsigned_token_is_refused(outside, provider, allowed):
    token = f"{written({'alg': 'none', 'kid': 'ES256'})}.{written(provider.claims(**allowed))}."

    assert status_of(outside, token) == 401


def test_the_service_can_be_told_issuer_keys_audience_and_claim(start, provider, place):
    claim = "https://example.org/schools"
    app = start(
        AUTH_URL="https://login.example.org/tenant/",
        AUTH_ISSUER="urn:example:issuer",
        AUTH_JWKS_URL=f"{provider.url}/other/keys",
        AUTH_AUDIENCE="urn:example:api",
        AUTH_SCHOOL_CLAIM=claim,
    )
    api = ApiClient(app, Document(app), None, place.id)
    sound = {"iss": "urn:example:issuer", "aud": "urn:example:api", claim: [str(place.id)], **READ_ROLES}

    assert status_of(api, provider.token(**sound)) == 200
    assert provider.requests == ["/other/keys"]
    assert status_of(api, provider.token(**{**sound, "iss": "https://login.example.org/tenant/"})) == 401
    assert status_of(api, provider.token(**{**sound, "aud": "school-service"})) == 401
    assert status_of(api, provider.token(**{**sound, claim: None, "school_id": str(place.id)})) == 403


def test_the_keys_are_asked_for_below_the_providers_address(outside_with, provider, allowed, place):
    api = outside_with(AUTH_URL=f"{provider.url}/realm/")

    assert status_of(api, provider.token(iss=f"{provider.url}/realm", **allowed)) == 200
    asked = ["/realm/.well-known/openid-configuration", "/realm/.well-known/jwks.json"]
    assert provider.requests == asked


def test_a_provider_that_never_answered_is_unavailable(outside, provider, allowed):
    provider.says(500)

    answer = outside.using(token=provider.token(**allowed)).get("/roles")

    assert answer.status_code == 503
    assert int(answer.headers["Retry-After"]) > 0
    assert answer.get_json()["message"] == "The identity provider can't be reached. Try again shortly."


def test_the_services_own_users_need_no_provider(outside, provider, place):
    provider.stop()

    assert status_of(outside, place.admin_token) == 200


def test_users_sign_in_with_the_providers_token(outside, provider, tenancy):
    # The entry of the sign-in stays in the audit log.
    place = make_place(outside.app, tenancy, "King's College, Lagos")
    token = provider.token(school_id=str(place.id), permissions=[])
    outside = outside.using(token=token, school=place.id)

    answer = outside.post("/users/login", {"username": "admin", "password": PASSWORD})

    own = outside.ok(answer)["access_token"]["access_token"]
    assert status_of(outside, own) == 200


def test_tokens_stay_good_while_the_provider_is_away(outside, provider, allowed):
    assert status_of(outside, provider.token(**allowed)) == 200
    provider.stop()

    assert status_of(outside, provider.token(jti="another", **allowed)) == 200
    assert status_of(outside, provider.token(kid="unknown", **allowed)) == 401


def test_unknown_keys_do_not_trouble_the_provider(outside, provider, allowed):
    assert status_of(outside, provider.token(**allowed)) == 200
    for number in range(50):
        assert status_of(outside, provider.token(kid=f"unknown {number}", **allowed)) == 401

    assert provider.requests == ["/.well-known/openid-configuration", "/.well-known/jwks.json"]


def test_the_tokens_of_a_withdrawn_key_are_not_remembered(outside, provider, allowed):
    clock = Clock()
    verifier = outside.app.extensions["school-service"].verifier
    verifier.outside_keys = KeySet(verifier.outside_keys.source, clock=clock)
    token = provider.token(**allowed)
    assert status_of(outside, token) == 200
    provider.keys = [public_jwk(private_key("ES256", "new"), "ES256", kid="new")]

    clock.now += 30
    assert status_of(outside, provider.token(name="new", kid="new", **allowed)) == 200

    assert status_of(outside, token) == 401


def test_the_built_in_provider_is_not_mounted(outside):
    assert outside.post("/auth/oauth/token", {}).status_code == 404
    assert outside.get("/auth/.well-known/jwks.json").status_code == 404
    assert not [path for path in outside.document.spec["paths"] if path.startswith("/auth")]


class TestSchools:
    def test_the_claim_names_one_school(self, outside, provider, place, other_place):
        token = provider.token(school_id=str(place.id), **READ_ROLES)

        assert status_of(outside, token) == 200
        assert status_of(outside, token, school=None) == 200
        assert status_of(outside, token, school=other_place.id) == 403
        assert status_of(outside, token, school=uuid4()) == 403

    def test_the_claim_names_several_schools(self, outside, provider, place, other_place):
        token = provider.token(school_id=[str(place.id), str(other_place.id).upper()], **READ_ROLES)

        assert status_of(outside, token) == 200
        assert status_of(outside, token, school=other_place.id) == 200
        assert status_of(outside, token, school=uuid4()) == 403
        assert status_of(outside, token, school=None) == 400

    @pytest.mark.parametrize(
        "claim",
        ["", [], "x", ["x"], 5, {}, True, ["x", 5, None], "urn:uuid:6fa459ea-ee8a-3ca4-894e-db77e160355e"],
    )
    def test_a_claim_that_names_no_school_leads_to_none(self, outside, provider, grant, place, claim):
        client_id, _ = grant(all_schools=True, all_permissions=True)
        token = provider.token(school_id=claim, azp=client_id, **READ_ROLES)

        assert status_of(outside, token) == 403
        assert status_of(outside, token, school=None) == 400

    def test_a_token_names_a_school_that_does_not_exist(self, outside, provider):
        nowhere = uuid4()
        token = provider.token(school_id=str(nowhere), **READ_ROLES)

        assert status_of(outside, token, school=nowhere) == 404

    def test_without_the_claim_the_grant_decides(self, outside, provider, grant, place, other_place):
        client_id, _ = grant(school_ids=[place.id], permissions=["read:roles"])
        token = provider.token(azp=client_id)

        assert status_of(outside, token) == 200
        assert status_of(outside, token, school=other_place.id) == 403
        assert status_of(outside, token, school=uuid4()) == 403
        # The token itself names no school.
        assert status_of(outside, token, school=None) == 400

    def test_a_grant_may_cover_all_schools(self, outside, provider, grant, place, other_place):
        client_id, _ = grant(all_schools=True, permissions=["read:roles"])
        token = provider.token(azp=client_id)

        assert status_of(outside, token) == 200
        assert status_of(outside, token, school=other_place.id) == 200
        assert status_of(outside, token, school=uuid4()) == 404

    @pytest.mark.parametrize("claim", ["azp", "client_id", "sub"])
    def test_the_grant_is_found_by_azp_client_id_or_sub(self, outside, provider, grant, place, claim):
        client_id, _ = grant(school_ids=[place.id], permissions=["read:roles"])

        assert status_of(outside, provider.token(**{"sub": client_id, claim: client_id})) == 200

    def test_the_first_of_azp_client_id_and_sub_counts(self, outside, provider, grant, place):
        granted, _ = grant(school_ids=[place.id], permissions=["read:roles"])

        assert status_of(outside, provider.token(azp=granted, client_id="unknown", sub=granted)) == 200
        assert status_of(outside, provider.token(azp="unknown", client_id=granted, sub=granted)) == 403
        assert status_of(outside, provider.token(client_id=granted, sub=granted)) == 200
        assert status_of(outside, provider.token(client_id="unknown", sub=granted)) == 403
        assert status_of(outside, provider.token(azp="", sub=granted)) == 403
        assert status_of(outside, provider.token(client_id=5, sub=granted)) == 403

    @pytest.mark.parametrize(
        "names",
        [
            {"azp": "unknown"},
            {"sub": None},
            {"sub": ""},
            {"sub": 5},
            {"azp": []},
            {"sub": "a\0b"},
            {"sub": "\ud800"},
            {"sub": "a" * 256},
        ],
        ids=lambda names: repr(names)[:30],
    )
    def test_nobodys_token_enters_no_school(self, outside, provider, names):
        assert status_of(outside, provider.token(**{"permissions": ["read:roles"], **names})) == 403

    def test_a_revoked_grant_ends_at_once(self, outside, provider, grant, place, tenancy):
        client_id, _ = grant(school_ids=[place.id], permissions=["read:roles"])
        token = provider.token(azp=client_id)
        assert status_of(outside, token) == 200

        with tenancy.admin.begin() as connection:
            revoke_client(connection, client_id)

        assert status_of(outside, token) == 403

    def test_an_id_that_is_granted_anew_is_the_clients_again(self, outside, provider, grant, place, tenancy):
        client_id, _ = grant(school_ids=[place.id], permissions=["read:roles"])
        token = provider.token(azp=client_id)
        with tenancy.admin.begin() as connection:
            revoke_client(connection, client_id)
        assert status_of(outside, token) == 403

        # Its token is the provider's, which alone ends it.
        grant(client_id=client_id, school_ids=[place.id], permissions=["read:roles"])

        assert status_of(outside, token) == 200


class TestPermissionClaim:
    """AUTH_PERMISSION_CLAIM: which claim has the permissions, and the rights of a token without it."""

    READ = ["read:roles"]

    @pytest.fixture
    def with_claim(self, outside_with, provider):
        """A client of an application with AUTH_PERMISSION_CLAIM."""
        return lambda path: outside_with(AUTH_URL=provider.url, AUTH_PERMISSION_CLAIM=path)

    @pytest.mark.parametrize(
        ("path", "claims"),
        [
            ("realm_access.roles", {"realm_access": {"roles": ["offline_access", "read:roles"]}}),
            ("resource_access.schools.roles", {"resource_access": {"schools": {"roles": READ}}}),
            ("roles", {"roles": "openid  read:roles"}),
            ("scope", {"scope": "openid read:roles"}),
            ("https://example.org/roles", {"https://example.org/roles": READ}),
        ],
    )
    def test_the_claim_has_the_permissions(self, with_claim, provider, place, path, claims):
        token = provider.token(school_id=str(place.id), **claims)
        api = with_claim(path)

        assert status_of(api, token) == 200
        assert api.using(token=token).get("/users").status_code == 403

    def test_without_the_setting_such_a_claim_means_nothing(self, outside, provider, place):
        claims = {"realm_access": {"roles": self.READ}, "roles": self.READ}

        assert status_of(outside, provider.token(school_id=str(place.id), **claims)) == 403

    def test_no_other_claim_counts_then(self, with_claim, provider, grant, place):
        client_id, _ = grant(school_ids=[place.id], permissions=[])
        api = with_claim("realm_access.roles")
        for claims in ({"permissions": self.READ}, {"scope": "read:roles"}, {"roles": self.READ}):
            assert status_of(api, provider.token(school_id=str(place.id), **claims)) == 403
            assert status_of(api, provider.token(azp=client_id, **claims)) == 403

    @pytest.mark.parametrize(
        "claim",
        [
            {"roles": {"read:roles": True}},
            {"roles": []},
            {"roles": ""},
            {"roles": 5},
            {"roles": True},
            {"roles": [["read:roles"]]},
            {"roles": [{"name": "read:roles"}, None, 5]},
            {"roles": ["READ:ROLES", "read:role", " read:roles", "read:roles,read:users"]},
            {"roles": ["*", "all", "read:*"]},
            {"roles": ["read:roles read:users"]},
            {"realm_access.roles": ["read:roles"], "roles": 0},
            ["read:roles"],
            "read:roles",
            5,
            False,
        ],
        ids=repr,
    )
    def test_a_claim_of_another_form_carries_no_permissions_and_leaves_none_to_the_grant(
        self, with_claim, provider, grant, place, claim
    ):
        client_id, _ = grant(school_ids=[place.id], permissions=["read:roles"])
        api = with_claim("realm_access.roles")

        assert status_of(api, provider.token(azp=client_id)) == 200
        assert status_of(api, provider.token(azp=client_id, realm_access=claim)) == 403
        assert status_of(api, provider.token(school_id=str(place.id), realm_access=claim)) == 403

    def test_where_it_is_absent_the_grant_of_the_clients_own_token_decides(
        self, with_claim, provider, grant, place
    ):
        client_id, _ = grant(school_ids=[place.id], permissions=["read:roles"])
        api = with_claim("realm_access.roles")

        for claims in ({}, {"realm_access": {}}, {"realm_access": {"roles": None}}):
            assert status_of(api, provider.token(azp=client_id, **claims)) == 200
            # Somebody else's token has nothing of the grant.
            carried = {"azp": client_id, "sub": "someone", "school_id": str(place.id)}
            assert status_of(api, provider.token(**carried, **claims)) == 403

    def test_a_permission_claim_opens_no_other_school(self, with_claim, provider, grant, place, other_place):
        client_id, _ = grant(school_ids=[place.id])
        api = with_claim("roles")
        for token in (
            provider.token(school_id=str(place.id), roles=self.READ),
            provider.token(azp=client_id, roles=self.READ),
        ):
            assert status_of(api, token) == 200
            assert status_of(api, token, school=other_place.id) == 403

    def test_a_forged_claim_is_no_claim(self, with_claim, provider, place):
        api = with_claim("roles")
        head, body, signature = provider.token(school_id=str(place.id), roles=[]).split(".")
        forged = written(provider.claims(school_id=str(place.id), roles=self.READ))

        assert status_of(api, f"{head}.{body}.{signature}") == 403
        assert status_of(api, f"{head}.{forged}.{signature}") == 401

    def test_a_users_token_has_the_permissions_of_their_roles(self, outside_with, provider, place):
        claims = {"AUTH_PERMISSION_CLAIM": "roles", "AUTH_USER_CLAIM": "user"}
        outside = outside_with(AUTH_URL=provider.url, **claims)
        claims = {"school_id": str(place.id), "roles": self.READ}

        assert status_of(outside, provider.token(user=str(place.admin_id), **{**claims, "roles": []})) == 200
        assert status_of(outside, provider.token(user=str(uuid4()), **claims)) == 401


class TestTokensForOthers:
    """A client's grant is for the client's own tokens; a token for somebody else has none of it."""

    @pytest.fixture
    def client_id(self, grant, place):
        return grant(school_ids=[place.id], permissions=["read:roles"])[0]

    @pytest.mark.parametrize("subject", ["{}", "{}@clients"])
    def test_the_clients_own_has_the_grant(self, outside, provider, client_id, subject):
        assert status_of(outside, provider.token(azp=client_id, sub=subject.format(client_id))) == 200

    @pytest.mark.parametrize("subject", ["someone", "auth0|{}", "{}@client", " {}", None, "", ["{}"], 5])
    def test_an_end_users_has_not(self, outside, provider, client_id, subject):
        subject = subject.format(client_id) if isinstance(subject, str) else subject

        assert status_of(outside, provider.token(azp=client_id, sub=subject)) in {401, 403}

    def test_an_end_users_token_has_the_permissions_that_it_carries(
        self, outside, provider, client_id, place
    ):
        carried = {"azp": client_id, "sub": "someone", "school_id": str(place.id)}

        assert status_of(outside, provider.token(**carried, permissions=["read:roles"])) == 200
        assert status_of(outside, provider.token(**carried)) == 403
        assert status_of(outside, provider.token(azp=client_id, sub="someone", scope="read:roles")) == 403

    @pytest.mark.parametrize(
        ("setting", "claims", "status"),
        [
            ("gty=client-credentials", {"gty": "client-credentials"}, 200),
            ("gty=client-credentials", {"gty": "password"}, 403),
            ("gty=client-credentials", {}, 403),
            ("client_id", {"client_id": "{}"}, 200),
            ("client_id", {"client_id": "another"}, 403),
            ("client_id", {}, 403),
        ],
    )
    def test_a_claim_may_mark_it(self, outside_with, provider, place, client_id, setting, claims, status):
        api = outside_with(AUTH_URL=provider.url, AUTH_CLIENT_CLAIM=setting)
        claims = {name: value.format(client_id) for name, value in claims.items()}

        assert status_of(api, provider.token(azp=client_id, sub="service-account", **claims)) == status

    def test_a_revoked_client_is_refused_with_any_claims(self, outside, provider, grant, place, tenancy):
        client_id, _ = grant(school_ids=[place.id], permissions=["read:roles"])
        carried = {"school_id": str(place.id), "permissions": ["read:roles"], "azp": client_id}
        tokens = [provider.token(**carried), provider.token(**carried, sub="someone")]
        assert [status_of(outside, token) for token in tokens] == [200, 200]

        with tenancy.admin.begin() as connection:
            revoke_client(connection, client_id)

        assert [status_of(outside, token) for token in tokens] == [403, 403]

    def test_a_client_that_the_registry_does_not_know_is_not_revoked(self, outside, provider, allowed):
        assert status_of(outside, provider.token(azp="a stranger", **allowed)) == 200


class TestKindsOfTokens:
    """Only access tokens are accepted, as far as a token names its kind."""

    @pytest.mark.parametrize(
        "claims",
        [
            {"nonce": "x"},
            {"at_hash": "x"},
            {"c_hash": "x"},
            {"events": {"http://schemas.openid.net/event/backchannel-logout": {}}},
            {"token_use": "id"},
            {"typ": "ID"},
            {"typ": "Refresh"},
            {"typ": "Logout"},
            {"header_typ": "logout+jwt"},
            {"header_typ": "dpop+jwt"},
        ],
        ids=str,
    )
    def test_others_are_refused(self, outside, provider, allowed, claims):
        assert status_of(outside, provider.token(**allowed, **claims)) == 401

    @pytest.mark.parametrize(
        "claims",
        [
            {"token_use": "access"},
            {"typ": "Bearer"},
            {"header_typ": "at+jwt"},
            {"header_typ": "application/at+JWT"},
            {"header_typ": "jwt"},
        ],
        ids=str,
    )
    def test_access_tokens_are_accepted(self, outside, provider, allowed, claims):
        assert status_of(outside, provider.token(**allowed, **claims)) == 200


class TestUsers:
    """An end user's token stands for a user of the school where the claim of AUTH_USER_CLAIM names one."""

    @pytest.fixture
    def mapped(self, outside_with, provider):
        return outside_with(AUTH_URL=provider.url, AUTH_USER_CLAIM="school_user")

    def test_a_users_token_may_do_as_the_users_roles_allow(self, mapped, provider, place):
        token = provider.token(
            azp="a portal", sub="someone", school_id=str(place.id), school_user=str(place.admin_id)
        )

        assert status_of(mapped, token) == 200
        # Allowed, and refused for another reason: nothing is made in the school of all tests.
        taken = {"name": "Administrator", "avatar": 1}
        assert mapped.using(token=token).post("/roles", taken).status_code == 409

    def test_the_permissions_that_it_carries_are_none_of_the_users(self, mapped, provider, place, make):
        nobody = make.user()["user"]["id"]
        claims = {"school_id": str(place.id), "school_user": nobody, "permissions": ["read:roles"]}

        assert status_of(mapped, provider.token(**claims)) in {401, 403}

    def test_a_user_of_the_other_school_or_nobody_is_refused(self, mapped, provider, place, other_place):
        for user in (other_place.admin_id, uuid4()):
            token = provider.token(school_id=str(place.id), school_user=str(user))
            assert status_of(mapped, token) == 401

    @pytest.mark.parametrize("value", ["admin", "", 5, [], None, {}])
    def test_a_claim_that_is_no_id_is_refused(self, mapped, provider, allowed, value):
        token = provider.token(**allowed)
        assert status_of(mapped, token) == 200  # the control: without the claim
        named = mapped.using(
            token=jwt.encode(
                {**jwt.decode(token, options={"verify_signature": False}), "school_user": value},
                private_key("ES256"),
                "ES256",
                headers={"kid": "ES256"},
            )
        )

        assert named.get("/roles").status_code == 401

    def test_a_password_that_others_gave_does_not_concern_it(self, mapped, provider, committing):
        """The provider has asked for a secret of its own."""
        api = committing.api
        api.ok(api.patch("/settings", {"must_change_password": True}))
        user = committing.user()["user"]
        token = provider.token(school_id=str(api.school), school_user=user["id"])

        assert mapped.using(token=token, school=api.school).get("/states").status_code == 200
        assert committing.signed_in(user).get("/states").status_code == 403

    def test_without_the_setting_the_claim_means_nothing(self, outside, provider, place):
        token = provider.token(school_id=str(place.id), school_user=str(place.admin_id))

        assert status_of(outside, token) == 403

    def test_without_a_school_it_enters_none(self, mapped, provider, place):
        assert status_of(mapped, provider.token(school_user=str(place.admin_id))) == 403


class TestPermissions:
    def test_an_array_carries_them(self, outside, provider, place):
        token = provider.token(school_id=str(place.id), permissions=["read:users", "read:roles"])

        assert status_of(outside, token) == 200
        assert outside.using(token=token).get("/users").status_code == 200
        answer = outside.using(token=token).post("/roles", {"name": "Cook", "avatar": 1})
        assert (answer.status_code, answer.get_json()["message"]) == (
            403,
            "This needs the permission write:roles.",
        )

    def test_the_scope_carries_them(self, outside, provider, place):
        token = provider.token(school_id=str(place.id), scope="openid read:roles  write:students")

        assert status_of(outside, token) == 200
        assert outside.using(token=token).get("/users").status_code == 403

    def test_the_array_counts_before_the_scope(self, outside, provider, place):
        token = provider.token(school_id=str(place.id), permissions=[], scope="read:roles")

        assert status_of(outside, token) == 403

    @pytest.mark.parametrize(
        "carried",
        [
            {"permissions": []},
            {"permissions": "read:roles"},
            {"permissions": {"read:roles": True}},
            {"permissions": [["read:roles"], None, 5]},
            {"permissions": ["READ:ROLES", "roles:read", "read:role", "*", ""]},
            {"scope": ""},
            {"scope": "openid profile"},
            {"scope": ["read:roles"]},
            {"scope": 5},
        ],
        ids=str,
    )
    def test_a_claim_without_permissions_does_not_fall_back_to_the_grant(
        self, outside, provider, grant, place, carried
    ):
        client_id, _ = grant(school_ids=[place.id], all_permissions=True)

        assert status_of(outside, provider.token(azp=client_id, **carried)) == 403

    @pytest.mark.parametrize("school_claim", [True, False])
    def test_a_token_with_neither_claim_has_the_permissions_of_its_grant(
        self, outside, provider, grant, place, school_claim
    ):
        client_id, _ = grant(school_ids=[place.id], permissions=["read:roles"])
        claims = {"school_id": str(place.id)} if school_claim else {}
        api = outside.using(token=provider.token(azp=client_id, **claims))

        assert api.get("/roles").status_code == 200
        assert api.get("/users").status_code == 403

    @pytest.mark.parametrize(
        "name", ["unknown", "a\0b", "\ud800", "'; DROP SCHEMA registry; --", 5], ids=repr
    )
    def test_a_token_with_a_school_but_no_grant_may_do_nothing(self, outside, provider, place, name):
        api = outside.using(token=provider.token(school_id=str(place.id), azp=name))

        assert api.get("/roles").status_code == 403
        assert api.get("/states").status_code == 200

    def test_the_grant_of_everything_holds_in_the_school(self, outside, provider, grant, place):
        client_id, _ = grant(school_ids=[place.id], all_permissions=True)

        assert status_of(outside, provider.token(azp=client_id)) == 200


class TestImpersonation:
    """With any claims, the provider's tokens are not the service's own."""

    def test_the_providers_key_signs_no_token_of_the_service(self, outside, provider, place, own_claims):
        for kid in ("ES256", None, outside.app.extensions["school-service"].verifier.key.key_id):
            token = provider.token(
                iss=own_claims["iss"], sub=str(place.admin_id), school_id=str(place.id), kid=kid
            )
            assert status_of(outside, token) == 401

    def test_a_users_id_as_subject_gives_nothing_of_the_users(self, outside, provider, place):
        api = outside.using(token=provider.token(sub=str(place.admin_id), school_id=str(place.id)))

        assert api.get("/roles").status_code == 403
        own_password = {"password": "new", "current_password": "correct horse battery staple"}
        assert api.put(f"/users/{place.admin_id}/password", own_password).status_code == 403

    def test_the_services_key_signs_no_token_of_the_provider(self, outside, provider, sign, allowed):
        assert status_of(outside, sign(provider.claims(**allowed))) == 401

    def test_the_issuer_is_not_taken_from_a_list(self, outside, provider, allowed):
        header = written({"alg": "ES256", "kid": "ES256"})
        payload = written(
            json.dumps(provider.claims(**allowed)).replace(f'"{provider.url}"', f'["{provider.url}"]', 1)
        )
        content = f"{header}.{payload}"
        signature = jwt.algorithms.ECAlgorithm(jwt.algorithms.ECAlgorithm.SHA256).sign(
            content.encode(), private_key("ES256")
        )

        assert status_of(outside, f"{content}.{written(signature)}") == 401
