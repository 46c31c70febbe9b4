"""Serving the application with waitress, and stopping without losing a request."""

from __future__ import annotations

import errno
import gc
import logging
import re
import resource
import select
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Hashable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from http import HTTPStatus
from types import FrameType
from typing import TYPE_CHECKING, Any
from uuid import UUID, uuid4

import orjson
import waitress
from flask import Flask
from sqlalchemy import Connection, text
from sqlalchemy.exc import DBAPIError
from waitress import wasyncore
from waitress.buffers import OverflowableBuffer
from waitress.channel import HTTPChannel
from waitress.task import ErrorTask, WSGITask
from waitress.utilities import RequestEntityTooLarge, RequestHeaderFieldsTooLarge
from werkzeug.http import HTTP_STATUS_CODES

from school_service.auth.tokens import own_issuer
from school_service.config import JSON_LIMIT, STRICT_PASSWORDS, Settings
from school_service.core.database import db
from school_service.dispatcher import Dispatcher, ServerShares
from school_service.event_loop import EventLoop
from school_service.request_parser import RequestParser
from school_service.web import response_headers
from school_service.web.client_address import first_untrusted, is_trusted
from school_service.web.cors import answer_fields
from school_service.web.request_log import ACCESS_LOG, QUEUE_FULL, WAITED, write_access_line
from tenants.driver_errors import first_line
from tenants.exceptions import NotInstalled, UnfitPlacement
from tenants.migrations.migration_sql import head
from tenants.placement import Placement
from tenants.registry.installation import check_installed
from tenants.registry.schools import schema_name

DEFAULT_HOST = "127.0.0.1"
DEFAULT_PORT = 8000
DEFAULT_THREADS = 8  # two fewer than the default POOL_SIZE: no request waits for a connection

SHUTDOWN_TIMEOUT = 30  # seconds that requests have to end once the process is to stop
IDLE_TIMEOUT = 60  # seconds that a connection may lie idle, or a client may read nothing of an answer
HEADER_TIMEOUT = 15  # seconds from a request's first byte to the end of its header fields
BODY_TIMEOUT = 60  # the same to the end of its body, and BODY_RATE is what a large one must come with besides
BODY_RATE = 16 * 1024  # bytes a second
LINGER_TIMEOUT = 5  # seconds that a client has to read why its body is not wanted
CONNECTION_LIMIT = 500
OPEN_FILES = 4096  # that the process may have, where the system lets it; 500 uploads can take 1024
NO_FILES = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})
IN_THREAD = 2.0  # seconds that a request waits for its school's share, where it has a thread already
SWITCH_INTERVAL = 0.0002  # seconds that a thread computes while others wait to
# Allocations, and collections of the younger, between the garbage collector's looks: with Python's own it looked again
# and again at the rows of a large sheet, which all live, while other requests waited.
GC_THRESHOLDS = (10_000, 100, 50)
HEADER_LIMIT = 64 * 1024  # bytes of a request's header fields
MOST_JOINED = 64 * 1024  # bytes of a body that is sent together with its header fields
MOST_UNSENT = 2**31  # bytes of answers that a connection has still to send before its thread waits
SHED_RETRY_AFTER = 2  # seconds

if TYPE_CHECKING:
    from school_service.monitoring import Metrics
    from school_service.web.request_scope import AppState

_ORIGIN = re.compile(rb"\r\nOrigin:([^\r\n]*)(?=\r\n)", re.IGNORECASE)
HEALTH_PATHS = frozenset({"/health", "/health/live", "/health/ready"})

_log = logging.getLogger(__name__)


class ServingError(Exception):
    """The service can't start; the message says why."""


class Refusal:
    """An answer that is given without the application, in the one shape of errors."""

    def __init__(self, status: HTTPStatus, message: str, headers: Mapping[str, str] | None = None) -> None:
        self._status = status
        self.message = message
        self._headers = dict(headers or {})

    def to_response(self, _ident: object = None) -> tuple[str, list[tuple[str, str]], bytes]:
        """Give status, headers and body, as waitress asks its own errors for them."""
        request_id = uuid4().hex
        body = {
            "code": self._status.value,
            "status": HTTP_STATUS_CODES[self._status.value],
            "message": self.message,
            "request_id": request_id,
        }
        headers = {"Content-Type": "application/json", "X-Request-ID": request_id}
        headers |= {**dict(response_headers.FIELDS), **self._headers}
        return f"{self._status.value} {body['status']}", list(headers.items()), orjson.dumps(body)


