"""The OpenAPI document: the meaning of each error, the notes of views' decorators, and the names of operations."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from threading import RLock
from typing import Any

import flask_smorest
from apispec import APISpec, BasePlugin
from apispec.ext.marshmallow import MarshmallowPlugin
from apispec.ext.marshmallow.openapi import OpenAPIConverter
from flask import Flask, Response
from marshmallow import fields
from werkzeug.exceptions import HTTPException
from werkzeug.http import HTTP_STATUS_CODES

from school_service.auth.policies import Policy
from school_service.config import Settings
from school_service.core.columns import Enumeration
from school_service.core.error_types import ErrorType
from school_service.core.records import singular
from school_service.web.docs_page import docs_blueprint
from school_service.web.error_responses import http_response
from school_service.web.interface_operations import is_extension
from school_service.web.operations import Operation, declared_in
from school_service.web.schemas import ERROR_TYPE, ErrorSchema, Schema

DESCRIPTION = """School administration: users, classes, subjects, students, their results and behaviour, staff
and graduates.

**A school for each request.** Each school is a tenant, chosen by the header `X-SCHOOL-ID`. Where that
header is not required, a token that names exactly one school chooses it.

**Tokens.** Every operation but `GET /health`, `GET /verify` and those under `/auth` needs a bearer token.
`x-permission` names the permission that it asks for, or several with spaces between them; `null` means that any
token of the school will do.

**Answers.** Success is always 200. Every error has the one shape `Error`, and its `request_id` is the
answer's header `X-Request-ID`. Paged lists take `pageNumber` and `pageSize`; past the end `data` is empty.

**Input.** Texts are trimmed, and may neither be blank nor hold NUL. Members that an operation does not
know are refused.

