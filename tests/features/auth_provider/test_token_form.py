"""The token endpoint as OAuth clients use it: forms, HTTP Basic, errors and metadata, by RFC 6749 and RFC 8414."""

from __future__ import annotations

import base64
import io
from dataclasses import replace
from urllib.parse import quote_plus, urlencode, urlsplit

import jwt
import pytest
import requests
from authlib.integrations.base_client import OAuthError
from authlib.integrations.requests_client import OAuth2Session as AuthlibSession
from authlib.oauth2.rfc8414 import AuthorizationServerMetadata, get_well_known_url
from oauthlib.oauth2 import BackendApplicationClient, InvalidClientError, UnsupportedGrantTypeError
from requests.auth import HTTPBasicAuth
from requests_oauthlib import OAuth2Session

from school_service.web.client_address import service_address

BASE = "https://schools.example.org"
TOKEN = "/auth/oauth/token"
GRANT = {"grant_type": "client_credentials"}
FORM = "application/x-www-form-urlencoded"


class ToTheApplication(requests.adapters.BaseAdapter):
    """Lets requests speak to an application without a network."""

    def __init__(self, app):
        super().__init__()
        self.app = app

    def send(self, request, **_options):
        parts = urlsplit(request.url)
        answer = self.app.test_client().open(
            parts.path,
            base_url=f"{parts.scheme}://{parts.netloc}",
            query_string=parts.query,
            method=request.method,
            headers=dict(request.headers),
            data=request.body,
        )
        response = requests.Response()
        response.status_code, response.request, response.url = answer.status_code, request, request.url
        response.headers.update(answer.headers.items())
        response.raw = io.BytesIO(answer.data)
        return response

    def close(self):
        """Nothing is open."""


def basic(client, secret, encode=quote_plus):
    text = f"{encode(client)}:{encode(secret)}".encode()
    return {"Authorization": f"Basic {base64.b64encode(text).decode()}"}


@pytest.fixture
def ask(api):
    """Sends a form, a mapping or a text, to the token endpoint."""

    def send(form, headers=(), **options):
        body = form if isinstance(form, str | bytes) else urlencode(form)
        caller = api.using(token=None, school=None)
        return caller.request("POST", TOKEN, data=body, content_type=FORM, headers=dict(headers), **options)

    return send


def refusal(answer):
    """Check that an error is one of RFC 6749 and of the service; give its status and code."""
    body = answer.get_json()
    assert body["error_description"]
    assert all(letter not in '"\\' and " " <= letter <= "~" for letter in body["error_description"])
    assert set(body) == {"code", "status", "type", "message", "request_id", "error", "error_description"}
    assert answer.headers["Cache-Control"] == "no-store"
    assert answer.headers["Pragma"] == "no-cache"
    assert answer.headers.getlist("Content-Type") == ["application/json"]
    if answer.status_code == 401:
        assert answer.headers.getlist("WWW-Authenticate") == ['Basic realm="token endpoint", charset="UTF-8"']
    return answer.status_code, body["error"]


