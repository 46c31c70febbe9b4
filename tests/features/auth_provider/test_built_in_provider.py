"""The built-in identity provider: tokens for machine clients."""

from __future__ import annotations

from collections import Counter
from uuid import uuid4

import jwt
import pytest

from tenants.registry.clients import revoke_client

AUDIENCE = "school-service"


def ask(api, client, secret, /, **fields):
    body = {
        "client_id": client,
        "client_secret": secret,
        "audience": AUDIENCE,
        "grant_type": "client_credentials",
    }
    body = {name: value for name, value in {**body, **fields}.items() if value is not None}
    return api.using(token=None, school=None).post("/auth/oauth/token", body)


@pytest.fixture
def machine(api, grant):
    """Makes a client and a caller with its token."""

    def making(**grants):
        client_id, secret = grant(**grants)
        caller = api.using(token=api.ok(ask(api, client_id, secret))["access_token"])
        caller.client_id, caller.secret = client_id, secret
        return caller

    return making


def revoke(tenancy, client_id):
    with tenancy.admin.begin() as connection:
        revoke_client(connection, client_id)


class TestAskingForAToken:
    def test_the_answer_has_the_form_of_oauth(self, api, grant, place):
        answer = ask(api, *grant(school_ids=[place.id]))

        assert answer.status_code == 200
        assert answer.mimetype == "application/json"
        assert answer.headers["Cache-Control"] == "no-store"
        token = answer.get_json()
        assert token == {"access_token": token["access_token"], "token_type": "Bearer", "expires_in": 86400}

    def test_the_published_key_verifies_the_token(self, api, grant, place):
        client_id, secret = grant(school_ids=[place.id])
        token = api.ok(ask(api, client_id, secret))["access_token"]

        key_set = api.ok(api.using(token=None, school=None).get("/auth/.well-known/jwks.json"))
        [key] = jwt.PyJWKSet.from_dict(key_set).keys
        claims = jwt.decode(
            token,
            key,
            algorithms=["ES256"],
            audience=AUDIENCE,
            options={"require": ["exp", "iat", "iss", "aud", "sub"]},
        )
        assert jwt.get_unverified_header(token)["kid"] == key.key_id
        assert (claims["sub"], claims["client_id"]) == (client_id, client_id)
        assert claims["exp"] - claims["iat"] == 86400

    def test_the_published_keys_are_public(self, api):
        [key] = api.ok(api.using(token=None, school=None).get("/auth/.well-known/jwks.json"))["keys"]

        assert set(key) == {"kty", "crv", "x", "y", "use", "alg", "kid"}

    def test_a_wrong_client_and_a_wrong_secret_are_answered_alike(self, api, grant, place, tenancy):
        client_id, secret = grant(school_ids=[place.id])
        revoked, revoked_secret = grant(school_ids=[place.id])
        revoke(tenancy, revoked)
        answers = [
            ask(api, client_id, "wrong"),
            ask(api, client_id, secret + "x"),
            ask(api, client_id, f" {secret}"),
            ask(api, client_id, secret.swapcase()),
            ask(api, f"{client_id}x", secret),
            ask(api, "unknown", "wrong"),
            ask(api, client_id.upper(), secret),
            ask(api, revoked, revoked_secret),
            ask(api, "admin", "correct horse battery staple"),
            ask(api, client_id, "пароль-密码"),
        ]

        for answer in answers:
            body = answer.get_json()
            assert body.pop("request_id") == answer.headers["X-Request-ID"]
            assert body == {
                "code": 401,
                "status": "Unauthorized",
                "type": "wrong-credentials",
                "message": "The client or its secret is wrong.",
            }
            assert (answer.status_code, answer.headers["WWW-Authenticate"]) == (401, "Bearer")

    def test_made_up_clients_are_refused_after_some(self, api, grant):
        answers = Counter(ask(api, f"made-up-{number}", "x").status_code for number in range(200))

        assert answers == {401: 60, 429: 140}
        # From elsewhere nobody is refused for that.
        token = api.using(token=None, school=None).post(
            "/auth/oauth/token",
            {
                **dict(zip(("client_id", "client_secret"), grant(), strict=True)),
                "audience": "school-service",
                "grant_type": "client_credentials",
            },
            environ_base={"REMOTE_ADDR": "203.0.113.8"},
        )
        assert token.status_code == 200

    def test_wrong_secrets_from_everywhere_keep_no_client_out(self, api, grant):
        client_id, secret = grant()
        for number in range(150):
            answer = api.using(token=None, school=None).post(
                "/auth/oauth/token",
                {
                    "client_id": client_id,
                    "client_secret": "wrong",
                    "audience": "school-service",
                    "grant_type": "client_credentials",
                },
                environ_base={"REMOTE_ADDR": f"10.6.0.{number}"},
            )
            assert answer.status_code == 401

        assert ask(api, client_id, secret).status_code == 200

    @pytest.mark.parametrize("audience", ["another", "School-Service", "school-service/", "*"])
    def test_another_audience_is_forbidden(self, api, grant, audience):
        client_id, secret = grant()

        assert ask(api, client_id, secret, audience=audience).status_code == 403

    def test_the_audience_is_not_told_to_strangers(self, api, grant):
        client_id, _ = grant()

        assert ask(api, client_id, "wrong", audience="another").status_code == 401

    @pytest.mark.parametrize("field", ["client_id", "client_secret", "audience", "grant_type"])
    def test_a_missing_field_is_invalid(self, api, grant, field):
        answer = ask(api, *grant(), **{field: None})

        assert answer.status_code == 422
        assert answer.get_json()["errors"] == {"json": {field: ["Missing data for required field."]}}

    @pytest.mark.parametrize("value", ["", 5, [], {}, True, "a\0b", "\ud800"], ids=repr)
    @pytest.mark.parametrize("field", ["client_id", "client_secret", "audience"])
    def test_a_field_of_another_type_is_invalid(self, api, grant, field, value):
        answer = ask(api, *grant(), **{field: value})

        assert answer.status_code == 422
        assert list(answer.get_json()["errors"]["json"]) == [field]

    @pytest.mark.parametrize("other", ["password", "implicit", "CLIENT_CREDENTIALS", "", 5])
    def test_another_grant_is_invalid(self, api, grant, other):
        answer = ask(api, *grant(), grant_type=other)

        assert answer.status_code == 422
        assert list(answer.get_json()["errors"]["json"]) == ["grant_type"]

    def test_a_field_that_is_none_of_these_is_invalid(self, api, grant):
        assert ask(api, *grant(), scope="read:roles").status_code == 422

    @pytest.mark.parametrize("content_type", ["multipart/form-data", "text/plain", "application/xml"])
    def test_other_media_types_are_not_accepted(self, api, grant, content_type):
        client_id, secret = grant()
        form = {"client_id": client_id, "client_secret": secret, "grant_type": "client_credentials"}
        body = form if content_type == "multipart/form-data" else "client_id=x"

        answer = api.using(token=None, school=None).request(
            "POST", "/auth/oauth/token", data=body, content_type=content_type
        )

        assert answer.status_code == 415

    def test_a_body_that_is_no_json_is_not_understood(self, api):
        answer = api.using(token=None, school=None).request(
            "POST", "/auth/oauth/token", data="{", content_type="application/json"
        )

        assert answer.status_code == 400

    def test_a_token_that_comes_along_is_not_looked_at(self, api, grant):
        client_id, secret = grant()
        body = {"client_id": client_id, "client_secret": secret, "audience": AUDIENCE}

        answer = api.using(token="garbage").post(
            "/auth/oauth/token", {**body, "grant_type": "client_credentials"}
        )

        assert answer.status_code == 200

    def test_the_secret_is_kept_as_a_hash(self, grant, tenancy):
        client_id, secret = grant()
        with tenancy.admin.connect() as connection:
            row = connection.exec_driver_sql(
                "SELECT * FROM registry.clients WHERE id = %s", (client_id,)
            ).one()

        assert secret not in str(row)
        assert len(secret) >= 40


