"""Sessions of people: their ends, their readers, and the permissions of a narrowed token."""

from __future__ import annotations

from uuid import uuid4

import jwt
import pytest

from school_service.core.permissions import Permission
from tenants.registry.clients import change_client, revoke_client, rotate_secret
from tests.auth.outside_provider import OutsideProvider
from tests.client import Document
from tests.features.sign_in.conftest import ISSUER, PERSON_PASSWORD, Client, Entrance, Person
from tests.features.sign_in.sign_out.leaving import signed_out
from tests.features.sign_in.test_grants import claims_of, is_refused, works

PERMISSIONS = ("read:classrooms", "write:classrooms", "read:students", "read:users", "write:users")


@pytest.fixture(scope="module")
def person(shared_entrance: Entrance) -> Person:
    return shared_entrance.person(*PERMISSIONS)


@pytest.fixture(scope="module")
def client(shared_entrance: Entrance) -> Client:
    return shared_entrance.client()


def as_operator(entrance, work, *arguments, **options):
    with entrance.tenancy.admin.begin() as connection:
        return work(connection, *arguments, **options)


ENDS = {
    "refresh token revoked": lambda e, c, p, got: c.revoke(got["refresh_token"]),
    "access token revoked": lambda e, c, p, got: c.revoke(
        got["access_token"], token_type_hint="access_token"
    ),
    "signed out": lambda e, c, p, got: signed_out(e, id_token_hint=got["id_token"]),
    "session deleted": lambda e, c, p, got: e.admin.delete(
        f"/users/{p.id}/sessions/{claims_of(got['access_token'])['sid']}"
    ),
    "own session deleted": lambda e, c, p, got: e.with_token(got["access_token"]).delete(
        f"/users/{p.id}/sessions/{claims_of(got['access_token'])['sid']}"
    ),
    "password set": lambda e, c, p, got: e.admin.put(
        f"/users/{p.id}/password", {"password": "yet another one"}
    ),
    "all sessions ended": lambda e, c, p, got: e.admin.delete(f"/users/{p.id}/sessions"),
    "account deleted": lambda e, c, p, got: e.admin.delete(f"/users/{p.id}/delete"),
    "client revoked": lambda e, c, p, got: as_operator(e, revoke_client, c.id),
    "client rotated": lambda e, c, p, got: as_operator(e, rotate_secret, c.id, end_tokens=True),
    "client granted anew": lambda e, c, p, got: (
        as_operator(e, revoke_client, c.id),
        e.granted(c.id, redirect_uris=(c.redirect_uri,)),
    ),
}


def test_the_end_of_a_session_ends_its_tokens_in_every_process(entrance, enter):
    another = enter()
    for what, end in ENDS.items():
        person, client = entrance.person("read:classrooms"), entrance.client()
        got = client.sign_in(person, scope="openid")
        assert works(entrance, got["access_token"]), what
        assert works(another, got["access_token"]), what

        end(entrance, client, person, got)

        assert not works(entrance, got["access_token"]), what
        assert not works(another, got["access_token"]), what
        answer = client.refresh(got["refresh_token"])
        assert (answer.status_code, answer.json["error"]) in {
            (400, "invalid_grant"),
            (401, "invalid_client"),
        }, what


def test_another_session_goes_on(entrance, person, client):
    session, other = client.sign_in(person), client.sign_in(person)

    client.revoke(session["refresh_token"])

    assert works(entrance, other["access_token"])
    assert client.refresh(other["refresh_token"]).status_code == 200


def test_revoking_a_token_that_is_not_the_clients_changes_nothing(entrance, person, client):
    got = client.sign_in(person)
    other = entrance.client()

    for token in (
        got["refresh_token"],
        got["access_token"],
        "ssr_guessed",
        "a.b.c",
        entrance.place.admin_token,
    ):
        assert other.revoke(token).status_code == 200
    assert client.revoke(f"{got['refresh_token'][:-3]}AAA").status_code == 200
    assert client.form("/auth/oauth/revoke").json["error"] == "invalid_request"
    assert works(entrance, got["access_token"])
    assert works(entrance, entrance.place.admin_token)