class TestAskingByForm:
    def test_the_client_authenticates_by_basic_or_in_the_form(self, ask, grant, place):
        client, secret = grant(school_ids=[place.id])
        ways = [
            ask(GRANT, basic(client, secret)),
            ask({**GRANT, "client_id": client}, basic(client, secret)),
            ask({**GRANT, "client_id": client, "client_secret": secret}),
            ask({**GRANT, "client_id": client, "client_secret": secret, "audience": "school-service"}),
        ]

        for answer in ways:
            assert answer.status_code == 200
            token = answer.get_json()
            assert token == {
                "access_token": token["access_token"],
                "token_type": "Bearer",
                "expires_in": 86400,
            }
            assert (answer.headers["Cache-Control"], answer.headers["Pragma"]) == ("no-store", "no-cache")
            claims = jwt.decode(token["access_token"], options={"verify_signature": False})
            assert (claims["client_id"], claims["aud"]) == (client, "school-service")

    def test_the_token_opens_the_clients_schools_and_no_other(self, ask, api, grant, place, other_place):
        client, secret = grant(school_ids=[place.id], permissions=["read:roles"])
        caller = api.using(token=ask(GRANT, basic(client, secret)).get_json()["access_token"])

        assert caller.get("/roles").status_code == 200
        assert caller.using(school=other_place.id).get("/roles").status_code == 403

    def test_members_that_the_rfc_ignores_are_ignored(self, ask, grant):
        client, secret = grant()
        form = {**GRANT, "scope": "", "audience": "", "client_id": "", "resource": "x", "pad": "y"}

        assert ask(form, basic(client, secret)).status_code == 200
        assert ask(urlencode(form) + "&pad=z", basic(client, secret)).status_code == 200
        assert ask(GRANT, basic(client, secret), query_string={"scope": "x"}).status_code == 200

    def test_a_client_id_of_any_letters_is_encoded_in_basic(self, ask, grant):
        client, secret = grant(client_id="Yaba: Ọ̀ṣun + 100% app")

        assert ask(GRANT, basic(client, secret)).status_code == 200
        assert refusal(ask(GRANT, basic(client, secret, encode=str))) == (401, "invalid_client")

    @pytest.mark.parametrize(
        ("more", "headers", "error"),
        [
            ({"grant_type": ""}, {}, (400, "invalid_request")),
            ({"grant_type": "password"}, {}, (400, "unsupported_grant_type")),
            ({"grant_type": "CLIENT_CREDENTIALS"}, {}, (400, "unsupported_grant_type")),
            ({"scope": "read:roles"}, {}, (400, "invalid_scope")),
            ({"audience": "another"}, {}, (400, "invalid_target")),
            ({"client_secret": "wrong"}, {}, (401, "invalid_client")),
            ({"client_secret": "пароль-密码"}, {}, (401, "invalid_client")),
            ({"client_secret": ""}, {}, (401, "invalid_client")),
            ({"client_id": "nobody"}, {}, (401, "invalid_client")),
            ({"client_id": ""}, {}, (401, "invalid_client")),
            ({"client_id": "a\0b"}, {}, (401, "invalid_client")),
            ({"client_id": "x" * 200}, {}, (400, "invalid_request")),
            ({"client_secret": "x" * 501}, {}, (400, "invalid_request")),
            ({}, basic("nobody", "wrong"), (400, "invalid_request")),
            ({"client_secret": ""}, basic("nobody", "wrong"), (400, "invalid_request")),
            ({"client_id": "", "client_secret": ""}, basic("nobody", "wrong"), (401, "invalid_client")),
            ({"client_id": "", "client_secret": ""}, basic("nobody", ""), (401, "invalid_client")),
            ({"client_id": "", "client_secret": ""}, {"Authorization": "Basic"}, (401, "invalid_client")),
            ({"client_id": "", "client_secret": ""}, {"Authorization": "Basic ä"}, (401, "invalid_client")),
            (
                {"client_id": "", "client_secret": ""},
                {"Authorization": "Basic /w=="},
                (401, "invalid_client"),
            ),
            (
                {"client_id": "", "client_secret": ""},
                {"Authorization": "Basic bm8="},
                (401, "invalid_client"),
            ),
            ({"client_id": "", "client_secret": ""}, basic("%FF", "x", str), (401, "invalid_client")),
        ],
    )
    def test_each_fault_has_the_error_of_the_rfc(self, ask, grant, more, headers, error):
        client, secret = grant()
        form = {**GRANT, "client_id": client, "client_secret": secret}

        assert refusal(ask({**form, **more}, headers)) == error
        assert ask(form).status_code == 200

    @pytest.mark.parametrize("name", ["grant_type", "client_id", "client_secret", "audience", "scope"])
    def test_a_parameter_comes_once(self, ask, grant, name):
        client, secret = grant()
        form = {
            **GRANT,
            "client_id": client,
            "client_secret": secret,
            "audience": "school-service",
            "scope": "x",
        }

        answer = ask(f"{urlencode(form)}&{name}={form[name]}")

        assert refusal(answer) == (400, "invalid_request")
        assert name in answer.get_json()["error_description"]

    def test_a_form_too_large_is_not_read(self, ask):
        answer = ask("pad=" + "x" * (64 * 1024))

        assert refusal(answer) == (413, "invalid_request")

    def test_a_body_that_is_no_text_is_refused(self, ask):
        assert refusal(ask(b"\xff\x00grant_type")) == (400, "invalid_request")

    def test_wrong_secrets_are_counted_as_in_json(self, ask, grant):
        client, secret = grant()
        for _ in range(10):
            assert refusal(ask(GRANT, basic(client, "wrong")))[0] == 401

        answer = ask(GRANT, basic(client, "wrong"))

        assert refusal(answer) == (429, "temporarily_unavailable")
        assert int(answer.headers["Retry-After"]) > 0
        assert ask(GRANT, basic(client, secret)).status_code == 429

    def test_a_failure_of_the_service_is_server_error(self, ask, monkeypatch):
        def fail(*_, **__):
            raise MemoryError("secret")

        monkeypatch.setattr("school_service.features.auth_provider.service.issue_token", fail)

        assert refusal(ask(GRANT, basic("a", "b"))) == (500, "server_error")

    def test_json_has_the_errors_of_every_operation(self, api, grant):
        client, _ = grant()
        body = {**GRANT, "client_id": client, "client_secret": "wrong", "audience": "school-service"}

        answer = api.using(token=None, school=None).post(TOKEN, body)

        assert answer.status_code == 401
        assert set(answer.get_json()) == {"code", "status", "type", "message", "request_id"}
        assert answer.headers["WWW-Authenticate"] == "Bearer"