**Terms.** A `term` is given by its id, or as `FIRST`, `SECOND` or `THIRD` of the session that the operation is about:
the session of the batch, the cohort or the cohort subject. Of a student it is their latest session that has such a
term, unless `session` names one. A list that is of no session has the terms of that name in all of them.
"""

_CHALLENGE = {"WWW-Authenticate": {"description": "`Bearer` (RFC 6750).", "schema": {"type": "string"}}}
_RETRY = {
    "Retry-After": {
        "description": "Seconds to wait before the next try.",
        "schema": {"type": "integer", "minimum": 1},
    }
}


@dataclass(frozen=True)
class DocumentedError:
    """An error in the document: its meaning, its headers, and an example of its type, its message and `errors`.

    `more` are members of the example beside those of every error.
    """

    meaning: str
    type: ErrorType
    message: str
    headers: Mapping[str, Any] = field(default_factory=dict)
    errors: Mapping[str, Any] = field(default_factory=dict)
    more: Mapping[str, str] = field(default_factory=dict)

    def example(self, status: int) -> dict[str, Any]:
        """Write a body as it is answered."""
        example: dict[str, Any] = {
            "code": status,
            "status": HTTP_STATUS_CODES[status],
            "type": str(self.type),
            "message": self.message,
        }
        if self.errors:
            example["errors"] = self.errors
        return {**example, "request_id": "7d0f9c1e5b6a4c0f8a1d2e3f4a5b6c7d", **self.more}

    def response(self, status: int) -> dict[str, Any]:
        """Write the response component."""
        content = {"schema": ErrorSchema, "example": self.example(status)}
        response: dict[str, Any] = {"description": self.meaning, "content": {"application/json": content}}
        if self.headers:
            response["headers"] = dict(self.headers)
        return response


ERRORS = {
    400: DocumentedError(
        "X-SCHOOL-ID is missing or no uuid, the body is not JSON, or the bytes are no request of HTTP.",
        ErrorType.SCHOOL_HEADER,
        "The header X-SCHOOL-ID is missing.",
    ),
    401: DocumentedError(
        "The token or the credential is missing or wrong.",
        ErrorType.INVALID_TOKEN,
        "The token is invalid.",
        _CHALLENGE,
    ),
    403: DocumentedError(
        "The token does not cover the school, or a permission is lacking: the message names it.",
        ErrorType.FORBIDDEN,
        "This needs the permission write:students.",
    ),
    404: DocumentedError(
        "There is no such record in this school, or no such school.",
        ErrorType.UNKNOWN_ID,
        "No such classroom.",
    ),
    409: DocumentedError(
        "It collides with a record that exists, or the record to be deleted is in use.",
        ErrorType.DUPLICATE,
        "A classroom with this name exists already.",
        errors={"json": {"name": ["already taken"]}},
    ),
    410: DocumentedError(
        "The cursor's place is not there any more: read everything anew.",
        ErrorType.GONE,
        "Read everything anew.",
        errors={"query": {"after": ["resync"]}},
    ),
    412: DocumentedError(
        "The record has another ETag than If-Match: it was changed meanwhile.",
        ErrorType.STALE,
        "The record is not what If-Match names: it was changed. Read it again.",
    ),
    413: DocumentedError("The body is too large.", ErrorType.TOO_LARGE, "The request is too large."),
    415: DocumentedError(
        "The body is of a media type that is not accepted.",
        ErrorType.MEDIA_TYPE,
        "The body must be application/json.",
    ),
    422: DocumentedError(
        "The input is not valid: `errors` says which member and why.",
        ErrorType.VALIDATION,
        "The input is not valid.",
        errors={"json": {"name": ["Missing data for required field."]}},
    ),
    429: DocumentedError(
        "Too many tries, such as wrong passwords.",
        ErrorType.TOO_MANY_TRIES,
        "Too many wrong passwords. Try again later.",
        _RETRY,
    ),
    500: DocumentedError(
        "The service failed; `request_id` names the failure in its logs.",
        ErrorType.FAILURE,
        "The service failed. The request id names the failure in its logs.",
    ),
    503: DocumentedError(
        "Not now: the database is away or busy, or the school is being upgraded.",
        ErrorType.OVERLOADED,
        "The service is overloaded. Try again shortly.",
        _RETRY,
    ),
}


def response_component(status: int) -> str:
    """Name the response component of an error: `NotFound`."""
    return HTTP_STATUS_CODES[status].title().replace(" ", "")


class ServiceApi(flask_smorest.Api):
    """flask-smorest's Api with the service's one shape of errors and no catch-all answer in the document."""

    DEFAULT_ERROR_RESPONSE_NAME = None

    def __init__(self, app: Flask, **options: Any) -> None:
        self._lock = RLock()
        self._busy = False
        self._unwritten: deque[Callable[[], None]] = deque()
        super().__init__(app, **options)

    @property
    def spec(self) -> APISpec:
        """The document; its first reader writes all registered operations, for four times as long as a start takes."""
        with self._lock:
            if not self._busy:
                with self._at_work():
                    while self._unwritten:
                        # A part that fails stays: no later reader gets a document without it.
                        self._unwritten[0]()
                        self._unwritten.popleft()
        return self._spec

    @spec.setter
    def spec(self, spec: APISpec) -> None:
        self._spec = spec

    @contextmanager
    def _at_work(self) -> Iterator[None]:
        self._busy = True
        try:
            yield
        finally:
            self._busy = False

    def register_blueprint(self, blp: flask_smorest.Blueprint, **options: Any) -> None:
        """Register a blueprint, whose operations are documented later."""
        with self._at_work():
            super().register_blueprint(blp, **options)

    def document_later(self, write: Callable[[], None]) -> None:
        """Note how a part of the document is written."""
        self._unwritten.append(write)

    def _register_responses(self) -> None:
        for status, error in ERRORS.items():
            self.spec.components.response(response_component(status), error.response(status), lazy=True)

    def _register_etag_headers(self) -> None:
        """Leave flask-smorest's own headers out of the document: nothing here uses them."""

    _register_pagination_header = _register_etag_headers

    def handle_http_exception(self, error: HTTPException) -> Response:
        """Answer an error of the framework."""
        return http_response(error)


