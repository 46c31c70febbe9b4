"""Request ids and logs: one JSON object a line, each with the id of the request it belongs to."""

from __future__ import annotations

import json
import logging
import random
import re
import sys
import time
from datetime import UTC, datetime
from typing import Any

import orjson
from flask import Flask, Response, g, has_request_context, request

from school_service.web.client_address import client_address

_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
_CODE = re.compile(r"(?<=/verify/).+", re.IGNORECASE | re.DOTALL)
_OF_ONE_REQUEST = ("request_id", "principal", "token", "username_hash", "client_address")
_access = logging.getLogger("school_service.access")
# An id is no secret, and to ask the system for randomness would hand the interpreter to another thread.
_random = random.Random()  # noqa: S311
# What every LogRecord has; the rest of its members came with `extra`.
_STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


class JsonFormatter(logging.Formatter):
    """Writes a log record as one line of JSON."""

    def format(self, record: logging.LogRecord) -> str:
        """Write time, level, logger, message, request id, and whatever came with `extra`."""
        line: dict[str, Any] = {
            "at": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
        }
        if has_request_context():
            line["request_id"] = request_id()
        line.update((key, value) for key, value in vars(record).items() if key not in _STANDARD)
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        try:
            return orjson.dumps(line, default=str).decode()
        except orjson.JSONEncodeError:
            # Lone surrogates and very large numbers: rare, and never a reason to lose a line.
            return json.dumps(line, default=str)


def configure_logging(level: str) -> None:
    """Send the process's logs to standard error as JSON."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level)
    # What no line says need not be found out for each record.
    logging.logThreads = logging.logProcesses = logging.logMultiprocessing = False
    # waitress warns of each request that waits for a thread: an operator's log would drown in it.
    logging.getLogger("waitress.queue").setLevel(logging.ERROR)


def request_id() -> str:
    """The id of the current request: the caller's X-Request-ID where it has a sound form, else a new one."""
    known = g.__dict__  # one way through the proxy
    found: str | None = known.get("request_id")
    if found is None:
        sent = request.environ.get("HTTP_X_REQUEST_ID", "")
        found = known["request_id"] = sent if _ID.fullmatch(sent) else _new_id()
    return found


def _new_id() -> str:
    return f"{_random.getrandbits(128):032x}"


def logged_path(path: str) -> str:
    """Give a path as it is logged: without the code of a report card, which the paper alone is to have."""
    return _CODE.sub("…", path)


def log_requests(app: Flask) -> None:
    """Give every answer its X-Request-ID, and every request a line in the log."""

    @app.before_request
    def begin() -> None:
        # A command or a test may have one application context, and with it `g`, around several requests.
        known = g.__dict__
        for name in _OF_ONE_REQUEST:
            known.pop(name, None)
        known["began"] = time.perf_counter()

    @app.after_request
    def end(response: Response) -> Response:
        response.headers["X-Request-ID"] = request_id()
        if _access.isEnabledFor(logging.INFO):
            known, environ = g.__dict__, request.environ
            # Who was refused before they were known as the school's principal has a token that was verified.
            actor = known.get("principal") or known.get("token")
            record = logging.LogRecord(_access.name, logging.INFO, __file__, 0, "request", (), None)
            # As `extra` would, without looking up the stack which line of the program this is.
            record.__dict__.update(
                method=environ["REQUEST_METHOD"],
                path=logged_path(request.path),
                status=response.status_code,
                ms=round((time.perf_counter() - known["began"]) * 1000, 2),
                address=client_address(),
                school=environ.get("HTTP_X_SCHOOL_ID"),
                actor=actor.actor if actor else None,
            )
            if "username_hash" in known:
                record.username_hash = known["username_hash"]
            _access.handle(record)
        return response
