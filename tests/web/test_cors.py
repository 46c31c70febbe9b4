"""Scripts of pages may read answers: none by default, the pages of CORS_ORIGINS, or all."""

from __future__ import annotations

from dataclasses import replace
from uuid import uuid4

import pytest

from school_service.app import create_app
from school_service.web.response_headers import answer_fields
from tests.conftest import dispose
from tests.factories import UNKNOWN_ID

OURS, THEIRS = "https://app.example.com", "https://evil.example.com"
IPV6 = "http://[::1]:5173"
EXPOSED = (
    "Allow, Content-Disposition, ETag, Idempotency-Replayed, Retry-After, WWW-Authenticate, X-Request-ID"
)


def application(settings, *origins, **options):
    return create_app(replace(settings, cors_origins=origins, **options))


@pytest.fixture(scope="module")
def opened(settings, tenancy):
    app = application(settings, OURS, IPV6, max_upload_bytes=1000)
    yield app
    dispose(app)


@pytest.fixture(scope="module")
def opened_to_all(settings, tenancy):
    app = application(settings, "*")
    yield app
    dispose(app)


def cors(answer):
    """Give the fields of an answer that concern CORS, without the fields of every answer."""
    return {name: value for name, value in answer.headers if name.startswith("Access-Control-")}


def ask(app, origin, path="/classrooms", method="GET", **headers):
    if origin is not None:
        headers["Origin"] = origin
    return app.test_client().open(path, method=method, headers=headers)


def preflight(app, origin, path="/classrooms", method="PATCH", fields="authorization,x-school-id"):
    wanted = {"Access-Control-Request-Method": method, "Access-Control-Request-Headers": fields}
    return app.test_client().options(path, headers={"Origin": origin, **wanted})


def test_by_default_no_page_may_read_an_answer(app):
    assert app.extensions["school-service"].settings.cors_origins == ()
    for answer in (ask(app, OURS), preflight(app, OURS), ask(app, OURS, "/health")):
        assert cors(answer) == {}
        assert "Vary" not in answer.headers


@pytest.mark.parametrize("origin", [OURS, IPV6])
def test_a_page_of_ours_may_read_an_answer_and_its_request_id(opened, origin):
    answer = ask(opened, origin, "/health")

    assert answer.status_code == 200
    assert cors(answer) == {
        "Access-Control-Allow-Origin": origin,
        "Access-Control-Expose-Headers": EXPOSED,
    }
    assert answer.headers["Vary"] == "Origin"


@pytest.mark.parametrize(
    "origin",
    [
        THEIRS,
        "null",
        "http://app.example.com",
        f"{OURS}:8443",
        f"{OURS}.evil.example.com",
        "https://app-example.com",
        "https://x.app.example.com",
        f"{OURS}\t",
        "http://::1:5173",
        "*",
        ".*",
        "",
    ],
)
def test_no_other_page_may_and_no_cache_mixes_the_two_up(opened, origin):
    for answer in (ask(opened, origin, "/health"), preflight(opened, origin)):
        assert cors(answer) == {}
        assert answer.headers["Vary"] == "Origin"


@pytest.mark.parametrize("path", ["/openapi.json", "/auth/.well-known/jwks.json", "/health"])
def test_an_answer_to_a_request_without_origin_varies_by_it_too(opened, path):
    # A browser that has stored it so must not hand it to a script.
    assert ask(opened, None, path).headers["Vary"] == "Origin"


@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "PATCH", "DELETE"])
def test_a_preflight_allows_every_method_and_field_and_can_be_stored(opened, method):
    answer = preflight(opened, OURS, method=method, fields="authorization,content-type,x-school-id")

    assert answer.status_code == 200
    assert cors(answer) == {
        "Access-Control-Allow-Origin": OURS,
        "Access-Control-Allow-Methods": "DELETE, GET, PATCH, POST, PUT",
        "Access-Control-Allow-Headers": "authorization, content-type, x-school-id",
        "Access-Control-Expose-Headers": EXPOSED,
        "Access-Control-Max-Age": "7200",
    }