def test_sessions_are_listed_with_their_clients(entrance, client):
    person = entrance.person()
    named = entrance.client(name="Ìwé app")
    first, second = client.sign_in(person), named.sign_in(person)
    client.begin(person)
    mine = entrance.with_token(first["access_token"])

    sessions = mine.get(f"/users/{person.id}/sessions").json

    assert [(each["client"], each["client_name"], each["current"]) for each in sessions] == [
        (named.id, "Ìwé app", False),
        (client.id, client.id, True),
    ]
    assert sessions[1]["id"] == claims_of(first["access_token"])["sid"]
    assert sessions[1]["user_agent"] == "Firefox on a telephone"
    assert sessions[1]["address"] == "127.0.0.1"
    assert [each["current"] for each in entrance.admin.get(f"/users/{person.id}/sessions").json] == [
        False,
        False,
    ]
    client.refresh(first["refresh_token"])
    assert [each["client"] for each in mine.get(f"/users/{person.id}/sessions").json] == [client.id, named.id]
    # Nobody sees them but the person, and callers with as many permissions.
    stranger = entrance.with_token(client.sign_in(entrance.person())["access_token"])
    lesser = entrance.with_token(client.sign_in(entrance.person("write:users"))["access_token"])
    for caller in (stranger, lesser):
        assert caller.get(f"/users/{entrance.place.admin_id}/sessions").status_code == 403
        assert caller.delete(f"/users/{entrance.place.admin_id}/sessions/{uuid4()}").status_code == 403
    for unknown in (uuid4(), claims_of(second["access_token"])["sub"]):
        assert entrance.admin.delete(f"/users/{person.id}/sessions/{unknown}").status_code == 404
    assert entrance.admin.get(f"/users/{uuid4()}/sessions").status_code == 404
    of_second = claims_of(second["access_token"])["sid"]
    assert entrance.admin.delete(f"/users/{entrance.place.admin_id}/sessions/{of_second}").status_code == 404
    as_operator(entrance, revoke_client, named.id)
    assert [each["client"] for each in mine.get(f"/users/{person.id}/sessions").json] == [client.id]


# Narrowed tokens.


def test_a_token_has_the_permissions_that_roles_and_ceiling_share(entrance, person):
    client = entrance.client(user_permissions=("read:classrooms", "read:terms", "write:users"))
    got = client.sign_in(person)
    caller = entrance.with_token(got["access_token"])

    assert claims_of(got["access_token"])["permissions"] == ["read:classrooms", "read:terms", "write:users"]
    assert caller.get("/classrooms").status_code == 200
    assert caller.post("/classrooms", {"name": str(uuid4()), "level": "JUNIOR"}).status_code == 403
    assert caller.get("/students").status_code == 403
    assert caller.get("/sessions").status_code == 403
    me = caller.get("/me").json
    assert [each["permission"] for each in me["permissions"]] == ["read:classrooms", "write:users"]
    # Nobody gives away a permission that the token lacks, and one's own records stay one's own.
    role = entrance.make.role("read:students")["id"]
    assert caller.put(f"/users/{entrance.person().id}/roles", {"role": role}).status_code == 403
    assert caller.get(f"/users/{person.id}/sessions").status_code == 200


def test_a_scope_narrows_further_and_gives_nothing_beyond(entrance, person):
    client = entrance.client(user_permissions=("read:classrooms", "write:classrooms"))
    got = client.sign_in(person, scope="openid read:classrooms read:students")
    assert got["scope"] == "openid read:classrooms"
    assert claims_of(got["access_token"])["permissions"] == ["read:classrooms"]
    caller = entrance.with_token(got["access_token"])
    assert caller.get("/classrooms").status_code == 200
    assert caller.post("/classrooms", {"name": "x", "level": "JUNIOR"}).status_code == 403
    assert is_refused(client.refresh(got["refresh_token"], scope="openid write:classrooms"), "invalid_scope")
    assert is_refused(client.refresh(got["refresh_token"], scope="profile"), "invalid_scope")
    fewer = client.refresh(got["refresh_token"], scope="read:classrooms").json
    assert (fewer["scope"], "id_token" in fewer) == ("read:classrooms", False)
    # Of this access token alone.
    assert client.refresh(fewer["refresh_token"]).json["scope"] == "openid read:classrooms"


