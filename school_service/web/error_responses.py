"""One table from exceptions to answers, and one shape for all of them.

Nothing internal is shown: no SQL, no text of a driver, no traceback, no name of a schema.
"""

from __future__ import annotations

import errno
import logging
import re
from collections.abc import Mapping
from tempfile import gettempdir
from typing import Any

from flask import Flask, Response, request
from limits.errors import StorageError
from sqlalchemy.exc import DBAPIError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from werkzeug.exceptions import HTTPException
from werkzeug.http import HTTP_STATUS_CODES

from school_service.auth.jwks import ProviderUnavailable
from school_service.auth.principal import InvalidSchoolHeader, NotLinked
from school_service.core import errors
from school_service.core.error_types import ErrorType
from school_service.web.error_bounds import bounded, bounded_rows, shortened
from school_service.web.integrity_errors import violation
from school_service.web.rendering import object_response
from school_service.web.request_log import QUEUE_FULL, log_of_request, request_id
from tenants import exceptions as tenancy
from tenants.driver_errors import TOO_MANY_CONNECTIONS, first_line, violated_state

_log = logging.getLogger(__name__)

STATUS: dict[type[Exception], int] = {
    InvalidSchoolHeader: 400,
    errors.InvalidHeader: 400,
    errors.NotAuthenticated: 401,
    errors.Forbidden: 403,
    errors.NotFound: 404,
    errors.Conflict: 409,
    errors.Gone: 410,
    errors.PreconditionFailed: 412,
    errors.TooLarge: 413,
    errors.Invalid: 422,
    errors.InvalidRows: 422,
    errors.TooManyAttempts: 429,
    errors.Busy: 503,
    tenancy.SchoolForbidden: 403,
    tenancy.ClientUnknown: 403,
    tenancy.SchoolSuspended: 403,
    tenancy.UnknownSchool: 404,
    tenancy.SchoolUpgrading: 503,
    tenancy.SchoolElsewhere: 503,
    tenancy.RegistrySilent: 503,
    ProviderUnavailable: 503,
    PoolTimeout: 503,
    OperationalError: 503,
    StorageError: 503,
}
TYPES: dict[type[Exception], ErrorType] = {
    tenancy.SchoolForbidden: ErrorType.FORBIDDEN,
    tenancy.ClientUnknown: ErrorType.FORBIDDEN,
    tenancy.SchoolSuspended: ErrorType.SCHOOL_SUSPENDED,
    tenancy.UnknownSchool: ErrorType.UNKNOWN_ID,
    PoolTimeout: ErrorType.OVERLOADED,
}
"""Reasons of exceptions that are no domain errors; without one here it is UNAVAILABLE."""
MESSAGES: dict[type[Exception], str] = {
    ProviderUnavailable: "The identity provider can't be reached. Try again shortly.",
    PoolTimeout: "The service is overloaded. Try again shortly.",
    StorageError: "Tries can't be counted just now. Try again shortly.",
    OperationalError: "The database can't be reached. Try again shortly.",
}
RETRY_AFTER = {
    tenancy.SchoolUpgrading: 30,
    tenancy.SchoolElsewhere: 2,
    tenancy.RegistrySilent: 5,
    ProviderUnavailable: 5,
    PoolTimeout: 2,
    errors.Busy: 2,
    OperationalError: 5,
    StorageError: 5,
}

# Why a request is 503, for the log and the metrics; those of the database are in _CAUSES_BY_STATE.
CAUSES: dict[type[Exception], str] = {
    errors.Busy: "school_share",
    tenancy.SchoolRoleUnknown: "school_role_unknown",
    tenancy.SchoolUpgrading: "school_upgrading",
    tenancy.SchoolElsewhere: "school_moving",
    tenancy.RegistrySilent: "registry_silent",
    ProviderUnavailable: "identity_provider",
    PoolTimeout: "connection_pool",
    StorageError: "login_counts",
}
DATABASE_AWAY = "database_away"
NO_ROOM = "temporary_files"
NO_ROOM_ERRORS = frozenset({errno.ENOSPC, errno.EDQUOT})
NO_ROOM_MESSAGE = "There is no room for files just now. Try again shortly."
NO_ROOM_RETRY_AFTER = 30
_CAUSES_BY_STATE = (
    (re.compile("57014"), "statement_timeout"),
    (re.compile("55P03"), "lock_timeout"),
    (re.compile("40001|40P01"), "deadlock"),
    (re.compile(TOO_MANY_CONNECTIONS), "connections_exhausted"),
    (re.compile("53..."), "database_full"),
)
ALL_CAUSES = frozenset(
    {QUEUE_FULL, DATABASE_AWAY, NO_ROOM, *CAUSES.values(), *(cause for _, cause in _CAUSES_BY_STATE)}
)