class TestRequestsOAuthlib:
    def fetch(self, app, client, secret, grant_type="client_credentials", **options):
        asking = BackendApplicationClient(client_id=client)
        asking.grant_type = grant_type
        session = OAuth2Session(client=asking)
        session.mount(BASE, ToTheApplication(app))
        session.fetch_token(BASE + TOKEN, client_secret=secret, **options)
        return session

    def test_the_library_gets_a_token_and_works_with_it(self, rehearsed, grant, place):
        client, secret = grant(school_ids=[place.id], permissions=["read:roles"])
        for options in ({"auth": HTTPBasicAuth(client, secret)}, {"include_client_id": True}, {}):
            session = self.fetch(rehearsed, client, secret, **options)

            answer = session.get(f"{BASE}/roles", headers={"X-SCHOOL-ID": str(place.id)})

            assert (answer.status_code, session.token["expires_in"]) == (200, 86400)

    def test_its_exception_names_the_fault(self, rehearsed, grant):
        client, secret = grant()
        with pytest.raises(InvalidClientError):
            self.fetch(rehearsed, client, "wrong")
        with pytest.raises(UnsupportedGrantTypeError):
            self.fetch(rehearsed, client, secret, grant_type="urn:example:other")


class TestAuthlib:
    def client(self, app, client, secret, method):
        session = AuthlibSession(client, secret, token_endpoint_auth_method=method)
        session.mount(BASE, ToTheApplication(app))
        return session

    @pytest.mark.parametrize("method", ["client_secret_basic", "client_secret_post"])
    def test_the_library_gets_a_token_and_works_with_it(self, rehearsed, grant, place, method):
        with self.client(
            rehearsed, *grant(school_ids=[place.id], permissions=["read:roles"]), method
        ) as client:
            token = client.fetch_token(BASE + TOKEN, grant_type="client_credentials")

            answer = client.get(f"{BASE}/roles", headers={"X-SCHOOL-ID": str(place.id)})

            assert (answer.status_code, token["token_type"]) == (200, "Bearer")

    @pytest.mark.parametrize("method", ["client_secret_basic", "client_secret_post"])
    def test_its_exception_names_the_fault(self, rehearsed, grant, method):
        client_id, _ = grant()
        client = self.client(rehearsed, client_id, "wrong", method)

        with pytest.raises(OAuthError) as caught:
            client.fetch_token(BASE + TOKEN, grant_type="client_credentials")

        assert caught.value.error == "invalid_client"
        assert caught.value.description == "The client or its secret is wrong."


