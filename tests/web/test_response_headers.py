"""Header fields of every answer: no cache stores a person's records, and no browser guesses a media type."""

from __future__ import annotations

import re
from uuid import uuid4

import pytest

from tests.conftest import PASSWORD

NO_STORE = "no-store"
KEYS = ("GET", "/auth/.well-known/jwks.json")


def headers_of(answer):
    return answer.headers.get("Cache-Control"), answer.headers.get("X-Content-Type-Options")


def test_no_cache_stores_the_answer_of_any_operation_but_the_public_keys(api, document):
    for method, path in sorted(document.operations().keys() - {KEYS}):
        answer = api.request(method, re.sub(r"{[^}]+}", lambda _: str(uuid4()), path))

        assert headers_of(answer) == (NO_STORE, "nosniff"), (method, path, answer.status_code)


def test_no_cache_stores_a_record_a_list_a_page_or_a_workbook(api, make):
    classroom = make.classroom()
    for path in (f"/classrooms/{classroom['id']}", "/classrooms", "/users", "/students/import-template"):
        answer = api.get(path)

        assert answer.status_code == 200
        assert headers_of(answer) == (NO_STORE, "nosniff"), path


def test_no_page_may_frame_any_answer(api, app, make):
    make.classroom()
    for path in ("/classrooms", "/users", "/students/import-template", "/nothing", "/letterhead/logo"):
        answer = api.get(path)

        assert answer.headers["Content-Security-Policy"] == "frame-ancestors 'none'", path
    # A page says more, and that too.
    assert "frame-ancestors 'none'" in app.test_client().get("/docs").headers["Content-Security-Policy"]


def test_no_cache_stores_the_token_of_a_sign_in(api):
    signed_in = api.post("/users/login", {"username": "admin", "password": PASSWORD})

    assert signed_in.status_code == 200
    assert headers_of(signed_in) == (NO_STORE, "nosniff")


@pytest.mark.parametrize("kind", ["python", "driver", "memory"])
def test_no_cache_stores_a_failure(probing, kind):
    answer = probing.test_client().get(f"/probe/failure/{kind}")

    assert answer.status_code == 500
    assert headers_of(answer) == (NO_STORE, "nosniff")


@pytest.mark.parametrize("path", ["/nothing", "/classrooms", "/health"])
def test_no_cache_stores_a_refusal_or_an_answer_of_this_moment(app, path):
    assert headers_of(app.test_client().get(path)) == (NO_STORE, "nosniff")


@pytest.mark.parametrize(
    ("path", "cached"),
    [
        ("/openapi.json", "no-cache"),
        ("/docs", "no-cache"),
        (KEYS[1], "public, max-age=300"),
        ("/favicon.ico", "public, max-age=86400"),
    ],
)
def test_a_public_answer_may_be_stored(app, path, cached):
    answer = app.test_client().get(path)

    assert answer.status_code == 200
    assert headers_of(answer) == (cached, "nosniff")