def test_by_ceiling_or_scope_alike_a_token_to_change_users_is_no_way_to_its_whole_account(entrance):
    person, parent = entrance.person(*map(str, Permission)), entrance.person()
    by_ceiling = entrance.client(user_permissions=("write:users",)).sign_in(person)
    by_scope = entrance.client().sign_in(person, scope="openid write:users")
    for got in (by_ceiling, by_scope):
        thief = entrance.with_token(got["access_token"])
        invited = thief.post("/invitations", {"users": [person.id], "everybody": True})
        assert (invited.status_code, "themselves" in invited.json["message"]) == (403, True)
        for path in (f"/users/{person.id}/photo", f"/users/{person.id}/identities"):
            assert thief.get(path).json["message"] == "This needs the permission read:users."
    # A permission named for the client opens one's own records, also where the roles lack it.
    names = entrance.client(user_permissions=("read:users",)).sign_in(parent)
    own = entrance.with_token(names["access_token"])
    assert own.get(f"/users/{parent.id}/identities").json == []
    assert own.get(f"/users/{person.id}/identities").status_code == 403
    assert (
        own.delete(f"/users/{parent.id}/sessions").json["message"] == "This needs the permission write:users."
    )


def test_without_a_ceiling_a_refresh_may_name_any_permission(entrance, person, client):
    got = client.sign_in(person, scope="openid")
    fewer = client.refresh(got["refresh_token"], scope="read:students").json
    caller = entrance.with_token(fewer["access_token"])

    assert claims_of(fewer["access_token"])["permissions"] == ["read:students"]
    assert (caller.get("/students").status_code, caller.get("/classrooms").status_code) == (200, 403)
    assert "permissions" not in claims_of(client.refresh(fewer["refresh_token"]).json["access_token"])


def test_a_token_for_signing_in_alone_names_the_person_and_does_nothing_else(entrance, person):
    client = entrance.client(user_permissions=())
    got = client.sign_in(person, scope="openid profile")
    caller = entrance.with_token(got["access_token"])

    assert got["scope"] == "openid profile"
    assert caller.get("/auth/userinfo").json == {
        "sub": person.id,
        "school_id": str(entrance.place.id),
        "name": "Adé Ọláwálé",
        "given_name": "Adé",
        "family_name": "Ọláwálé",
        "preferred_username": person.username,
    }
    for path in (
        "/me",
        "/classrooms",
        f"/users/{person.id}",
        f"/users/{person.id}/sessions",
        "/nationalities",
    ):
        assert caller.get(path).status_code == 403, path
    assert caller.put(f"/users/{person.id}/password", {"password": "x"}).status_code == 403
    assert caller.delete(f"/users/{person.id}/sessions").status_code == 403


def test_user_info_needs_openid(entrance, person, client):
    plain = entrance.with_token(client.sign_in(person)["access_token"])
    for answer in (plain.get("/auth/userinfo"), entrance.admin.request("POST", "/auth/userinfo")):
        assert (answer.status_code, answer.get_json()["type"]) == (403, "insufficient-scope")
        assert answer.headers["WWW-Authenticate"] == 'Bearer error="insufficient_scope", scope="openid"'
    with_openid = entrance.with_token(client.sign_in(person, scope="openid")["access_token"])
    told = {"sub": person.id, "school_id": str(entrance.place.id)}
    assert (
        with_openid.get("/auth/userinfo").json == with_openid.request("POST", "/auth/userinfo").json == told
    )
    assert entrance.with_token(None).get("/auth/userinfo").status_code == 401


def test_own_permissions_are_narrowed_too(entrance):
    person = entrance.person("read:classrooms", "read:cohorts", reach="OWN")
    client = entrance.client(user_permissions=("read:classrooms",))
    narrowed = entrance.with_token(client.sign_in(person)["access_token"])
    whole = entrance.with_token(entrance.client().sign_in(person)["access_token"])

    for _ in range(2):
        assert (narrowed.get("/classrooms").status_code, narrowed.get("/cohorts").status_code) == (200, 403)
        assert (whole.get("/classrooms").status_code, whole.get("/cohorts").status_code) == (200, 200)


