"""What each status of an error means, and how the OpenAPI document shows it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from werkzeug.http import HTTP_STATUS_CODES

from school_service.web.fields import ErrorSchema

_CHALLENGE = {"WWW-Authenticate": {"description": "`Bearer` (RFC 6750).", "schema": {"type": "string"}}}
_RETRY = {
    "Retry-After": {
        "description": "Seconds to wait before the next try.",
        "schema": {"type": "integer", "minimum": 1},
    }
}


@dataclass(frozen=True)
class ErrorAnswer:
    """An error in the document: what it means, its headers, and an example of its message and `errors`."""

    meaning: str
    message: str
    headers: Mapping[str, Any] = field(default_factory=dict)
    errors: Mapping[str, Any] = field(default_factory=dict)

    def response(self, status: int) -> dict[str, Any]:
        """Write the response component."""
        example: dict[str, Any] = {
            "code": status,
            "status": HTTP_STATUS_CODES[status],
            "message": self.message,
        }
        if self.errors:
            example["errors"] = self.errors
        example["request_id"] = "7d0f9c1e5b6a4c0f8a1d2e3f4a5b6c7d"
        content = {"schema": ErrorSchema, "example": example}
        response: dict[str, Any] = {"description": self.meaning, "content": {"application/json": content}}
        if self.headers:
            response["headers"] = dict(self.headers)
        return response


ERRORS = {
    400: ErrorAnswer(
        "X-SCHOOL-ID is missing or no uuid, or the body is not JSON.", "The header X-SCHOOL-ID is missing."
    ),
    401: ErrorAnswer(
        "The token, or what was signed in with, is missing or wrong.", "The token is invalid.", _CHALLENGE
    ),
    403: ErrorAnswer(
        "The token does not cover the school, or a permission is lacking: the message names it.",
        "This needs the permission write:students.",
    ),
    404: ErrorAnswer("There is no such record in this school, or no such school.", "No such classroom."),
    409: ErrorAnswer(
        "It collides with a record that exists, or what is to be deleted is in use.",
        "A classroom with this name exists already.",
        errors={"json": {"name": ["already taken"]}},
    ),
    413: ErrorAnswer("The body is too large.", "The request is too large."),
    415: ErrorAnswer(
        "The body is of a media type that is not accepted.", "The body must be application/json."
    ),
    422: ErrorAnswer(
        "The input is not valid: `errors` says which member and why.",
        "The input is not valid.",
        errors={"json": {"name": ["Missing data for required field."]}},
    ),
    429: ErrorAnswer("Too many wrong passwords.", "Too many wrong passwords. Try again later.", _RETRY),
    500: ErrorAnswer(
        "The service failed; `request_id` names the failure in its logs.",
        "The service failed. The request id names the failure in its logs.",
    ),
    503: ErrorAnswer(
        "Not now: the database is away or busy, or the school is being upgraded.",
        "The service is overloaded. Try again shortly.",
        _RETRY,
    ),
}


def component(status: int) -> str:
    """Name the response component of an error: `NotFound`."""
    return HTTP_STATUS_CODES[status].title().replace(" ", "")