# SQLSTATEs of failures that may succeed a moment later: too many connections, shutting down, cancelled, deadlock, lock
# timeout.
_TRANSIENT = re.compile(r"53...|57P0.|57014|40001|40P01|55P03|08...")

_FRAMEWORK_MESSAGES = {
    400: "The request can't be understood.",
    404: "There is nothing at this address.",
    405: "This method is not allowed here.",
    413: "The request is too large.",
    415: "The body is of a media type that is not accepted here.",
    422: "The input is not valid.",
    500: "The service failed. The request id names the failure in its logs.",
}
_FRAMEWORK_TYPES = {
    404: ErrorType.UNKNOWN_ADDRESS,
    405: ErrorType.METHOD_NOT_ALLOWED,
    413: ErrorType.TOO_LARGE,
    415: ErrorType.MEDIA_TYPE,
    422: ErrorType.VALIDATION,
    431: ErrorType.TOO_LARGE,
    500: ErrorType.FAILURE,
}


class StatementFailed(Exception):
    """A failure of the database, for the log: without the details, since they repeat values such as account numbers."""

    def __init__(self, error: DBAPIError) -> None:
        super().__init__(f"{type(error.orig).__name__}: {_words(error)}\n[SQL: {error.statement}]")


def _words(error: DBAPIError) -> str:
    """Name the failure in PostgreSQL's words, with its SQLSTATE, and without values."""
    diagnostics = getattr(error.orig, "diag", None)
    words = (diagnostics and diagnostics.message_primary) or first_line(error.orig)
    state = violated_state(error)
    if state.startswith("22"):
        # Data exceptions quote the value that they are about.
        words = re.sub('"(?>(?:[^"]*+")+)', '"…"', words)
    return f"{state}: {words}" if state else words


def register(app: Flask) -> None:
    """Register the table."""
    for exception in (
        errors.DomainError,
        tenancy.TenancyError,
        ProviderUnavailable,
        PoolTimeout,
        StorageError,
        DBAPIError,
    ):
        app.register_error_handler(exception, handle)
    app.register_error_handler(Exception, handle_unexpected)


def error_response(
    status: int,
    error_type: ErrorType,
    message: str,
    errors: Mapping[str, Any] | None = None,
    headers: Mapping[str, str] | None = None,
) -> Response:
    """Write an error in the one shape, within its bounds."""
    body: dict[str, Any] = {
        "code": status,
        "status": HTTP_STATUS_CODES.get(status, "Error"),
        "type": error_type,
        "message": shortened(message),
    }
    if errors:
        body["errors"] = bounded(errors)
    body["request_id"] = request_id()
    response = object_response(body)
    response.status_code = status
    response.headers.update(headers or {})
    return response


def http_response(error: HTTPException) -> Response:
    """Answer an error of the framework: unknown routes, wrong methods, validation."""
    if error.response is not None:
        return error.response  # type: ignore[return-value]
    extra: Mapping[str, Any] = getattr(error, "data", None) or {}
    headers = dict(extra.get("headers") or {})
    allowed = getattr(error, "valid_methods", None)
    if allowed:
        headers["Allow"] = ", ".join(allowed)
    message = extra.get("message") or _FRAMEWORK_MESSAGES.get(error.code or 500) or error.name
    error_type = framework_type(error.code or 500)
    return error_response(
        error.code or 500, error_type, message, extra.get("errors") or extra.get("messages"), headers
    )


def framework_type(status: int) -> ErrorType:
    """Give the reason of an error that the framework, or the server, has found."""
    return _FRAMEWORK_TYPES.get(status, ErrorType.MALFORMED)