TOO_LARGE = Refusal(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "The request is too large.")
NO_TOKEN = Refusal(HTTPStatus.UNAUTHORIZED, "A bearer token is needed.", {"WWW-Authenticate": "Bearer"})
OVERLOADED = Refusal(
    HTTPStatus.SERVICE_UNAVAILABLE,
    "The service is overloaded. Try again shortly.",
    {"Retry-After": str(SHED_RETRY_AFTER)},
)

_REFUSALS = {
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE: TOO_LARGE,
    HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE: Refusal(
        HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, "The header fields of the request are too large."
    ),
    HTTPStatus.NOT_IMPLEMENTED: Refusal(
        HTTPStatus.NOT_IMPLEMENTED, "The transfer coding of the body is not supported."
    ),
    HTTPStatus.INTERNAL_SERVER_ERROR: Refusal(HTTPStatus.INTERNAL_SERVER_ERROR, "The service failed."),
}


def _refusal_of(error: Any) -> Refusal:
    """Give waitress' errors the one shape."""
    if isinstance(error, Refusal):
        return error
    refusal = _REFUSALS.get(error.code)
    if refusal is None:
        # What follows the first quotation mark is the client's own.
        reason = error.body.partition('"')[0].strip()
        refusal = Refusal(HTTPStatus(error.code), f"The request is not valid HTTP: {reason}.")
    return refusal


class BoundedParser(RequestParser):
    """A parser that refuses a request by its header fields, before its body is read.

    What is no upload has at most JSON_LIMIT bytes; an upload at most what `max_request_body_size` says, and a token.
    """

    error: Any

    def __init__(self, adjustments: Any) -> None:
        super().__init__(adjustments)
        self.begun = time.monotonic()

    def received(self, data: bytes) -> int:
        """Take bytes of the request; returns how many of them are its own."""
        taken: int = super().received(data)
        if isinstance(self.error, RequestHeaderFieldsTooLarge):
            # waitress reads no field then; this one decides who may read the answer.
            found = _ORIGIN.findall(self.header_plus + data)
            if len(found) == 1:
                self.headers["ORIGIN"] = found[0].strip(b" \t").decode("latin-1")
        if self.headers_finished and max(self.content_length, self.body_bytes_received) > JSON_LIMIT:
            refusal = self._judge_large()
            if refusal is not None:
                self.error, self.completed = refusal, True
        if self.completed:
            # There is no more to come. waitress would ask for it, in place of an answer.
            self.expect_continue = False
        return taken

    def _judge_large(self) -> Refusal | None:
        upload = self.headers.get("CONTENT_TYPE", "").lower().startswith("multipart/form-data")
        if not upload or isinstance(self.error, RequestEntityTooLarge):
            return TOO_LARGE
        if not self.headers.get("AUTHORIZATION", "").lower().startswith("bearer "):
            return NO_TOKEN
        return None

    def is_late(self, now: float) -> bool:
        """Tell whether it has taken the client too long to send this request."""
        if not self.headers_finished:
            return now - self.begun > HEADER_TIMEOUT
        size = max(self.content_length, self.body_bytes_received)
        return bool(now - self.begun > BODY_TIMEOUT + size / BODY_RATE)


class RefusalTask(ErrorTask):
    """An answer that is given without the application, which pages of CORS_ORIGINS may read as any other."""

    content_length: int

    def execute(self) -> None:
        """Write the answer, and the request's line in the log."""
        self.status, fields, body = _refusal_of(self.request.error).to_response()
        self.response_headers.extend((*fields, *self.channel.cors_fields.items()))
        self.set_close_on_finish()
        self.content_length = len(body)
        try:
            # To HEAD the fields alone are the answer, and are written at its end.
            if getattr(self.request, "command", None) != "HEAD":
                self.write(body)
        finally:
            # Also where the client has gone.
            self.channel.log_refusal(self.request, int(self.status.split()[0]), dict(fields)["X-Request-ID"])