def make_api(app: Flask, settings: Settings, version: str) -> ServiceApi:
    """Make the Api to document the blueprints registered with it, and show its document unless DOCS is off."""
    app.config.update(
        API_TITLE="School Service",
        API_VERSION=version,
        OPENAPI_VERSION="3.0.3",
        API_SPEC_OPTIONS={
            "info": {
                "description": DESCRIPTION,
                "contact": {"name": "The operator of this service"},
                "license": {"name": "MIT", "url": "https://opensource.org/license/mit"},
            },
            # Relative to the document's own address, so that it holds behind a proxy that adds a prefix.
            "servers": [{"url": ".", "description": "This service"}],
            # Tags by the work of people, for pages that show them so: ours, and Redocly's.
            "x-tagGroups": [
                {"name": name, "tags": tags} for name, tags in documentation("tag_groups").items()
            ],
        },
    )
    api = ServiceApi(
        app, spec_kwargs={"marshmallow_plugin": FieldPlugin(), "extra_plugins": [Conventions(settings)]}
    )
    api.spec.components.schema(
        ERROR_TYPE,
        {
            "type": "string",
            "description": "Reasons of errors; more may come, and none changes its meaning.\n\n"
            + "\n".join(f"- `{error_type}`: {error_type.meaning}" for error_type in ErrorType),
            "enum": [*map(str, ErrorType)],
        },
    )
    api.spec.components.security_scheme(
        "bearer",
        {
            "type": "http",
            "scheme": "bearer",
            "bearerFormat": "JWT",
            "description": "A token of the identity provider, or of `POST /users/login`.",
        },
    )
    if settings.issuer is not None:
        api.spec.components.security_scheme(OAUTH2, _SIGNING_IN)
    api.ma_plugin.converter.add_attribute_function(_or_null)
    api.ma_plugin.converter.add_parameter_attribute_function(_mere_reference)
    if settings.docs:
        app.register_blueprint(docs_blueprint(api))
    return api


class FieldConverter(OpenAPIConverter):
    """Writes the schema of a field: values with a name stand in one schema of this name.

    The words missing from a field itself are in documentation/properties.json.
    """

    def field2property(self, field: fields.Field[Any]) -> dict[str, Any]:
        """Write the schema, or the reference to it."""
        written: dict[str, Any] = super().field2property(field)
        for values in (getattr(check, "choices", None) for check in field.validators):
            if isinstance(values, Enumeration):
                del written["type"], written["enum"]
                written["$ref"] = self._enumeration(values)
        if isinstance(field.parent, Schema) and field.name:
            written.setdefault("description", self._description(field))
        written = {name: value for name, value in written.items() if value is not None}
        if "$ref" in written and len(written) > 1:
            # Members beside a reference are ignored (OpenAPI 3.0).
            written["allOf"] = [{"$ref": written.pop("$ref")}]
        return _null_beside_a_type(written)

    @staticmethod
    def _description(field: fields.Field[Any]) -> str | None:
        """Find the words for a property by its schema and name, or by the name common to several schemas."""
        texts = documentation("properties")
        name = field.data_key or str(field.name)
        schema = type(field.parent).__name__.removesuffix("Schema")
        description: str | None = texts.get(f"{schema}.{name}", texts.get(name))
        return description

    def _enumeration(self, values: Enumeration) -> str:
        if values.name not in self.spec.components.schemas:
            self.spec.components.schema(values.name, {"type": "string", "enum": list(values)})
        return f"#/components/schemas/{values.name}"


class FieldPlugin(MarshmallowPlugin):
    """apispec's plugin for marshmallow, with our converter."""

    Converter = FieldConverter


OAUTH2 = "oauth2"
"""The name of the security scheme for people signing in; the docs page refers to it by this name."""
_SIGNING_IN: dict[str, Any] = {
    "type": "oauth2",
    "description": "People sign in by the service's own page: authorization code with PKCE.",
    "flows": {
        "authorizationCode": {
            # Relative to the document's own address, as its server is.
            "authorizationUrl": "auth/authorize",
            "tokenUrl": "auth/oauth/token",
            "refreshUrl": "auth/oauth/token",
            "scopes": {
                "openid": "An ID token, and GET /auth/userinfo.",
                "profile": "With openid: the names of the person.",
            },
        }
    },
}


class Conventions(BasePlugin):
    """The parts of an operation in the document without words of its view: its id, its permission in words."""

    def __init__(self, settings: Settings) -> None:
        super().__init__()
        # Where people sign in here, a client gets tokens in that way, too.
        self._ways: list[dict[str, list[str]]] = [{OAUTH2: []}] if settings.issuer is not None else []

    def path_helper(
        self,
        path: str | None = None,
        operations: dict[str, Any] | None = None,
        parameters: list[dict[str, Any]] | None = None,
        **_rest: Any,
    ) -> None:
        """Describe the ids in a path, each by the word before it."""
        for parameter in parameters or ():
            if parameter["in"] == "path":
                parameter["description"] = _id_in_path(path or "", parameter["name"])

    def operation_helper(
        self, path: str | None = None, operations: dict[str, Any] | None = None, **_rest: Any
    ) -> None:
        """Complete the operations of a path."""
        for method, operation in (operations or {}).items():
            if name := operation_id(method, path or ""):
                operation["operationId"] = name
            if operation.get("security"):
                operation["security"] = [*operation["security"], *self._ways]
            _show_example(operation, documentation("examples").get(f"{method.upper()} {path}", {}))
            if operation.get("security", True) and is_extension(method.upper(), path or ""):
                # Parameters of a query that it does not know.
                described = {"422": response_component(422), **operation["responses"]}
                operation["responses"] = dict(sorted(described.items()))
            if not operation.get("security", True):
                need = "Needs no token."
            elif not operation.get("x-permission"):
                need = "Any token of the school will do."
            else:
                names = operation["x-permission"].split()
                word = "permission" if len(names) == 1 else "permissions"
                need = f"Needs the {word} {', '.join(f'`{name}`' for name in names)}."
            operation["description"] = "\n\n".join(filter(None, (operation.get("description"), need)))