class TestMetadata:
    PATHS = {
        "/.well-known/oauth-authorization-server": BASE,
        "/.well-known/oauth-authorization-server/auth": f"{BASE}/auth",
        "/auth/.well-known/oauth-authorization-server": f"{BASE}/auth",
    }

    @pytest.mark.parametrize("path", PATHS)
    def test_the_metadata_is_valid_by_the_rfc(self, api, path):
        answer = api.using(token=None, school=None).get(path, base_url=BASE)

        metadata = AuthorizationServerMetadata(api.ok(answer))
        metadata.validate()
        assert metadata["issuer"] == self.PATHS[path]
        assert get_well_known_url(metadata["issuer"], external=True) in {BASE + path for path in self.PATHS}
        assert answer.headers["Cache-Control"] == "no-store"

    def test_the_addresses_of_the_metadata_are_served(self, api, grant):
        caller = api.using(token=None, school=None)
        metadata = api.ok(caller.get("/.well-known/oauth-authorization-server", base_url=BASE))
        client, secret = grant()

        keys = caller.get(metadata["jwks_uri"].removeprefix(BASE))
        token = caller.request(
            "POST",
            metadata["token_endpoint"].removeprefix(BASE),
            data=urlencode(GRANT),
            content_type=FORM,
            headers=basic(client, secret),
        )

        assert (keys.status_code, token.status_code) == (200, 200)

    @pytest.mark.parametrize(
        ("peer", "headers", "base"),
        [
            ("127.0.0.1", {"X-Forwarded-Proto": "https"}, "https://localhost"),
            ("127.0.0.1", {"X-Forwarded-Proto": "ftp"}, "http://localhost"),
            ("127.0.0.1", {"Host": "schools.example.org:8443"}, "http://schools.example.org:8443"),
            ("192.0.2.1", {"X-Forwarded-Proto": "https"}, "http://localhost"),
            ("127.0.0.1", {"X-Forwarded-Host": "evil.example", "Forwarded": "host=evil"}, "http://localhost"),
            ("127.0.0.1", {"X-Forwarded-Prefix": "/schools"}, "http://localhost/schools"),
            ("127.0.0.1", {"X-Forwarded-Prefix": "/schools/north/"}, "http://localhost/schools/north"),
            ("127.0.0.1", {"X-Forwarded-Prefix": "/"}, "http://localhost"),
            ("127.0.0.1", {"X-Forwarded-Prefix": "schools"}, "http://localhost"),
            ("127.0.0.1", {"X-Forwarded-Prefix": "//evil.example"}, "http://localhost"),
            ("127.0.0.1", {"X-Forwarded-Prefix": '/a" <b>'}, "http://localhost"),
            ("192.0.2.1", {"X-Forwarded-Prefix": "/schools"}, "http://localhost"),
        ],
    )
    def test_a_trusted_proxy_tells_the_scheme_and_prefix_it_took_away(
        self, without_address, monkeypatch, peer, headers, base
    ):
        state = without_address.extensions["school-service"]
        trusting = type(state.settings).load(
            {"DATABASE_URL": "postgresql://a@b/c", "TRUSTED_PROXIES": "127.0.0.1"}
        )
        monkeypatch.setattr(
            state, "settings", replace(state.settings, trusted_proxies=trusting.trusted_proxies)
        )
        with without_address.test_request_context(headers=headers, environ_base={"REMOTE_ADDR": peer}):
            assert service_address() == base

    def test_behind_a_prefix_the_addresses_have_it(self, without_address):
        with without_address.test_request_context(base_url="https://example.org/schools"):
            assert service_address() == "https://example.org/schools"

    def test_with_a_public_address_nothing_of_the_request_counts(self, app):
        with app.test_request_context(
            base_url="https://evil.example/x", headers={"X-Forwarded-Prefix": "/y"}
        ):
            assert service_address() == BASE
        with app.app_context():
            assert service_address() == BASE


# The document


def test_the_document_shows_errors_as_they_are_answered(api, ask):
    paths, stranger = api.get("/openapi.json").get_json()["paths"], {"client_id": "a", "client_secret": "b"}
    of_json = {**GRANT, **stranger, "grant_type": "password", "audience": "x"}
    of_token = {
        400: ask({**GRANT, **stranger}, basic("a", "b")),
        401: ask({**GRANT, **stranger}),
        413: ask({**GRANT, "scope": "x" * 10**6}),
        422: api.using(token=None, school=None).post(TOKEN, of_json),
    }

    for path, statuses in ((TOKEN, of_token), ("/auth/oauth/revoke", (400, 401, 413))):
        for status in statuses:
            shown = paths[path]["post"]["responses"][str(status)]["content"]["application/json"]["example"]
            answer = of_token[status].get_json()
            assert shown == {**answer, "request_id": shown["request_id"]}