class RequestTask(WSGITask):
    """A request for the application, which learns for how long it has waited."""

    wrote_header: bool

    def write(self, data: bytes) -> None:
        """Send a part of the answer; header fields go out together with a body that is whole."""
        whole = self.complete and not self.wrote_header and self.content_length == len(data)
        if not whole or not 0 < len(data) <= MOST_JOINED or not self.has_body:
            super().write(data)
            return
        self.channel.write_soon(self.build_response_header() + data)
        self.wrote_header = True
        self.content_bytes_written = len(data)

    def get_environment(self) -> dict[str, Any]:
        """Make the environment of the request."""
        environ: dict[str, Any] = super().get_environment()
        environ[WAITED] = self.channel.waited
        return environ


class _ServerOf:
    """The server as one channel knows it: what the channel says wakes the loop only where there is something to do."""

    def __init__(self, server: Any, channel: Channel, loop: EventLoop) -> None:
        self.adj, self.application, self.add_task = server.adj, server.application, server.add_task
        self.server_name, self.effective_port = server.server_name, server.effective_port
        self.active_channels = server.active_channels
        self._wake, self._channel, self._loop = server.pull_trigger, channel, loop

    def pull_trigger(self) -> None:
        """Let the loop look at the channel, where it has to send or to close, or is not listened to."""
        channel = self._channel
        number: int | None = channel._fileno
        if number is not None and (channel.writable() or self._loop.is_set_aside(number)):
            self._loop.look_again(number)
            self._wake()


