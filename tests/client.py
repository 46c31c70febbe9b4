"""A client of the API that checks every answer against the OpenAPI document."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from io import BytesIO
from typing import Any
from unittest.mock import patch
from urllib.parse import urlencode

from flask import Flask
from flask.testing import FlaskClient
from jsonschema_rs import Draft4Validator
from openapi_schema_validator import OAS30Validator
from werkzeug.test import TestResponse
from werkzeug.wrappers import Request

from school_service.core.error_types import ErrorType
from school_service.features.auth_provider.views import TokenErrorSchema
from school_service.web.schemas import ErrorSchema

# Checked as OpenAPI 3.0 has them, by a validator that is twenty times as fast.
FORMATS = {
    name: partial(OAS30Validator.FORMAT_CHECKER.conforms, format=name)
    for name in ("uuid", "date", "date-time", "email")
}


class Document:
    """An OpenAPI document, and the check of an answer against it."""

    def __init__(self, app: Flask | None = None, spec: dict[str, Any] | None = None) -> None:
        """Take the document of an application, or the `spec` given out by a service."""
        if app is not None:
            spec = app.extensions["flask-smorest"]["apis"][""]["ext_obj"].spec.to_dict()
        assert spec is not None
        self.spec: dict[str, Any] = spec
        self._paths = [(_addresses(path), path) for path in spec["paths"]]
        self._templates: dict[str, str | None] = {}
        self._validators: dict[tuple[str, str | None, int], Draft4Validator] = {}
        self._checked: set[tuple[str, str | None, int, str, bytes]] = set()

    def operations(self) -> dict[tuple[str, str], dict[str, Any]]:
        """Map (METHOD, path) to each operation."""
        return {
            (method.upper(), path): operation
            for path, item in self.spec["paths"].items()
            for method, operation in item.items()
            if method in {"get", "post", "put", "patch", "delete"}
        }

    def check(self, method: str, path: str, status: int, content_type: str, body: bytes) -> None:
        """Assert that the status is documented for the operation, and that the body fits its schema."""
        template = self._template(path)
        # The first records of a school are read often, and are checked once.
        answer = (method, template, status, content_type, body)
        if answer in self._checked:
            return
        operation = self.spec["paths"].get(template, {}).get(method.lower())
        if operation is None:
            return
        documented = operation["responses"].get(str(status))
        assert documented is not None, f"{method} {template} answered an undocumented {status}"
        while "$ref" in documented:
            documented = self.spec["components"]["responses"][documented["$ref"].rsplit("/", 1)[1]]
        content = documented.get("content", {})
        if status == 304:
            assert (content, body) == ({}, b"")
            return
        media_type = content_type.partition(";")[0].strip()
        assert media_type in content, f"{method} {template} answered {media_type}"
        if media_type == "application/json":
            if (method, template, status) not in self._validators:
                schema = self._inlined(content["application/json"]["schema"])
                self._validators[method, template, status] = Draft4Validator(
                    schema, validate_formats=True, formats=FORMATS
                )
            validator = self._validators[method, template, status]
            problems = [error.message for error in validator.iter_errors(json.loads(body))]
            assert not problems, f"{method} {template} answered against its schema: {problems}"
        self._checked.add(answer)

    def _template(self, path: str) -> str | None:
        """Find the path of the document that an address is one of, if there is any."""
        if path not in self._templates:
            templates = (known for pattern, known in self._paths if pattern.fullmatch(path))
            self._templates[path] = next(templates, None)
        return self._templates[path]

    def _inlined(self, schema: Any) -> Any:
        """Write a schema as JSON Schema: references are replaced by their schemas, and null is a type."""
        if isinstance(schema, list):
            return [self._inlined(part) for part in schema]
        if not isinstance(schema, dict):
            return schema
        if "$ref" in schema:
            name = schema["$ref"].removeprefix("#/components/schemas/")
            return self._inlined(self.spec["components"]["schemas"][name])
        inlined = {key: self._inlined(part) for key, part in schema.items()}
        if schema.get("nullable") is True and isinstance(schema.get("type"), str):
            inlined["type"] = [schema["type"], "null"]
        return inlined

    def check_tag(self, method: str, response: TestResponse) -> None:
        """Assert that an answer has an ETag where the document says so, and nowhere else."""
        path = response.request.path
        template = self._template(path)
        operation = self.spec["paths"].get(template, {}).get(method.lower())
        if operation is not None and response.status_code == 200:
            documented = "ETag" in operation["responses"]["200"].get("headers", {})
            assert documented == ("ETag" in response.headers), f"{method} {template} and its ETag"


def _addresses(template: str) -> re.Pattern[str]:
    """Match the addresses that a path of the document stands for: every parameter of a path is a uuid."""
    return re.compile(re.sub(r"\\\{[^}]*\}", "[0-9a-fA-F-]{36}", re.escape(template)))


# Words by which an error shows the inside: SQL, a driver's text, a traceback, a schema's name.
_INSIDE = re.compile(
    r"\b(SELECT|INSERT INTO|UPDATE \w+ SET|DELETE FROM)\b|psycopg|sqlalchemy|Traceback|\bschool_[0-9a-f]{6,}"
    r'|\b(relation|column|constraint|File) "|, line \d+'
)


HEALTH = {"/health", "/health/ready"}


def check_error(response: TestResponse) -> None:
    """Assert that an error is in the one shape and shows nothing of the inside; health has an answer of its own."""
    if response.status_code < 400 or response.request.method == "HEAD" or response.request.path in HEALTH:
        return
    if response.mimetype == "text/html":
        # A page for a browser has nothing but its own words.
        assert response.request.path.startswith(("/verify/", "/auth/"))
        assert _INSIDE.search(response.get_data(as_text=True)) is None
        return
    body = response.get_json()
    # OAuth's endpoints may answer OAuth's members too.
    schema = TokenErrorSchema if response.request.path.startswith("/auth/oauth/") else ErrorSchema
    assert {"code", "status", "type", "message", "request_id"} <= set(body) <= {*schema().fields}, body
    assert body["code"] == response.status_code
    assert "error" in body or body["code"] in ErrorType(body["type"]).statuses, body
    assert body["request_id"] == response.headers["X-Request-ID"]
    match = _INSIDE.search(str(body))
    assert match is None, f"An error shows {match[0]!r}: {body}"


@contextmanager
def checking_errors() -> Iterator[None]:
    """Check each error that any test client of the service is answered."""
    opening = FlaskClient.open

    def open_and_check(self: FlaskClient, *arguments: Any, **options: Any) -> TestResponse:
        response = opening(self, *arguments, **options)
        if "flask-smorest" in getattr(self.application, "extensions", ()):
            check_error(response)
        return response

    with patch.object(FlaskClient, "open", open_and_check):
        yield


_SERVER = {
    "SCRIPT_NAME": "",
    "SERVER_NAME": "localhost",
    "SERVER_PORT": "80",
    "SERVER_PROTOCOL": "HTTP/1.1",
    "HTTP_HOST": "localhost",
    "wsgi.version": (1, 0),
    "wsgi.url_scheme": "http",
    "wsgi.multithread": False,
    "wsgi.multiprocess": False,
    "wsgi.run_once": False,
}
_PLAIN_PATH = re.compile("/[A-Za-z0-9/_.-]*")
_OF_THE_BODY = re.compile("content-", re.IGNORECASE)
_PLAIN_QUERY = re.compile("[A-Za-z0-9/_.=&+%-]*")


def plain_environ(
    method: str,
    path: str,
    headers: dict[str, Any],
    *,
    query_string: Any = None,
    data: Any = b"",
    content_type: str | None = None,
    **others: Any,
) -> dict[str, Any] | None:
    """Write the WSGI environment of a request as werkzeug's EnvironBuilder does, in a sixth of its time.

    Answers None for a request that takes more than a plain path, a query and a body that is written already.
    """
    where, mark, query = path.partition("?")
    if isinstance(query_string, dict):
        given = [(name, value) for name, value in query_string.items() if value is not None]
        query = urlencode(given, doseq=True, safe="!$'()*,/:;?@")
        plain_query = not mark
    else:
        plain_query = query_string is None and _PLAIN_QUERY.fullmatch(query) is not None
    plain = plain_query and _PLAIN_PATH.fullmatch(where) and isinstance(data, str | bytes)
    if others or not plain or (content_type and not data) or any(map(_OF_THE_BODY.match, headers)):
        return None
    body = data.encode() if isinstance(data, str) else data
    environ = {
        **_SERVER,
        "REQUEST_METHOD": method,
        "PATH_INFO": where,
        "REQUEST_URI": path,
        "RAW_URI": path,
        "QUERY_STRING": query,
        "wsgi.input": BytesIO(body),
        "wsgi.errors": sys.stderr,
        **{f"HTTP_{name.upper().replace('-', '_')}": str(value) for name, value in headers.items()},
    }
    if content_type is not None:
        environ["CONTENT_TYPE"] = content_type
    if body:
        environ["CONTENT_LENGTH"] = str(len(body))
    return environ


class ApiClient:
    """Speaks to the API with a token in a school; every answer is checked against the document."""

    def __init__(self, app: Flask, document: Document, token: str | None = None, school: Any = None) -> None:
        self._client = app.test_client(use_cookies=False)
        self.document = document
        self.app = app
        self.token = token
        self.school = school

    def __deepcopy__(self, _memo: Any) -> ApiClient:
        """Stay the same in a copy of an object that speaks through it: nothing of a client changes."""
        return self

    def using(self, *, token: Any = ..., school: Any = ...) -> ApiClient:
        """Make another client with another token or school; None sends none."""
        return ApiClient(
            self.app,
            self.document,
            self.token if token is ... else token,
            self.school if school is ... else school,
        )

    def send(self, method: str, path: str, **options: Any) -> TestResponse:
        """Send a request; its answer is not checked, unless it is an error (`checking_errors`)."""
        headers = dict(options.pop("headers", {}))
        if self.token is not None:
            headers.setdefault("Authorization", f"Bearer {self.token}")
        if self.school is not None:
            headers.setdefault("X-SCHOOL-ID", str(self.school))
        environ = plain_environ(method, path, headers, **options)
        if environ is not None:
            return self._client.open(Request(environ))
        return self._client.open(path, method=method, headers=headers, **options)

    def request(self, method: str, path: str, **options: Any) -> TestResponse:
        """Send a request and check its answer."""
        response = self.send(method, path, **options)
        if method != "HEAD":
            self.document.check(
                method,
                response.request.path,
                response.status_code,
                response.content_type or "",
                response.get_data(),
            )
            self.document.check_tag(method, response)
        response.get_data()
        response.close()  # as a server does when it has sent the answer
        return response

    def get(self, path: str, **options: Any) -> TestResponse:
        """GET."""
        return self.request("GET", path, **options)

    def post(self, path: str, body: Any = ..., **options: Any) -> TestResponse:
        """POST."""
        return self.request("POST", path, **self._body(body, options))

    def put(self, path: str, body: Any = ..., **options: Any) -> TestResponse:
        """PUT."""
        return self.request("PUT", path, **self._body(body, options))

    def patch(self, path: str, body: Any = ..., **options: Any) -> TestResponse:
        """PATCH."""
        return self.request("PATCH", path, **self._body(body, options))

    def delete(self, path: str, **options: Any) -> TestResponse:
        """DELETE."""
        return self.request("DELETE", path, **options)

    def ok(self, response: TestResponse) -> Any:
        """Assert 200 and return the body."""
        assert response.status_code == 200, response.get_data(as_text=True)
        return response.get_json()

    @staticmethod
    def _body(body: Any, options: dict[str, Any]) -> dict[str, Any]:
        if body is ...:
            return options
        # Written by the standard library and not by the application, so that every text gets there.
        return {"data": json.dumps(body, default=str), "content_type": "application/json", **options}
