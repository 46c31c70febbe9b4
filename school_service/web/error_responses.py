"""One table from exceptions to answers, and one shape for all of them.

Nothing of the inside is shown: no SQL, no text of a driver, no traceback, no name of a schema.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from functools import cache
from typing import Any

from flask import Flask, Response, current_app, request
from flask_smorest import Api
from limits.errors import StorageError
from sqlalchemy import CheckConstraint, Table
from sqlalchemy.exc import DBAPIError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from sqlalchemy.schema import ColumnCollectionConstraint
from werkzeug.exceptions import HTTPException
from werkzeug.http import HTTP_STATUS_CODES

from school_service.auth.jwks import ProviderAway
from school_service.auth.principal import BadSchool
from school_service.core import errors as domain
from school_service.core.database import db
from school_service.core.records import kind_of_table
from school_service.web.openapi import ERRORS, component
from school_service.web.rendering import object_response
from school_service.web.request_log import request_id
from tenants import exceptions as tenancy

_log = logging.getLogger(__name__)

STATUS: dict[type[Exception], int] = {
    BadSchool: 400,
    domain.NotAuthenticated: 401,
    domain.Forbidden: 403,
    domain.NotFound: 404,
    domain.Conflict: 409,
    domain.TooLarge: 413,
    domain.Invalid: 422,
    domain.InvalidRows: 422,
    domain.TooManyTries: 429,
    tenancy.SchoolForbidden: 403,
    tenancy.ClientUnknown: 403,
    tenancy.SchoolSuspended: 403,
    tenancy.UnknownSchool: 404,
    tenancy.SchoolUpgrading: 503,
    ProviderAway: 503,
    PoolTimeout: 503,
    OperationalError: 503,
    StorageError: 503,
}
WORDS: dict[type[Exception], str] = {
    ProviderAway: "The identity provider can't be reached. Try again shortly.",
    PoolTimeout: "The service is overloaded. Try again shortly.",
    StorageError: "Passwords can't be checked just now. Try again shortly.",
    OperationalError: "The database can't be reached. Try again shortly.",
}
RETRY_AFTER = {
    tenancy.SchoolUpgrading: 30,
    ProviderAway: 5,
    PoolTimeout: 2,
    OperationalError: 5,
    StorageError: 5,
}

# SQLSTATEs that say: not now. Too many connections, shutting down, cancelled, deadlock, lock timeout.
_NOT_NOW = re.compile(r"53...|57P0.|57014|40001|40P01|55P03|08...")
# Values that PostgreSQL can't hold although validation let them pass.
_BAD_VALUE = re.compile(r"22...|23502|23514")


# Citus reports what a COPY or an INSERT … SELECT violated as an internal error, in PostgreSQL's words.
_VIOLATIONS = {
    "violates unique constraint": "23505",
    "violates foreign key constraint": "23503",
    "violates exclusion constraint": "23P01",
    "violates check constraint": "23514",
    "violates not-null constraint": "23502",
}


class StatementFailed(Exception):
    """What failed in the database, for the log: without the details, which repeat values such as account numbers."""

    def __init__(self, error: DBAPIError) -> None:
        said = getattr(error.orig, "diag", None)
        words = (said and said.message_primary) or str(error.orig)
        super().__init__(f"{type(error.orig).__name__}: {words}\n[SQL: {error.statement}]")


class HouseApi(Api):
    """flask-smorest's Api with the house's one shape of errors and no catch-all answer in the document."""

    DEFAULT_ERROR_RESPONSE_NAME = None

    def _register_responses(self) -> None:
        for status, error in ERRORS.items():
            self.spec.components.response(component(status), error.response(status), lazy=True)

    def _register_etag_headers(self) -> None:
        """Leave flask-smorest's own headers out of the document: nothing here uses them."""

    _register_pagination_header = _register_etag_headers

    def handle_http_exception(self, error: HTTPException) -> Any:
        """Answer an error of the framework: unknown routes, wrong methods, validation."""
        if error.response is not None:
            return error.response
        extra: Mapping[str, Any] = getattr(error, "data", None) or {}
        headers = dict(extra.get("headers") or {})
        allowed = getattr(error, "valid_methods", None)
        if allowed:
            headers["Allow"] = ", ".join(allowed)
        message = extra.get("message") or _FRAMEWORK_WORDS.get(error.code or 500) or error.name
        return answer(error.code or 500, message, extra.get("errors") or extra.get("messages"), headers)


_FRAMEWORK_WORDS = {
    400: "The request can't be understood.",
    404: "There is nothing at this address.",
    405: "This method is not allowed here.",
    413: "The request is too large.",
    415: "The body is of a media type that is not accepted here.",
    422: "The input is not valid.",
    500: "The service failed. The request id names the failure in its logs.",
}


def register(app: Flask) -> None:
    """Register the table."""
    for exception in (
        domain.DomainError,
        tenancy.TenancyError,
        ProviderAway,
        PoolTimeout,
        StorageError,
        DBAPIError,
    ):
        app.register_error_handler(exception, handle)
    app.register_error_handler(Exception, handle_unforeseen)


def answer(
    status: int,
    message: str,
    errors: Mapping[str, Any] | None = None,
    headers: Mapping[str, str] | None = None,
) -> Response:
    """Write an error in the one shape."""
    body: dict[str, Any] = {
        "code": status,
        "status": HTTP_STATUS_CODES.get(status, "Error"),
        "message": message,
    }
    if errors:
        body["errors"] = errors
    body["request_id"] = request_id()
    response = object_response(body)
    response.status_code = status
    response.headers.update(headers or {})
    return response