class Channel(HTTPChannel):
    """A connection, with deadlines for its client; a task of our Dispatcher when its first request is complete."""

    parser_class = BoundedParser
    error_task_class = RefusalTask
    task_class = RequestTask
    current_outbuf_count: int

    def __init__(
        self, admission: Admission, server: Any, *arguments: Any, map: EventLoop, **options: Any
    ) -> None:
        self._admission = admission
        self.cors_fields: Mapping[str, str] = {}
        self.idle_since = self.queued_at = time.monotonic()
        self.waited = 0.0
        self._lingering_since: float | None = None
        self.close_when_flushed = False
        super().__init__(server, *arguments, map=map, **options)
        self.server = _ServerOf(server, self, map)

    def group(self) -> Hashable:
        """Name the school of the first request, as far as its token is known; else where it comes from."""
        headers = self.requests[0].headers
        school = self._admission.school_of(headers.get("AUTHORIZATION", ""), headers.get("X_SCHOOL_ID"))
        return school or self.addr[0]

    def is_quick(self) -> bool:
        """Tell whether the first request asks for health, or what a page may send, or is refused."""
        request = self.requests[0]
        if request.error is not None or request.path in HEALTH_PATHS:
            return True
        # The application answers a preflight at once; where it were refused, the page could not read why.
        is_preflight = request.command == "OPTIONS" and "ACCESS_CONTROL_REQUEST_METHOD" in request.headers
        return is_preflight and bool(self._admission.cors_origins)

    def refuse(self) -> None:
        """Let the answer to the first request be that the service is overloaded."""
        self.requests[0].error = OVERLOADED

    def service(self) -> None:
        """Answer the first request."""
        self.waited = time.monotonic() - self.queued_at
        origin = self.requests[0].headers.get("ORIGIN")
        self.cors_fields = answer_fields(self._admission.cors_origins, origin)
        try:
            super().service()
        except BaseException:
            # What waitress did not catch left the request where it was: the connection would wait for ever.
            self.cancel()
            self.server.pull_trigger()
            raise
        self.idle_since = time.monotonic()

    def log_refusal(self, request: Any, status: int, request_id: str | None) -> None:
        """Write the line of a request that was answered without the application, in the log of all requests."""
        refusal = request.error
        cause = QUEUE_FULL if refusal is OVERLOADED else None
        if self._admission.metrics is not None:
            self._admission.metrics.observe_refusal(status, self.waited, cause)
        if not ACCESS_LOG.isEnabledFor(logging.INFO):
            return
        # In place of header fields that are too large waitress reads some of its own making.
        unread = isinstance(refusal, RequestHeaderFieldsTooLarge)
        write_access_line(
            {
                "method": None if unread else getattr(request, "command", None),
                "path": None if unread else getattr(request, "path", None),
                "route": None,
                "status": status,
                "ms": 0.0,
                "queue_ms": round(self.waited * 1000, 2),
                "address": self._admission.client_of(
                    self.addr[0], request.headers.get("X_FORWARDED_FOR", "")
                ),
                "school": request.headers.get("X_SCHOOL_ID"),
                "actor": None,
                "request_id": request_id,
                "refused": refusal.message if isinstance(refusal, Refusal) else refusal.reason,
                **({"cause": cause} if cause else {}),
            }
        )

    def write_soon(self, data: Any) -> int:
        """Send what the connection takes at once, where nothing waits to be sent; the rest is sent by the loop."""
        sent = 0
        if isinstance(data, bytes) and not self.total_outbufs_len:
            with self.outbuf_lock:
                if self.connected and not self.total_outbufs_len:
                    if self.current_outbuf_count:
                        # What an answer before this one was stored in, in a file where it was large.
                        self.outbufs.pop().close()
                        self.outbufs.append(OverflowableBuffer(self.adj.outbuf_overflow))
                        self.current_outbuf_count = 0
                    # A connection that is lost is dealt with below.
                    with suppress(OSError):
                        sent = self.send(data, do_close=False)
                    self.last_activity = time.time()
        if sent < len(data):
            super().write_soon(data[sent:] if sent else data)
        return len(data)

    def is_idle(self) -> bool:
        """Tell whether nothing is to be done for the client: it sends its next request, or nothing at all."""
        return not (self.requests or self.total_outbufs_len or self.will_close)

    def is_late(self, now: float) -> bool:
        """Tell whether the client has had its time: to send, to read, to use the connection."""
        if self._lingering_since is not None:
            return now - self._lingering_since > LINGER_TIMEOUT
        if self.total_outbufs_len:
            return bool(time.time() - self.last_activity > IDLE_TIMEOUT)
        if self.requests:
            return False
        request = self.request
        if request is None:
            return now - self.idle_since > IDLE_TIMEOUT
        return bool(request.is_late(now))

    def handle_write(self) -> None:
        """Send what is to be sent; then end the connection where it is to end.

        Where a body was refused, the client is still sending it: it would lose our answer if the connection were
        closed. So only our side is closed, and what comes is thrown away for a while.
        """
        ends = self.close_when_flushed and not self.will_close
        if not ends:
            super().handle_write()
            return
        self.close_when_flushed = False
        super().handle_write()
        if self.total_outbufs_len or not self.connected:
            self.close_when_flushed = True
            return
        try:
            self.socket.shutdown(socket.SHUT_WR)
        except OSError:
            self.handle_close()
            return
        self._lingering_since = time.monotonic()

    def received(self, data: bytes) -> Any:
        """Take bytes of the client's, unless the connection is ending."""
        if self._lingering_since is not None:
            return False
        return super().received(data)


class Admission:
    """Which connections there may be; makes the channel of each.

    At the limits of all, and of one address that is no trusted proxy's, the connection that has been idle for longest
    makes room; where none is idle, the new one is closed. `school_of` names the school of a request by its token and
    school header, where the token is known. `metrics` count what is answered without the application.
    """

    def __init__(
        self,
        school_of: Callable[[str, str | None], str | None],
        settings: Settings,
        metrics: Metrics | None = None,
    ) -> None:
        self.school_of = school_of
        self.metrics = metrics
        self.cors_origins = settings.cors_origins
        self._proxies = settings.trusted_proxies
        self._per_address = settings.connections_per_address

    def client_of(self, peer: str, forwarded_for: str) -> str:
        """Tell the address of the client behind a connection, by X-Forwarded-For where proxies are trusted."""
        return first_untrusted(peer, forwarded_for, self._proxies)

    def __call__(
        self, server: Any, connection: socket.socket, address: Any, *rest: Any, **options: Any
    ) -> None:
        """Take a connection."""
        present = [channel for channel in server.active_channels.values() if not channel.will_close]
        full = len(present) >= CONNECTION_LIMIT
        if not full and len(present) >= self._per_address and not is_trusted(address[0], self._proxies):
            present = [channel for channel in present if channel.addr[0] == address[0]]
            full = len(present) >= self._per_address
        if full:
            idle = [channel for channel in present if channel.is_idle()]
            if not idle:
                connection.close()
                return
            min(idle, key=lambda channel: channel.idle_since).handle_close()
        Channel(self, server, connection, address, *rest, **options)


