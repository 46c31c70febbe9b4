"""Serving the application with waitress, and stopping without losing a request."""

from __future__ import annotations

import gc
import logging
import select
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

import waitress
from flask import Flask
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError
from waitress import wasyncore
from waitress.channel import HTTPChannel
from waitress.parser import HTTPRequestParser

from school_service.auth.tokens import own_issuer
from school_service.config import STRICT_PASSWORDS, Settings
from school_service.core.database import db
from tenants.driver_errors import first_line
from tenants.exceptions import NotInstalled
from tenants.migrations.migration_sql import head
from tenants.placement import Placement
from tenants.registry.installation import check_installed

DEFAULT_HOST = "127.0.0.1"
DEFAULT_PORT = 8000
DEFAULT_THREADS = 8  # two fewer than the default POOL_SIZE: no request waits for a connection

SHUTDOWN_TIMEOUT = 30  # seconds that requests have to end once the process is to stop
IDLE_TIMEOUT = 60  # seconds that a connection may lie idle
CONNECTION_LIMIT = 500  # a process may have 1024 files and connections open, where nobody raised that
HEADER_LIMIT = 64 * 1024  # bytes of a request's header fields
MOST_UNSENT = 2**31  # bytes of answers that a connection has still to send before its thread waits
MIN_BODY_CAP = 64 * 2**20  # bytes

_log = logging.getLogger(__name__)


class ServingError(Exception):
    """The service can't start; the message says why."""


class RequestParser(HTTPRequestParser):  # type: ignore[misc]
    """waitress' parser, which ends the connection of a request whose length is told in two ways.

    A proxy in front may believe the other of the two, and take the rest for a request of its next caller (RFC 9112,
    section 6.3). waitress itself goes by Transfer-Encoding, or for HTTP/1.0 by Content-Length, and reads on.
    """

    def parse_header(self, header_plus: bytes) -> None:
        """Read the header fields."""
        super().parse_header(header_plus)
        # Of HTTP/1.1 waitress has taken the field away by now, of HTTP/1.0 it has not looked at it.
        two_lengths = self.chunked and "CONTENT_LENGTH" in self.headers
        if two_lengths or "TRANSFER_ENCODING" in self.headers:
            self.headers["CONNECTION"] = "close"


class Channel(HTTPChannel):  # type: ignore[misc]
    """A connection whose requests are read by our parser."""

    parser_class = RequestParser


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
            own_issuer()  # here, so that no request has to read it
            found = connection.execute(
                text(
                    "SELECT rolname, rolsuper OR rolbypassrls AS mighty,"
                    " current_setting('max_connections')::int AS connections,"
                    " (SELECT count(*) FROM registry.schools) AS schools,"
                    " (SELECT count(*) FROM pg_roles WHERE rolcanlogin AND rolname = ANY (:logins)) AS logins,"
                    " (SELECT count(*) FROM registry.schools WHERE revision <> :head) AS behind"
                    " FROM pg_roles WHERE rolname = current_user"
                ),
                {"head": head(), "logins": list(placement.all_logins)},
            ).one()
    except NotInstalled as error:
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
    elif settings.database_url.username == settings.admin_database_url.username:
        _log.warning(
            "the same login serves and provisions: give DATABASE_URL one of its own",
            extra={"login": found.rolname},
        )
    advice = placement.advice(found.schools) if settings.tenant_roles else None
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
    if found.behind:
        _log.warning(
            "schools are at a revision that this version does not serve: they answer 503",
            extra={"schools": found.behind},
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
    channels: dict[int, Any] = {}
    server: Any = waitress.create_server(
        app,
        map=channels,
        sockets=[listener],
        threads=threads,
        # Above our own limit, so that the answer to what is too large is ours in all but absurd cases.
        max_request_body_size=max(4 * settings.max_upload_bytes, MIN_BODY_CAP),
        max_request_header_size=HEADER_LIMIT,
        channel_timeout=IDLE_TIMEOUT,
        connection_limit=CONNECTION_LIMIT,
        # An answer of any size is handed over at once, what is large to a temporary file: no thread waits for a client.
        outbuf_high_watermark=MOST_UNSENT,
        asyncore_use_poll=True,
        # X-Forwarded-For is read by ourselves, hop by hop, where there are trusted proxies (web.client_address).
        clear_untrusted_proxy_headers=not settings.trusted_proxies,
        expose_tracebacks=False,
        ident=None,
    )
    server.channel_class = Channel
    stopping = threading.Event()

    def stop(_number: int, _frame: FrameType | None) -> None:
        if stopping.is_set():
            raise SystemExit(1)
        stopping.set()
        server.pull_trigger()

    with _handling(stop):
        if announce is not None:
            announce()
        _log.info("serving", extra={"address": base_address(listener), "threads": threads})
        while not stopping.is_set():
            _run_loop_once(channels, 30)
        _log.info("stopping")
        _drain(server, channels)


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


def _run_loop_once(channels: dict[int, Any], seconds: float) -> None:
    wasyncore.loop(timeout=seconds, use_poll=True, map=channels, count=1)


def _drain(server: Any, channels: dict[int, Any]) -> None:
    """Stop listening, let the requests end that have come (even in part), close what is idle."""
    # Those who have connected already are not turned away.
    while select.select([server.socket], [], [], 0)[0]:
        server.handle_accept()
    # Not server.close(): threads still wake the loop by the server's trigger.
    wasyncore.dispatcher.close(server)
    _run_loop_once(channels, 0)
    deadline = time.monotonic() + SHUTDOWN_TIMEOUT
    while server.active_channels and time.monotonic() < deadline:
        for channel in list(server.active_channels.values()):
            _finish_channel(channel)
        if server.active_channels:
            _run_loop_once(channels, 0.5)
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