def handle(error: Exception) -> Response:
    """Answer an exception of the table, or of the database."""
    if isinstance(error, DBAPIError):
        return _database_error(error)
    known = next((base for base in type(error).__mro__ if base in STATUS), None)
    if known is None:
        return handle_unforeseen(error)
    headers: dict[str, str] = {}
    if isinstance(error, domain.NotAuthenticated):
        bearer = request.headers.get("Authorization", "").lower().startswith("bearer ")
        sent = bearer and not isinstance(error, domain.WrongPassword)
        headers["WWW-Authenticate"] = 'Bearer error="invalid_token"' if sent else "Bearer"
    elif isinstance(error, domain.TooManyTries):
        headers["Retry-After"] = str(error.retry_after)
    elif known in RETRY_AFTER:
        headers["Retry-After"] = str(RETRY_AFTER[known])
    fields = getattr(error, "errors", None)
    if fields and not isinstance(error, domain.InvalidRows):
        # A form holds a file alone: what a service names is of the query.
        of_query = request.method in {"GET", "HEAD"} or request.mimetype == "multipart/form-data"
        fields = {"query" if of_query else "json": fields}
    return answer(STATUS[known], WORDS.get(known) or str(error), fields, headers)


def handle_unforeseen(error: Exception) -> Response:
    """Answer 500 and log what happened; the caller learns the request id alone."""
    if isinstance(error, HTTPException):
        response: Response = current_app.extensions["flask-smorest"]["apis"][""][
            "ext_obj"
        ].handle_http_exception(error)
        return response
    _log.error("unforeseen error", exc_info=error)
    return answer(500, _FRAMEWORK_WORDS[500])


def _database_error(error: DBAPIError) -> Response:
    state = _sqlstate(error)
    if (
        error.connection_invalidated
        or _NOT_NOW.fullmatch(state)
        or (isinstance(error, OperationalError) and not state)
    ):
        _log.warning("database not available", extra={"sqlstate": state, "reason": type(error.orig).__name__})
        return _not_now(PoolTimeout if state else OperationalError)
    if state == "23505":
        return _taken(_constraint(error))
    if state == "23503":
        return _dangling(error)
    if state == "23P01":
        return _colliding(_constraint(error))
    if _BAD_VALUE.fullmatch(state):
        return answer(422, "A value can't be stored.")
    return handle_unforeseen(StatementFailed(error).with_traceback(error.__traceback__))


def _sqlstate(error: DBAPIError) -> str:
    state = tenancy.sqlstate(error) or ""
    if state == "XX000":
        return next((meant for words, meant in _VIOLATIONS.items() if words in str(error.orig)), state)
    return state


def _not_now(reason: type[Exception]) -> Response:
    return answer(503, WORDS[reason], headers={"Retry-After": str(RETRY_AFTER[reason])})


def _constraint(error: DBAPIError) -> str:
    """Name the violated constraint: from the driver or else from the message, without a shard's suffix."""
    name = error.orig.diag.constraint_name  # type: ignore[union-attr]
    if not name:
        found = re.search(r'constraint "([^"]+)"', str(error.orig))
        name = found[1] if found else ""
    return name if name in _constraints() else re.sub(r"_\d+$", "", name)


def _taken(name: str) -> Response:
    table, columns = _constraints().get(name, (None, ()))
    if table is None:
        return answer(409, "A record with these values exists already.")
    words = " and ".join(_words(column) for column in columns)
    fields = {_field(column): ["already taken"] for column in columns}
    kind = _one_of(table)
    return answer(409, f"{kind[0].upper()}{kind[1:]} with this {words} exists already.", {"json": fields})


def _colliding(name: str) -> Response:
    table, _ = _constraints().get(name, (None, ()))
    kind = "record" if table is None else kind_of_table(table)
    return answer(409, f"It collides with another {kind}.")


def _dangling(error: DBAPIError) -> Response:
    """A reference was broken between the check and the write: the one referred to has gone, or is in use."""
    name = _constraint(error)
    table, columns = _constraints().get(name, (None, ()))
    if str(error.orig).startswith("insert or update"):
        fields = {_field(column): ["does not exist"] for column in columns}
        return answer(422, "A record that the input refers to does not exist.", {"json": fields})
    if table is None:
        return answer(409, "The record is in use.")
    used = next(key.referred_table for key in table.foreign_key_constraints if key.name == name)
    return answer(409, f"The {kind_of_table(used)} is in use by {_one_of(table)}.")


@cache
def _constraints() -> dict[str, tuple[Table, tuple[str, ...]]]:
    """The one table from constraint name to what it is about."""
    found: dict[str, tuple[Table, tuple[str, ...]]] = {}
    for table in db.Model.metadata.tables.values():
        for constraint in table.constraints:
            if isinstance(constraint, ColumnCollectionConstraint) and not isinstance(
                constraint, CheckConstraint
            ):
                found[str(constraint.name)] = table, tuple(column.name for column in constraint.columns)
        for index in table.indexes:
            if index.unique:
                found[str(index.name)] = table, tuple(column.name for column in index.columns)
    return found


def _one_of(table: Table) -> str:
    kind = kind_of_table(table)
    # "A user": the kinds with a u begin with the sound of a consonant.
    return f"an {kind}" if kind[0] in "aeio" else f"a {kind}"


def _words(column: str) -> str:
    return _field(column).replace("_", " ")


def _field(column: str) -> str:
    return column.removesuffix("_id")
