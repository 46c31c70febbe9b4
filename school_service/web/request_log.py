"""Request ids and logs: one JSON object a line, each with the id of the request it belongs to."""

from __future__ import annotations

import json
import logging
import random
import re
import sys
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, Literal, NamedTuple
from uuid import UUID

import orjson
from flask import Request, has_request_context

from school_service.core.database import context_globals
from school_service.web.client_address import client_address
from school_service.web.current import current_request

_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
_BEFORE_CODE = re.compile(r"/(?:verify|invitation)/(?=.)", re.IGNORECASE | re.DOTALL)
_OF_ONE_REQUEST = (
    "request_id",
    "principal",
    "acting_client",
    "school_id",
    "by_own",
    "token",
    "username_hash",
    "attempt_of",
    "client_address",
    "address_is_told",
    "waited_for_share",
    "log_members",
    "unknown_parameters",
)
WAITED = "school_service.waited"
"""The key in a request's environment for the seconds it has waited for a thread, as told by the server."""

AUTHENTICATION_ERROR = "school_service.authentication_error"
"""The key in a request's environment for the error of its token, if the server has looked at the token."""

QUEUE_FULL = "queue_full"
"""The cause of a 503 of the server without the application; the others are in web.error_responses."""

FAILURES_EVERY = 60.0
"""Seconds after a logged failure of an observer: further failures in this time are counted alone."""
LONGEST_TEXT = 300
"""The most characters of a request's statement about itself in its line in the log."""

ACCESS_LOG = logging.getLogger("school_service.access")
_log = logging.getLogger(__name__)
# An id is no secret. Asking the system for randomness would let another thread take the interpreter.
_random = random.Random()  # noqa: S311
# The members that every LogRecord has; all others came with `extra`.
_STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}
# The members that are the same in the record of every request: making them anew would cost as much as writing it.
_BLANK = {
    **vars(logging.LogRecord(ACCESS_LOG.name, logging.INFO, __file__, 0, "request", (), None)),
    **dict.fromkeys(("thread", "threadName", "process", "processName")),
}


class JsonFormatter(logging.Formatter):
    """Writes a log record as one line of JSON."""

    def format(self, record: logging.LogRecord) -> str:
        """Write time, level, logger, message, request id, and the members given with `extra`."""
        line: dict[str, Any] = {
            "at": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
        }
        if has_request_context():
            line["request_id"] = request_id()
        line.update({key: value for key, value in vars(record).items() if key not in _STANDARD})
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
    # These are in no line, so they need not be found for each record.
    logging.logThreads = logging.logProcesses = logging.logMultiprocessing = False
    # waitress warns of each request that waits for a thread: an operator's log would drown in it.
    logging.getLogger("waitress.queue").setLevel(logging.ERROR)
    # Alembic, imported where it is first needed, tells of each of its own parts.
    logging.getLogger("alembic.runtime.plugins").setLevel(logging.WARNING)


def request_id() -> str:
    """The id of the current request: the caller's X-Request-ID if it has a sound form, else a new one."""
    known = context_globals().__dict__
    value: str | None = known.get("request_id")
    if value is None:
        sent = current_request().environ.get("HTTP_X_REQUEST_ID", "")
        value = known["request_id"] = sent if _ID.fullmatch(sent) else _new_id()
    return value


def _new_id() -> str:
    return f"{_random.getrandbits(128):032x}"


def logged_path(path: str) -> str:
    """Give a path as it is logged: without the code of a report card or an invitation, told by the paper alone."""
    match = _BEFORE_CODE.search(path)
    return path if match is None else f"{path[: match.end()]}…"


class Answered(NamedTuple):
    """An answered request, as observers know it: plain values, and each may be absent.

    `route` and `method` are None if the application was not asked. `took` and `waited` are seconds. `school_id` is the
    school entered by the caller, `cause` the cause of a 503, `attempt_of` the kind of the account, user or client, of
    an attempt to sign in.
    """

    status: int
    route: str | None = None
    method: str | None = None
    took: float = 0.0
    waited: float = 0.0
    school_id: UUID | None = None
    cause: str | None = None
    attempt_of: Literal["user", "client"] | None = None


Observe = Callable[[Answered], None]