def _show_example(operation: dict[str, Any], example: Mapping[str, Any]) -> None:
    """Show a request and its answer if they are JSON; docs/write_examples.py has recorded them."""
    json_type = "application/json"
    request = operation.get("requestBody", {}).get("content", {})
    answer = operation.get("responses", {}).get("200", {}).get("content", {})
    for content, part in ((request, "request"), (answer, "response")):
        if json_type in content and part in example:
            content[json_type]["example"] = example[part]


# The record of an id in a path, where the path says something else.
_RECORDS = {
    "/templates/{id}": "subject",
    "/scoresheets/{id}": "cohort subject",
    "/teachers/{id}": "batch",
    "/teachers/{cohortId}": "batch",
    "/gradebooks/{id}": "gradebook entry",
    "/grade-configs/{id}": "grade configuration",
}


# Parameters of a path that are no ids of the part before them.
_PRINTED = {
    "/verify/{school}": "The id of the school, as it is printed on the paper.",
    "/verify/{school}/{code}": "The code, as it is printed on the paper.",
}


def _id_in_path(path: str, name: str) -> str:
    before = path[: path.index(f"{{{name}}}")].rstrip("/")
    if printed := _PRINTED.get(f"{before}/{{{name}}}"):
        return printed
    record = _RECORDS.get(f"{before}/{{{name}}}") or singular(before.rsplit("/", 1)[-1]).replace("-", " ")
    return f"The id of the {record}."


def operation_id(method: str, path: str) -> str | None:
    """Look up the name of an operation in documentation/operation_ids.json: `listUsers`."""
    return documentation("operation_ids").get(f"{method.upper()} {path}")


@cache
def documentation(name: str) -> dict[str, Any]:
    """Read a file of the folder documentation, without its ending: texts of the document missing in the code."""
    texts: dict[str, Any] = json.loads((files(__package__) / "documentation" / f"{name}.json").read_bytes())
    return texts


def _null_beside_a_type(written: dict[str, Any]) -> dict[str, Any]:
    """Document a value, null or one of several, as such, if `nullable` has no type beside it (OpenAPI 3.0)."""
    if not written.get("nullable") or "type" in written:
        return written
    null = {"type": "string", "nullable": True, "enum": [None]}
    others = {name: value for name, value in written.items() if name not in {"nullable", "allOf", "anyOf"}}
    if not {"allOf", "anyOf"} & written.keys():
        # Without a type any value will do, and so will null.
        return others
    return {**others, "anyOf": [*written.get("anyOf", written.get("allOf", ())), null]}


def _or_null(
    _converter: Any, field: fields.Field[Any], *, ret: dict[str, Any], **_rest: Any
) -> dict[str, Any]:
    """Document a nested record as the record or null, in place of apispec's record or any object."""
    if not (isinstance(field, fields.Nested) and field.allow_none):
        return {}
    null = {"type": "object", "nullable": True, "enum": [None]}
    return {"anyOf": [*(shape for shape in ret["anyOf"] if "$ref" in shape), null]}


def _mere_reference(
    _converter: Any, _field: fields.Field[Any], *, ret: dict[str, Any], **_rest: Any
) -> dict[str, Any]:
    """Take the wrapping from a reference with words beside the schema of its parameter."""
    match ret.get("schema"):
        case {"allOf": [reference], **others} if not others:
            return {"schema": reference}
    return {}


# `document_operation`, which flask-smorest calls for each view, makes the members of its operation of the decorators'
# notes.