def listen(host: str, port: int) -> socket.socket:
    """Take the address, so that it is ours before any work is done; requests are let in by `serve`.

    Port 0 takes a free one. Raises ServingError.
    """
    try:
        family, socket_type, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
    except (socket.gaierror, UnicodeError):
        raise ServingError(f"The host {host} is not known.") from None
    listener = socket.socket(family, socket_type, protocol)
    # A port that was left a moment ago can be taken again.
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind(address)
        # Another process may have bound the port with the same option; only one of the two can listen.
        listener.listen()
    except OSError as error:
        listener.close()
        raise ServingError(
            f"Port {port} of {host} can't be taken: {(error.strerror or str(error)).lower()}. "
            "Choose another with --port (0 takes a free one)."
        ) from None
    return listener


def base_address(listener: socket.socket) -> str:
    """Write the address under which this machine reaches the service: `http://127.0.0.1:8000`."""
    host, port = listener.getsockname()[:2]
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def check_database(app: Flask, settings: Settings, threads: int) -> None:
    """See that the database is there and of this version, and warn of what is unwise; raises ServingError."""
    placement: Placement = app.extensions["placement"]
    try:
        with app.app_context(), db.engines["registry"].connect() as connection:
            check_installed(connection)
            placement.check(connection)
            own_issuer()  # here, so that no request has to read it
            found = connection.execute(
                text(
                    "SELECT rolname, rolsuper OR rolbypassrls AS mighty,"
                    # What creates schools; nothing here names the login that provisions, nor need it.
                    " has_database_privilege(current_database(), 'CREATE') AS provisions,"
                    " current_setting('max_connections')::int AS connections,"
                    " (SELECT count(*) FROM pg_roles WHERE rolcanlogin AND rolname = ANY (:logins)) AS logins"
                    " FROM pg_roles WHERE rolname = current_user"
                ),
                {"logins": list(placement.all_logins)},
            ).one()
            # A statement of its own: tables of the registry are not joined with the catalogue.
            schools = connection.execute(
                text(
                    "SELECT count(*) AS all_schools, count(*) FILTER (WHERE revision <> :head) AS behind,"
                    " min(id::text) AS any_school FROM registry.schools"
                ),
                {"head": head()},
            ).one()
            if settings.tenant_roles and schools.any_school is not None:
                _check_role(connection, schema_name(UUID(schools.any_school)))
            app.extensions["health"]()  # here, so that nobody is told of a check that has not ended yet
    except (NotInstalled, UnfitPlacement) as error:
        raise ServingError(str(error)) from None
    except DBAPIError as error:
        reason = first_line(error.orig)
        raise ServingError(f"The database of DATABASE_URL can't be used: {reason}") from None
    if found.logins < len(placement.all_logins):
        raise ServingError(
            f"SERVING_LOGINS is {placement.logins}, and the database has not all of these logins. "
            "Run: school-service tenants init"
        )
    if found.mighty:
        _log.warning(
            "the login of DATABASE_URL is a superuser: the wall between schools does not hold for it; name "
            "another there, and the superuser in ADMIN_DATABASE_URL, then run: school-service tenants init",
            extra={"login": found.rolname},
        )
    elif found.provisions:
        _log.warning(
            "the same login serves and provisions: give DATABASE_URL one of its own",
            extra={"login": found.rolname},
        )
    advice = placement.advice(schools.all_schools) if settings.tenant_roles else None
    if advice:
        _log.warning("%s", advice)
    if settings.pool_size < threads:
        _log.warning(
            "POOL_SIZE is less than --threads: requests will wait for a database connection",
            extra={"pool_size": settings.pool_size, "threads": threads},
        )
    idle = placement.logins * placement.idle_connections(settings.pool_size)
    if idle >= found.connections:
        _log.warning(
            "POOL_SIZE asks for more connections than PostgreSQL allows",
            extra={
                "pool_size": settings.pool_size,
                "idle_connections": idle,
                "max_connections": found.connections,
            },
        )
    if settings.signing_key_warning:
        _log.warning(settings.signing_key_warning)
    if settings.password_policy != STRICT_PASSWORDS:
        _log.warning(
            "PASSWORD_POLICY is not strict: users can have passwords of one character, and the most common ones"
        )
    if schools.behind:
        _log.warning(
            "schools are at a revision that this version does not serve: they answer 503",
            extra={"schools": schools.behind},
        )