class _Failures:
    """Failures of observers: one of a kind is logged with its traceback, and for a while afterwards none of its kind.

    Failures of a kind are raised in one line of code, by errors of one type.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        # When the next of a kind is logged, and how many were not since the last that was.
        self._kinds: dict[tuple[type[Exception], Any, int], tuple[float, int]] = {}

    def log(self, error: Exception) -> None:
        """Log a failure, with the number of failures of its kind left out before it."""
        raised = error.__traceback__
        while raised is not None and raised.tb_next is not None:
            raised = raised.tb_next
        line = (None, 0) if raised is None else (raised.tb_frame.f_code, raised.tb_lineno)
        kind, now = (type(error), *line), time.monotonic()
        with self._lock:
            due, left_out = self._kinds.get(kind, (now, 0))
            self._kinds[kind] = (due, left_out + 1) if now < due else (now + FAILURES_EVERY, 0)
        if now >= due:
            _log.error("an observer of requests failed", exc_info=error, extra={"left_out": left_out})


_failures = _Failures()


def tell(observe: Callable[..., None], *told: Any) -> None:
    """Tell an observer of a request; its failure is logged, and no reason to answer anything else."""
    try:
        observe(*told)
    except Exception as error:
        _failures.log(error)


def begin() -> None:
    """Begin the request under way: the moment counts."""
    known = context_globals().__dict__
    if known:
        # A command or a test may have one application context, and with it `g`, around several requests.
        for name in _OF_ONE_REQUEST:
            known.pop(name, None)
    known["began"] = time.perf_counter()


def end(request: Request, status: int, observe: Observe | None) -> None:
    """Write the line of a request in the log, once its answer is made; let `observe` have it, too."""
    logged = ACCESS_LOG.isEnabledFor(logging.INFO)
    if not logged and observe is None:
        return
    known, environ = context_globals().__dict__, request.environ
    rule = request.url_rule
    answered = Answered(
        status,
        None if rule is None else route_template(rule.rule),
        environ["REQUEST_METHOD"],
        time.perf_counter() - known["began"],
        environ.get(WAITED, 0.0) + known.get("waited_for_share", 0.0),
        known.get("school_id"),
        known["log_members"].get("cause") if "log_members" in known else None,
        known.get("attempt_of"),
    )
    if observe is not None:
        tell(observe, answered)
    if logged:
        tell(_write_line, request, answered, known)


def _write_line(request: Request, answered: Answered, known: dict[str, Any]) -> None:
    # A request that was refused before it had a principal has at least a verified token.
    actor = known.get("principal") or known.get("acting_client") or known.get("token")
    members = {
        "method": (answered.method or "")[:LONGEST_TEXT],
        "path": logged_path(request.path)[:LONGEST_TEXT],
        "route": answered.route,
        "status": answered.status,
        "ms": round(answered.took * 1000, 2),
        "queue_ms": round(answered.waited * 1000, 2),
        "address": client_address(),
        "school": (request.environ.get("HTTP_X_SCHOOL_ID") or "")[:LONGEST_TEXT] or None,
        "actor": actor.actor if actor else None,
        "reach": ("OWN" if known.get("by_own") else "SCHOOL") if "principal" in known else None,
    }
    if "unknown_parameters" in known:
        members["unknown_parameters"] = known["unknown_parameters"]
    if "username_hash" in known:
        members["username_hash"] = known["username_hash"]
    if "log_members" in known:
        members.update(known["log_members"])
    write_access_line(members)


def write_access_line(members: dict[str, Any]) -> None:
    """Write the line of a request with these members, without searching the stack for the line of the program."""
    record = logging.LogRecord.__new__(logging.LogRecord)
    created = time.time()
    record.__dict__.update(_BLANK)
    record.__dict__.update(members, created=created, msecs=created % 1 * 1000)
    ACCESS_LOG.handle(record)


def log_of_request(**members: Any) -> None:
    """Add members to the log's line of the current request, such as why it was refused."""
    cut = {name: value[:LONGEST_TEXT] if isinstance(value, str) else value for name, value in members.items()}
    context_globals().__dict__.setdefault("log_members", {}).update(cut)


_PARAMETER = re.compile(r"<(?:[^:<>]*+:)?([^<>]++)>")


@lru_cache(1000)
def route_template(rule: str) -> str:
    """Write a route as the OpenAPI document does: `/users/{id}`."""
    return _PARAMETER.sub(r"{\1}", rule)