_SCHOOL_HEADER = {
    "in": "header",
    "name": "X-SCHOOL-ID",
    # A text of the format uuid. Said in two parts, it is a text to generators of clients too: of a uuid in a header,
    # openapi-python-client makes an object that its HTTP library refuses.
    "schema": {"type": "string", "allOf": [{"format": "uuid"}]},
}
_IDEMPOTENCY_KEY = {
    "in": "header",
    "name": "Idempotency-Key",
    "description": "Sent again within 24 hours, the request is answered as it was the first time, and does nothing.",
    # Printable ASCII; spaces around a header are no part of it, and two quotation marks enclose nothing.
    "schema": {"type": "string", "pattern": "^[!-~]([ -~]+[!-~]|[!#-~])?$", "minLength": 1, "maxLength": 255},
}
_REPLAYED = {
    "Idempotency-Replayed": {
        "description": "`true` where the answer is of an earlier request with the same Idempotency-Key.",
        "schema": {"type": "string", "enum": ["true"]},
    }
}
_IF_NONE_MATCH = {
    "in": "header",
    "name": "If-None-Match",
    "description": "The ETag of an earlier answer: 304 without a body where the record is still the same.",
    "schema": {"type": "string"},
}
_IF_MATCH = {
    "in": "header",
    "name": "If-Match",
    "description": "The ETag of the record as it was read: 412 where it was changed since.",
    "schema": {"type": "string"},
}
_TAG = {"ETag": {"description": "Names the record as it is now.", "schema": {"type": "string"}}}
_NOT_MODIFIED = {"description": "The record is as If-None-Match names it.", "headers": _TAG}
_SCHOOL_REQUIRED = "The school to work in."
_SCHOOL_OPTIONAL = "The school to work in; may be left out where the token names exactly one."


def document_operation(
    doc: dict[str, Any], doc_info: Mapping[str, Any], *, method: str, **_context: Any
) -> dict[str, Any]:
    """Write security, permission, school header and error responses of an operation."""
    operation = declared_in(doc_info, method)
    statuses = {500, 503, *operation.statuses}
    headers: dict[str, Any] = {}
    if operation.policy is None:
        doc["security"] = []
    else:
        statuses |= {400, 401, 403, 404}
        if operation.matches:
            statuses.add(412)
        if operation.method in {"POST", "PUT", "PATCH", "DELETE"}:
            statuses.add(409)
        headers = _document_access(doc, operation, operation.policy)
    if operation.locations:
        statuses.add(422)
    if operation.locations & {"json", "files"}:
        statuses |= {400, 413, 415}
    doc["responses"] = _responses(doc.get("responses", {}), operation, statuses, headers)
    return doc


def _document_access(doc: dict[str, Any], operation: Operation, policy: Policy) -> dict[str, Any]:
    """Write security, permission and headers of the request; returns those of the answer."""
    headers: dict[str, Any] = {}
    doc["security"] = [{"bearer": []}]
    required = operation.school_required
    header = {"required": required, "description": _SCHOOL_REQUIRED if required else _SCHOOL_OPTIONAL}
    doc.setdefault("parameters", []).append({**_SCHOOL_HEADER, **header})
    # Several are written as in the scope of a token (RFC 6749, section 3.3).
    doc["x-permission"] = " ".join(map(str, policy.permissions)) or None
    if policy.permissions:
        doc["x-own"] = str(policy.own)
    if operation.is_idempotent:
        doc["parameters"].append(_IDEMPOTENCY_KEY)
        headers |= _REPLAYED
    if operation.matches:
        doc["parameters"].append(_IF_MATCH)
    if operation.has_tag:
        headers |= _TAG
        if operation.method == "GET":
            doc["parameters"].append(_IF_NONE_MATCH)
    return headers


def _responses(
    described: Mapping[Any, Any], operation: Operation, statuses: set[int], headers: Mapping[str, Any]
) -> dict[str, Any]:
    """Write the answers of an operation: those of the view, and errors of these statuses."""
    responses: dict[int, Any] = {status: response_component(status) for status in statuses}
    # A mere name is flask-smorest's own for an error; descriptions of a view stand.
    responses |= {
        int(status): response for status, response in described.items() if isinstance(response, Mapping)
    }
    if headers:
        responses[200] = {**responses[200], "headers": headers}
    if operation.has_tag and operation.method == "GET":
        responses[304] = _NOT_MODIFIED
    if operation.other_content:
        responses[200]["content"].update(operation.other_content)
    if operation.other_error_content:
        for status in statuses:
            error = ERRORS[status].response(status)
            responses[status] = {**error, "content": {**error["content"], **operation.other_error_content}}
    return {str(status): responses[status] for status in sorted(responses)}