def _check_role(connection: Connection, schema: str) -> None:
    """See that a school of the installation has a role; raises ServingError."""
    if connection.execute(text("SELECT to_regrole(:name)"), {"name": schema}).scalar_one() is None:
        raise ServingError(
            "TENANT_ROLES is on, and the schools of this database were created without roles: set it to off."
        )


def serve(
    app: Flask,
    settings: Settings,
    listener: socket.socket,
    *,
    threads: int = DEFAULT_THREADS,
    announce: Callable[[], None] | None = None,
) -> None:
    """Serve until SIGTERM, SIGINT or SIGHUP; what is under way then ends, within SHUTDOWN_TIMEOUT seconds.

    `announce` is called when requests are let in and those signals are heeded. A second signal ends it at
    once, as SystemExit(1).
    """
    # What has been made by now lives as long as the process: the collector need not look at it again.
    gc.collect()
    gc.freeze()
    gc.set_threshold(*GC_THRESHOLDS)
    # So a short request waits less for its turn beside one that computes; the default is 5 ms.
    sys.setswitchinterval(SWITCH_INTERVAL)
    _raise_file_limit()
    loop = EventLoop()
    state: AppState = app.extensions["school-service"]
    share = settings.school_requests or max(1, threads // 2)
    # Requests wait in the queue of the dispatcher; few ever in a thread, and not for long.
    state.shares.limit, state.shares.waiting, state.shares.patience = share, max(1, share // 2), IN_THREAD
    dispatcher = Dispatcher(
        threads, share=share, waiting=settings.school_waiting, servers=_server_shares(app, threads)
    )
    server: Any = waitress.create_server(
        app,
        map=loop,
        sockets=[listener],
        _dispatcher=dispatcher,
        max_request_body_size=app.config["MAX_CONTENT_LENGTH"] + 1,
        max_request_header_size=HEADER_LIMIT,
        # Ours come first: `Admission` makes room, waitress would stop accepting.
        connection_limit=2 * CONNECTION_LIMIT,
        cleanup_interval=1,
        # An answer of any size is handed over at once, what is large to a temporary file: no thread waits for a client.
        outbuf_high_watermark=MOST_UNSENT,
        # X-Forwarded-For is read by ourselves, hop by hop, where there are trusted proxies (web.client_address).
        clear_untrusted_proxy_headers=not settings.trusted_proxies,
        expose_tracebacks=False,
        ident=None,
    )
    metrics: Metrics | None = app.extensions.get("metrics")
    if metrics is not None:
        metrics.queue = dispatcher
    server.channel_class = Admission(state.known_school, settings, metrics)
    server.maintenance = lambda _now: _end_late(server)
    server.accept = accepting(server, loop)
    stopping = threading.Event()

    def stop(_number: int, _frame: FrameType | None) -> None:
        if stopping.is_set():
            raise SystemExit(1)
        stopping.set()
        server.pull_trigger()

    with serve_metrics(metrics, settings), _handling(stop):
        if announce is not None:
            announce()
        _log.info("serving", extra={"address": base_address(listener), "threads": threads})
        while not stopping.is_set():
            # Deadlines are looked at once a second.
            loop.run_once(1)
        _log.info("stopping")
        _drain(server, loop)


def _server_shares(app: Flask, threads: int) -> ServerShares | None:
    """Give each of several database servers three quarters of the threads: more than a school has, and never all."""
    placement: Placement = app.extensions["placement"]
    if not placement.several_servers:
        return None

    def server_of(group: Hashable) -> Hashable | None:
        # A request whose school is not known is named by where it comes from.
        try:
            school_id = UUID(str(group))
        except ValueError:
            return None
        return placement.server_of(school_id)

    return ServerShares(max(1, threads * 3 // 4), server_of)


@contextmanager
def serve_metrics(metrics: Metrics | None, settings: Settings) -> Iterator[None]:
    """Serve the metrics, if there are any, while the block runs; raises ServingError where their port is taken."""
    if metrics is None or settings.metrics_port is None:
        yield
        return
    from school_service.monitoring import serving_metrics

    with ExitStack() as stack:
        try:
            serving = serving_metrics(metrics, settings.metrics_address, settings.metrics_port)
            address = stack.enter_context(serving)
        except OSError as error:
            raise ServingError(
                f"METRICS_PORT {settings.metrics_port} of {settings.metrics_address} can't be taken: "
                f"{(error.strerror or str(error)).lower()}."
            ) from None
        _log.info("serving metrics", extra={"address": address})
        yield


@contextmanager
def _handling(handler: Any) -> Iterator[None]:
    numbers = [signal.SIGTERM, signal.SIGINT]
    # A closed terminal stops the service, unless nohup says otherwise.
    hang_up = getattr(signal, "SIGHUP", None)
    if hang_up is not None and signal.getsignal(hang_up) != signal.SIG_IGN:
        numbers.append(hang_up)
    before = {number: signal.signal(number, handler) for number in numbers}
    try:
        yield
    finally:
        for number, previous in before.items():
            signal.signal(number, previous)


def accepting(server: Any, loop: EventLoop) -> Callable[[], Any]:
    """Make what takes the server's connections: where no more files can be open, it says so and waits a little.

    waitress tries again at once, and writes a traceback each time.
    """
    accept = server.accept

    def take() -> Any:
        try:
            return accept()
        except OSError as error:
            if error.errno not in NO_FILES:
                raise
            loop.pause(server._fileno)
            _log.warning("no connection can be taken", extra={"reason": error.strerror})
            return None

    return take


def _raise_file_limit() -> None:
    """Allow as many open files as the connections may need: each its socket, a body and an answer."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = OPEN_FILES if hard == resource.RLIM_INFINITY else min(OPEN_FILES, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def _end_late(server: Any) -> None:
    now = time.monotonic()
    for channel in list(server.active_channels.values()):
        if channel.is_late(now):
            # At once: the loop would wait for room to send in, and who reads nothing makes none.
            channel.handle_close()


def _drain(server: Any, loop: EventLoop) -> None:
    """Stop listening, let the requests end that have come (even in part), close what is idle."""
    # Those who have connected already are not turned away.
    for _ in range(server.adj.backlog):
        if not select.select([server.socket], [], [], 0)[0]:
            break
        server.handle_accept()
    # Not server.close(): threads still wake the loop by the server's trigger.
    wasyncore.dispatcher.close(server)
    loop.run_once(0)
    deadline = time.monotonic() + SHUTDOWN_TIMEOUT
    while server.active_channels and time.monotonic() < deadline:
        for channel in list(server.active_channels.values()):
            _finish_channel(channel)
        if server.active_channels:
            loop.run_once(0.5)
    if server.active_channels:
        _log.warning("requests were cut off", extra={"requests": len(server.active_channels)})


def _finish_channel(channel: HTTPChannel) -> None:
    if not (channel.requests or channel.request or channel.total_outbufs_len):
        channel.handle_close()
        return
    # The answer says that the connection ends with it.
    for request in (*channel.requests, channel.request):
        if request is not None:
            request.headers["CONNECTION"] = "close"
