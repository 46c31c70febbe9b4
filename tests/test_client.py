"""The tests' own client: its short ways answer as the long ones do."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest
from werkzeug.test import EnvironBuilder

from tests.client import plain_environ
from tests.factories import UNKNOWN_ID

JSON = "application/json"
PLAIN: dict[str, dict[str, Any]] = {
    "a path": {"path": f"/classrooms/{UNKNOWN_ID}"},
    "a query in the path": {"path": "/users?search=a%20b&pageSize=5&empty="},
    "a query": {
        "path": "/users",
        "query_string": {"search": "Ọkàfọr & 'co'+/?", "page": 2, "no": None, "on": True},
    },
    "several values": {"path": "/users", "query_string": {"id": [UUID(UNKNOWN_ID), "b"], "none": []}},
    "a body": {"path": "/users", "method": "POST", "data": '{"name":"Ọ"}', "content_type": JSON},
    "bytes": {"path": "/users", "method": "PUT", "data": b"\xff\x00", "content_type": "image/png"},
    "headers": {
        "path": "/users",
        "headers": {"X-SCHOOL-ID": UUID(UNKNOWN_ID), "If-Match": '"1"', "Host": "a.example"},
    },
}


@pytest.mark.parametrize("options", PLAIN.values(), ids=PLAIN)
def test_a_plain_request_is_as_werkzeug_builds_it(options: dict[str, Any]) -> None:
    written = plain_environ(**{"method": "GET", "headers": {}, **options})
    built = EnvironBuilder(**options).get_environ()

    assert written is not None
    assert written.pop("wsgi.input").read() == built.pop("wsgi.input").read()
    assert written == built


@pytest.mark.parametrize(
    "options",
    [
        {"path": "/users/%20"},
        {"path": "/Ọ"},
        {"path": "/users?a=1", "query_string": {"b": 2}},
        {"path": "/users?a=Ọ"},
        {"path": "/users", "query_string": "a=1"},
        {"path": "/users", "json": {}},
        {"path": "/users", "data": {"file": "a form"}},
        {"path": "/users", "data": "", "content_type": JSON},
        {"path": "/users", "data": "{}", "headers": {"Content-Length": "5"}},
    ],
)
def test_a_request_that_is_not_plain_is_left_to_werkzeug(options: dict[str, Any]) -> None:
    assert plain_environ(**{"method": "POST", "headers": {}, **options}) is None