@pytest.mark.parametrize("path", ["/nothing", f"/classrooms/{UNKNOWN_ID}x", "/classrooms/not-a-uuid"])
def test_a_preflight_of_a_wrong_address_lets_the_script_see_the_404(opened, path):
    assert preflight(opened, OURS, path, "GET").status_code == 200

    answer = ask(opened, OURS, path)
    assert (answer.status_code, answer.get_json()["code"]) == (404, 404)
    assert cors(answer)["Access-Control-Allow-Origin"] == OURS


def test_options_without_a_preflight_stay_as_they_are(opened, app):
    for application in (opened, app):
        answer = ask(application, OURS, method="OPTIONS")
        assert set(answer.headers["Allow"].split(", ")) == {"GET", "HEAD", "OPTIONS", "POST"}


def test_a_script_may_read_every_error(opened, place, monkeypatch):
    client = opened.test_client()
    token = {"Authorization": f"Bearer {place.admin_token}", "X-SCHOOL-ID": str(place.id)}
    elsewhere = {**token, "X-SCHOOL-ID": str(uuid4())}

    def fail(*_):
        raise MemoryError

    def status(answer):
        assert cors(answer)["Access-Control-Allow-Origin"] == OURS, answer.status_code
        assert "X-Request-ID" in cors(answer)["Access-Control-Expose-Headers"]
        assert answer.get_json()["request_id"] == answer.headers["X-Request-ID"]
        return answer.status_code

    def send(method, path, headers=token, **options):
        return status(client.open(path, method=method, headers={**headers, "Origin": OURS}, **options))

    statuses = [
        send("GET", "/users", {"Authorization": token["Authorization"]}),
        send("GET", "/users", {}),
        send("GET", "/users", elsewhere),
        send("GET", f"/classrooms/{uuid4()}"),
        send("PUT", "/classrooms"),
        send("POST", "/classrooms", data=b" " * (2**20 + 1), content_type="application/json"),
        send("POST", "/classrooms", data="name=x", content_type="text/plain"),
        send("POST", "/classrooms", json={}),
    ]
    state = opened.extensions["school-service"]
    monkeypatch.setattr(state.verifier, "verify", fail)
    statuses.append(send("GET", "/users"))

    assert statuses == [400, 401, 403, 404, 405, 413, 415, 422, 500]


def test_a_script_may_read_that_the_database_is_away_and_when_to_come_again(settings):
    nowhere = settings.database_url.set(host="127.0.0.1", port=1)
    app = application(settings, OURS, database_url=nowhere)

    answer = ask(app, OURS, "/health")

    assert answer.status_code == 503
    assert "Retry-After" in answer.headers
    assert "Retry-After" in cors(answer)["Access-Control-Expose-Headers"]
    dispose(app)


@pytest.mark.parametrize("origin", [OURS, THEIRS, "null", None])
def test_where_all_origins_may_the_answer_is_one_for_all(opened_to_all, origin):
    answer = ask(opened_to_all, origin, "/health")

    assert cors(answer) == {"Access-Control-Allow-Origin": "*", "Access-Control-Expose-Headers": EXPOSED}
    assert "Vary" not in answer.headers


@pytest.mark.parametrize(
    "origin", [OURS, IPV6, THEIRS, "null", f"{OURS}:8443", f"{OURS}, {OURS}", OURS.upper(), "*", "", None]
)
def test_an_answer_that_is_made_without_the_application_bears_the_same(app, opened, opened_to_all, origin):
    for application in (app, opened, opened_to_all):
        answer = ask(application, origin, "/health/live")
        fields = {name: value for name, value in answer.headers.items() if name == "Vary"}

        origins = application.extensions["school-service"].settings.cors_origins
        assert answer_fields(origins, origin) == {**cors(answer), **fields}


def test_no_page_may_ever_send_the_credentials_of_its_reader(opened, opened_to_all):
    for app in (opened, opened_to_all):
        for answer in (ask(app, OURS, "/health"), preflight(app, OURS)):
            assert cors(answer)["Access-Control-Allow-Origin"] in {OURS, "*"}
            assert "Access-Control-Allow-Credentials" not in answer.headers