# Tokens that are no access tokens, or no hints.


def test_nothing_else_is_a_bearer_token(entrance, person, client):
    code, verifier = client.begin(person)
    got = client.sign_in(person, scope="openid")

    for other in (got["id_token"], code, got["refresh_token"], verifier):
        answer = entrance.with_token(other).get("/classrooms")
        assert answer.status_code == 401
        assert entrance.with_token(other).get("/auth/userinfo").status_code == 401
    signed_out(entrance, id_token_hint=got["access_token"])
    assert works(entrance, got["access_token"])


def test_a_token_works_in_its_school_alone(entrance, enter, person, client, other_place):
    got = client.sign_in(person)
    elsewhere = entrance.with_token(got["access_token"]).using(school=other_place.id)

    assert elsewhere.get("/classrooms").status_code == 403
    assert elsewhere.get(f"/users/{person.id}/sessions").status_code == 403


def test_a_client_whose_grant_lost_the_school_gets_no_more_tokens(entrance, person, other_place):
    client = entrance.client(school_ids=[entrance.place.id, other_place.id])
    got = client.sign_in(person)
    with entrance.tenancy.admin.begin() as connection:
        connection.exec_driver_sql(
            "DELETE FROM registry.client_schools WHERE client_id = %s AND school_id = %s",
            (client.id, entrance.place.id),
        )

    assert is_refused(client.refresh(got["refresh_token"]))


# Metadata.


def test_one_document_at_three_places(entrance, enter):
    app = entrance.app.test_client()
    places = (
        "/auth/.well-known/openid-configuration",
        "/.well-known/oauth-authorization-server/auth",
        "/auth/.well-known/oauth-authorization-server",
    )
    first, *others = (app.get(place, headers={"Host": "evil.example"}).json for place in places)
    base = ISSUER.removesuffix("/auth")
    assert first == others[0] == others[1]
    assert first == {
        "issuer": ISSUER,
        "authorization_endpoint": f"{ISSUER}/authorize",
        "token_endpoint": f"{ISSUER}/oauth/token",
        "userinfo_endpoint": f"{ISSUER}/userinfo",
        "revocation_endpoint": f"{ISSUER}/oauth/revoke",
        "end_session_endpoint": f"{ISSUER}/logout",
        "jwks_uri": f"{base}/auth/.well-known/jwks.json",
        "response_types_supported": ["code"],
        "response_modes_supported": ["query"],
        "grant_types_supported": ["authorization_code", "refresh_token", "client_credentials"],
        "token_endpoint_auth_methods_supported": ["client_secret_basic", "client_secret_post", "none"],
        "revocation_endpoint_auth_methods_supported": ["client_secret_basic", "client_secret_post", "none"],
        "scopes_supported": ["openid", "profile", "offline_access"],
        "code_challenge_methods_supported": ["S256"],
        "subject_types_supported": ["public"],
        "claims_supported": first["claims_supported"],
        "id_token_signing_alg_values_supported": ["ES256"],
        "authorization_response_iss_parameter_supported": True,
        "request_parameter_supported": False,
        "request_uri_parameter_supported": False,
    }


@pytest.mark.parametrize("host", ["evil.example", "localhost:8443", "schools.example.org"])
def test_the_issuer_is_the_public_address_for_any_request(entrance, host):
    app, public = entrance.app.test_client(), ISSUER.removesuffix("/auth")
    forwarded = {"X-Forwarded-Proto": "ftp", "X-Forwarded-Prefix": "/x", "X-Forwarded-Host": "evil.example"}
    for place, issuer in {
        "/auth/.well-known/openid-configuration": ISSUER,
        "/.well-known/oauth-authorization-server/auth": ISSUER,
        "/auth/.well-known/oauth-authorization-server": ISSUER,
        "/.well-known/oauth-authorization-server": public,
    }.items():
        metadata = app.get(place, headers={"Host": host, **forwarded}).json
        assert metadata["issuer"] == issuer, place
        addresses = [value for name, value in metadata.items() if name.endswith(("_endpoint", "_uri"))]
        assert len(addresses) >= 2
        assert all(address.startswith(f"{public}/auth/") for address in addresses), place


