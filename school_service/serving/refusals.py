"""Answers given without the application, in the one shape of errors."""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any
from uuid import uuid4

import orjson
from werkzeug.http import HTTP_STATUS_CODES

from school_service.core.error_types import ErrorType
from school_service.web import response_headers
from school_service.web.error_responses import NO_ROOM_MESSAGE, NO_ROOM_RETRY_AFTER, framework_type

SHED_RETRY_AFTER = 2  # seconds


class Refusal:
    """An answer given without the application; a request has it in place of waitress' own errors."""

    def __init__(
        self,
        status: HTTPStatus,
        message: str,
        headers: Mapping[str, str] | None = None,
        type: ErrorType | None = None,
    ) -> None:
        self._status = status
        self._type = type or framework_type(status.value)
        self.message = message
        self._headers = dict(headers or {})

    def to_response(self, _ident: object = None) -> tuple[str, list[tuple[str, str]], bytes]:
        """Give status, header fields and body, with an id of its own for the request."""
        request_id = uuid4().hex
        body = {
            "code": self._status.value,
            "status": HTTP_STATUS_CODES[self._status.value],
            "type": self._type,
            "message": self.message,
            "request_id": request_id,
        }
        headers = {"Content-Type": "application/json", "X-Request-ID": request_id}
        headers |= {**dict(response_headers.FIELDS), **self._headers}
        return f"{self._status.value} {body['status']}", list(headers.items()), orjson.dumps(body)


TOO_LARGE = Refusal(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "The request is too large.")
NO_ROOM = Refusal(
    HTTPStatus.SERVICE_UNAVAILABLE,
    NO_ROOM_MESSAGE,
    {"Retry-After": str(NO_ROOM_RETRY_AFTER)},
    ErrorType.UNAVAILABLE,
)
NO_TOKEN = Refusal(
    HTTPStatus.UNAUTHORIZED, "A bearer token is needed.", {"WWW-Authenticate": "Bearer"}, ErrorType.NO_TOKEN
)
OVERLOADED = Refusal(
    HTTPStatus.SERVICE_UNAVAILABLE,
    "The service is overloaded. Try again shortly.",
    {"Retry-After": str(SHED_RETRY_AFTER)},
    ErrorType.OVERLOADED,
)

_OF_WAITRESS = {
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE: TOO_LARGE,
    HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE: Refusal(
        HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, "The header fields of the request are too large."
    ),
    HTTPStatus.NOT_IMPLEMENTED: Refusal(
        HTTPStatus.NOT_IMPLEMENTED, "The transfer coding of the body is not supported."
    ),
    HTTPStatus.INTERNAL_SERVER_ERROR: Refusal(HTTPStatus.INTERNAL_SERVER_ERROR, "The service failed."),
}


def refusal_of(error: Any) -> Refusal:
    """Give the refusal of a request's `error`: the error itself, or for one of waitress' a refusal of equal meaning."""
    if isinstance(error, Refusal):
        return error
    refusal = _OF_WAITRESS.get(error.code)
    if refusal is None:
        # The text after the first quotation mark is the client's own.
        reason = error.body.partition('"')[0].strip()
        refusal = Refusal(HTTPStatus(error.code), f"The request is not valid HTTP: {reason}.")
    return refusal