class TestRightsOfAClient:
    def test_a_client_enters_the_schools_of_its_grant(self, machine, place, other_place):
        client = machine(school_ids=[place.id], permissions=["read:roles"])

        assert client.get("/roles").status_code == 200
        assert client.using(school=other_place.id).get("/roles").status_code == 403
        assert client.using(school=uuid4()).get("/roles").status_code == 403

    def test_a_client_of_all_schools_enters_each(self, machine, other_place):
        client = machine(all_schools=True, permissions=["read:roles"])

        assert client.get("/roles").status_code == 200
        assert client.using(school=other_place.id).get("/roles").status_code == 200
        assert client.using(school=uuid4()).get("/roles").status_code == 404

    def test_a_client_of_no_school_enters_none(self, machine):
        client = machine(all_permissions=True)

        assert client.get("/roles").status_code == 403
        assert client.using(school=None).get("/roles").status_code == 400

    def test_a_client_has_the_permissions_of_the_grant(self, machine, place):
        client = machine(school_ids=[place.id], permissions=["read:roles", "write:users"])

        assert client.get("/roles").status_code == 200
        answer = client.get("/users")
        assert (answer.status_code, answer.get_json()["message"]) == (
            403,
            "This needs the permission read:users.",
        )

    def test_a_client_without_permissions_may_call_operations_that_need_none(self, machine, place):
        client = machine(school_ids=[place.id])

        assert client.get("/roles").status_code == 403
        assert client.get("/states").status_code == 200
        signed_in = client.post(
            "/users/login", {"username": "admin", "password": "correct horse battery staple"}
        )
        assert signed_in.status_code == 200

    def test_all_permissions_include_the_schools_own(self, machine, place):
        client = machine(school_ids=[place.id], all_permissions=True)
        made = client.ok(client.post("/permissions", {"section": "canteen", "access": "read"}))
        role = client.ok(client.post("/roles", {"name": "Cook", "avatar": 1}))

        answer = client.patch(f"/roles/{role['id']}/permissions", {"permissionIds": [made["id"]]})

        assert answer.status_code == 200

    def test_the_only_school_of_a_grant_needs_no_header_where_it_is_optional(self, machine, place):
        client = machine(school_ids=[place.id], permissions=["read:roles", "read:users"]).using(school=None)

        assert client.get("/roles").status_code == 200
        assert client.get("/users").status_code == 400

    def test_several_schools_of_a_grant_need_the_header(self, machine, place, other_place):
        for grants in ({"school_ids": [place.id, other_place.id]}, {"all_schools": True}):
            client = machine(**grants, permissions=["read:roles"])
            assert client.using(school=None).get("/roles").status_code == 400
            assert client.get("/roles").status_code == 200

    def test_a_revoked_clients_tokens_stop_at_once(self, api, machine, place, tenancy):
        client = machine(school_ids=[place.id], permissions=["read:roles"])
        assert client.get("/roles").status_code == 200

        revoke(tenancy, client.client_id)

        answer = client.get("/roles")
        assert answer.status_code == 401
        assert answer.headers["WWW-Authenticate"] == 'Bearer error="invalid_token"'
        assert ask(api, client.client_id, client.secret).status_code == 401

    def test_a_school_taken_from_the_grant_is_closed_at_once(self, machine, place, other_place, tenancy):
        client = machine(school_ids=[place.id, other_place.id], permissions=["read:roles"])
        with tenancy.admin.begin() as connection:
            connection.exec_driver_sql(
                "DELETE FROM registry.client_schools WHERE client_id = %s AND school_id = %s",
                (client.client_id, str(place.id)),
            )

        assert client.get("/roles").status_code == 403
        assert client.using(school=other_place.id).get("/roles").status_code == 200

    def test_a_client_is_no_user(self, machine, place):
        client = machine(school_ids=[place.id])

        own_password = {"password": "new", "current_password": "correct horse battery staple"}
        assert client.put(f"/users/{place.admin_id}/password", own_password).status_code == 403

    def test_a_client_with_the_id_of_a_user_is_not_that_user(self, api, machine, make, place):
        caller = make.caller("read:roles")
        client = machine(client_id=caller.user["id"], school_ids=[place.id])

        assert client.get("/roles").status_code == 403
        assert client.get(f"/users/{caller.user['id']}").status_code == 403
        password = {"password": "new", "current_password": "a password"}
        assert client.put(f"/users/{caller.user['id']}/password", password).status_code == 403