def test_without_an_address_nobody_signs_in(entrance, enter, client):
    app = enter(public_url=None).app.test_client()

    for path in ("authorize", "userinfo", "logout", "invitation", ".well-known/openid-configuration"):
        assert app.get(f"/auth/{path}").status_code == 404
    assert app.post("/auth/oauth/revoke", data={"token": "a"}).status_code == 404
    form = {"grant_type": "refresh_token", "refresh_token": "a", "client_id": client.id}
    assert app.post("/auth/oauth/token", data=form).json["error"] == "unsupported_grant_type"
    below = app.get("/auth/.well-known/oauth-authorization-server").json
    assert below["issuer"] == "http://localhost/auth"
    assert below["grant_types_supported"] == ["client_credentials"]


# A password that was given.


def test_a_password_given_again_meanwhile_lets_the_new_session_change_it_alone(entrance, client):
    person = entrance.person("read:classrooms")
    got = client.sign_in(person)
    caller = entrance.with_token(got["access_token"])
    changed = caller.put(
        f"/users/{person.id}/password",
        {"password": "a longer one still", "current_password": PERSON_PASSWORD},
    )

    assert changed.status_code == 200
    assert not works(entrance, got["access_token"])


def test_a_client_that_becomes_public_needs_no_secret(entrance, person):
    client = entrance.client(secret=True)
    got = client.sign_in(person)
    as_operator(entrance, change_client, client.id, of_people={"is_public": True})

    assert is_refused(client.refresh(got["refresh_token"]), "invalid_client", 401)
    assert client.refresh(got["refresh_token"], client_secret=None).status_code == 200


# Both providers at once.


def test_tokens_of_two_providers_are_told_apart_by_their_issuer(entrance, enter, person):
    with OutsideProvider() as provider:
        both = enter(auth_url=provider.url, auth_issuers=(provider.url,), built_in_provider=True)
        client = both.client()
        got = client.sign_in(person, scope="openid")
        outside = {"azp": "front-end", "sub": "front-end", "school_id": str(both.place.id)}
        outside["permissions"] = ["read:classrooms"]
        assert works(both, got["access_token"])
        assert works(both, provider.token(**outside))
        assert works(both, both.place.admin_token)
        key = both.app.extensions["school-service"].verifier.key
        own = claims_of(got["access_token"])
        for forged in (
            # The issuer of one, signed by the other, by its name for the key or by one's own.
            provider.token(**own),
            provider.token(kid=key.key_id, **own),
            jwt.encode(provider.claims(**outside), key.private, key.algorithm, headers={"kid": key.key_id}),
            jwt.encode(provider.claims(**outside), key.private, key.algorithm, headers={"kid": "ES256"}),
            # An access token that says the issuer of ID tokens, and the other way round.
            jwt.encode({**own, "iss": ISSUER}, key.private, key.algorithm, headers={"kid": key.key_id}),
            provider.token(**{**outside, "iss": ISSUER}),
            provider.token(**{**outside, "iss": own["iss"]}),
            got["id_token"],
        ):
            assert both.with_token(forged).get("/classrooms").status_code == 401
        # No ID token of the other provider is a hint.
        hint = provider.token(**{**claims_of(got["id_token"]), "iss": ISSUER})
        signed_out(both, id_token_hint=hint)
        assert works(both, got["access_token"])
    # Where the outside provider is alone, there is nothing of the built-in one.
    alone = enter(auth_url="https://login.example.com", built_in_provider=False).app.test_client()
    assert alone.get("/auth/authorize").status_code == 404
    assert alone.post("/auth/oauth/token", data={}).status_code == 404


def test_the_document_has_the_operations_that_an_address_adds(entrance, without_address):
    added = entrance.document.operations().keys() - Document(without_address).operations().keys()

    assert added == {
        ("GET", "/auth/.well-known/openid-configuration"),
        ("POST", "/auth/oauth/revoke"),
        ("GET", "/auth/userinfo"),
        ("POST", "/auth/userinfo"),
    }
    # The pages are no part of it.
    assert not [path for _, path in entrance.document.operations() if "authorize" in path or "logout" in path]
