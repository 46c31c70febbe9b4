"""The routes are bound to a request as Flask binds them, with any host and path."""

from __future__ import annotations

import pytest
from flask import Flask, Request
from werkzeug.exceptions import HTTPException
from werkzeug.test import EnvironBuilder

HOSTS = {
    "a name": "schools.example.org",
    "capitals": "Schools.Example.ORG",
    "a port": "schools.example.org:8000",
    "the scheme's port": "schools.example.org:80",
    "an address": "[::1]:8000",
    "nothing": "",
    "no host": "a b",
    "too long a label": f"{'a' * 70}.example.org",
    "an empty label": "a..example.org",
    "other letters": "sch\u00f6ols.example.org".encode().decode("latin-1"),
}
ADAPTED = (
    "server_name",
    "script_name",
    "subdomain",
    "url_scheme",
    "path_info",
    "default_method",
    "query_args",
)


def environ(**fields):
    """Make the environment of a request."""
    made = EnvironBuilder(path="/classrooms", query_string="a=1").get_environ()
    made.update(fields)
    return {name: value for name, value in made.items() if value is not None}


def bound(bind, fields):
    """Bind the routes; tell the outcome."""
    try:
        adapter = bind(Request(environ(**fields)))
    except HTTPException as error:
        return type(error)
    return {name: getattr(adapter, name) for name in ADAPTED}


@pytest.mark.parametrize(
    "fields",
    [
        *({"HTTP_HOST": host} for host in HOSTS.values()),
        {"HTTP_HOST": None},
        {"HTTP_HOST": None, "SERVER_NAME": "::1", "SERVER_PORT": "8000"},
        {"wsgi.url_scheme": "https", "HTTP_HOST": "schools.example.org:443"},
        {"HTTP_CONNECTION": "Upgrade", "HTTP_UPGRADE": "websocket"},
        {"SCRIPT_NAME": "/below"},
        {"SCRIPT_NAME": "/\u00c3\u00a9", "PATH_INFO": "/\u00c3\u00a9", "QUERY_STRING": "a=\u00c3\u00a9"},
        {"PATH_INFO": "/\u00e9"},
        {"PATH_INFO": "", "QUERY_STRING": "", "REQUEST_METHOD": "POST"},
    ],
    ids=str,
)
def test_the_routes_are_bound_as_flask_does(app, fields):
    expected = bound(lambda request: Flask.create_url_adapter(app, request), fields)

    for _ in range(2):
        assert bound(app.create_url_adapter, fields) == expected


def test_without_a_request_there_is_nothing_to_bind(app):
    assert app.create_url_adapter(None) is None


def test_a_request_reaches_its_view_under_every_host(app):
    for host in HOSTS.values():
        answer = app.test_client().get("/health/live", environ_overrides={"HTTP_HOST": host})
        assert answer.status_code == (
            400 if "long" in host or host.startswith("aaa") or ".." in host else 200
        )