def handle(error: Exception) -> Response:
    """Answer an exception of the table, or of the database."""
    if isinstance(error, DBAPIError):
        return _database_response(error)
    known = next((base for base in type(error).__mro__ if base in STATUS), None)
    if known is None:
        return handle_unexpected(error)
    _log_reason(error, STATUS[known])
    headers: dict[str, str] = {}
    if isinstance(error, errors.NotAuthenticated):
        bearer = request.headers.get("Authorization", "").lower().startswith("bearer ")
        sent = bearer and not isinstance(error, errors.WrongPassword)
        headers["WWW-Authenticate"] = 'Bearer error="invalid_token"' if sent else "Bearer"
    elif isinstance(error, errors.InsufficientScope):
        headers["WWW-Authenticate"] = f'Bearer error="insufficient_scope", scope="{error.scope}"'
    elif isinstance(error, errors.TooManyAttempts):
        headers["Retry-After"] = str(error.retry_after)
    elif known in RETRY_AFTER:
        headers["Retry-After"] = str(RETRY_AFTER[known])
    fields = getattr(error, "errors", None)
    if isinstance(error, errors.RowsRefused):
        fields = bounded_rows(error.rows, error.bad_rows, error.member)
    elif fields and not isinstance(error, NotLinked):
        # A form has a file and nothing else: the fields that a service names are of the query. Beside a JSON body
        # they are where the query has them.
        of_query = (
            request.method in {"GET", "HEAD"}
            or request.mimetype == "multipart/form-data"
            or fields.keys() <= request.args.keys()
        )
        fields = {"query" if of_query else "json": fields}
    error_type = (
        error.type if isinstance(error, errors.DomainError) else TYPES.get(known, ErrorType.UNAVAILABLE)
    )
    return error_response(STATUS[known], error_type, MESSAGES.get(known) or str(error), fields, headers)


def _log_reason(error: Exception, status: int) -> None:
    """Let the log say why a token was refused or does not suffice, and why the service can't answer just now."""
    if isinstance(error, errors.TokenRefused):
        log_of_request(refused=error.check, key_id=error.key_id, issuer=error.issuer)
    elif status in {401, 403}:
        log_of_request(refused=str(error))
    elif status == 503:
        cause = next((CAUSES[base] for base in type(error).__mro__ if base in CAUSES), DATABASE_AWAY)
        log_of_request(cause=cause)


def handle_unexpected(error: Exception) -> Response:
    """Answer 500 and log the error; the caller learns the request id alone.

    If a file could not be written, as of an upload or of a file being made, it is 503: the disk may have room later.
    """
    if isinstance(error, HTTPException):
        return http_response(error)
    if isinstance(error, OSError) and error.errno in NO_ROOM_ERRORS:
        log_of_request(cause=NO_ROOM)
        _log.error(
            "there is no room for temporary files", extra={"reason": str(error), "folder": gettempdir()}
        )
        return error_response(
            503, ErrorType.UNAVAILABLE, NO_ROOM_MESSAGE, headers={"Retry-After": str(NO_ROOM_RETRY_AFTER)}
        )
    _log.error("unforeseen error", exc_info=error)
    return error_response(500, ErrorType.FAILURE, _FRAMEWORK_MESSAGES[500])


def _database_response(error: DBAPIError) -> Response:
    state = violated_state(error)
    if (
        error.connection_invalidated
        or _TRANSIENT.fullmatch(state)
        or (isinstance(error, OperationalError) and not state)
    ):
        cause = next((cause for states, cause in _CAUSES_BY_STATE if states.fullmatch(state)), DATABASE_AWAY)
        log_of_request(cause=cause)
        _log.warning(
            "database not available",
            extra={
                "sqlstate": state,
                "cause": cause,
                "reason": f"{type(error.orig).__name__}: {_words(error)}"[:500],
            },
        )
        # Class 08: PostgreSQL itself lost a connection, such as to another server; or no connection was to be had.
        away = not state or state.startswith("08") or state == TOO_MANY_CONNECTIONS
        reason = OperationalError if away else PoolTimeout
        return error_response(
            503,
            TYPES.get(reason, ErrorType.UNAVAILABLE),
            MESSAGES[reason],
            headers={"Retry-After": str(RETRY_AFTER[reason])},
        )
    violated = violation(error)
    if violated is not None:
        fields = {"json": violated.fields} if violated.fields else None
        return error_response(violated.status, violated.type, violated.message, fields)
    return handle_unexpected(StatementFailed(error).with_traceback(error.__traceback__))
