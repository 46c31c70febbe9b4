"""One connection: its deadlines, how an answer leaves, and the record of a refused request."""

from __future__ import annotations

import logging
import socket
import threading
import time
from collections.abc import Callable, Hashable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from waitress.buffers import OverflowableBuffer
from waitress.channel import HTTPChannel
from waitress.task import ErrorTask, WSGITask
from waitress.utilities import RequestHeaderFieldsTooLarge

from school_service.config import Networks
from school_service.core.addresses import site_of
from school_service.serving.dispatcher import Stranger
from school_service.serving.loop import EventLoop
from school_service.serving.parser import RequestParser
from school_service.serving.refusals import OVERLOADED, Refusal, refusal_of
from school_service.web.client_address import first_untrusted
from school_service.web.request_log import (
    ACCESS_LOG,
    AUTHENTICATION_ERROR,
    QUEUE_FULL,
    WAITED,
    Answered,
    Observe,
    logged_path,
    tell,
    write_access_line,
)
from school_service.web.response_headers import answer_fields

IDLE_TIMEOUT = 60  # seconds that a connection may lie idle, or a client may read nothing of an answer
LINGER_TIMEOUT = 5  # seconds that a client has to read why its body is not wanted
MOST_JOINED = 64 * 1024  # bytes of a body that is sent together with its header fields
HEALTH_PATHS = frozenset({"/health", "/health/live", "/health/ready"})


@dataclass(frozen=True)
class ChannelOptions:
    """The common options of all channels of a server.

    `school_of` names the school of a request by its headers Authorization and X-SCHOOL-ID, if the token was verified
    before; `verify` verifies the token of a header Authorization, and returns the error to be raised by the
    application, if there is one. `observe` is told of answers without the application. Once the server is `ending`,
    each answer says that its connection ends.
    """

    school_of: Callable[[str, str | None], str | None]
    verify: Callable[[str], Exception | None]
    cors_origins: tuple[str, ...] = ()
    trusted_proxies: Networks = ()
    observe: Observe | None = None
    ending: threading.Event = field(default_factory=threading.Event)


class RefusalTask(ErrorTask):
    """An answer given without the application; pages of CORS_ORIGINS may read it as any other."""

    content_length: int

    def execute(self) -> None:
        """Write the answer, and the request's line in the log."""
        self.status, fields, body = refusal_of(self.request.error).to_response()
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
    """A request for the application; the application is told for how long it has waited."""

    wrote_header: bool

    def write(self, data: bytes) -> None:
        """Send a part of the answer; header fields go out together with a whole body."""
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
        # It is this request's alone: the connection's next one may be under way before this has ended.
        error, self.channel.authentication_error = self.channel.authentication_error, None
        if error is not None:
            environ[AUTHENTICATION_ERROR] = error
        return environ


class Channel(HTTPChannel):
    """A connection, with deadlines for its client.

    The dispatcher has it in its queue as soon as a request has come whole, one request at a time, in their order.
    """

    parser_class = RequestParser
    error_task_class = RefusalTask
    task_class = RequestTask
    current_outbuf_count: int

    def __init__(
        self,
        options: ChannelOptions,
        server: Any,
        connection: socket.socket,
        address: Any,
        adjustments: Any,
        *,
        map: EventLoop,
    ) -> None:
        self._options = options
        self._loop = map
        self.address: str = address[0]
        self.cors_fields: Mapping[str, str] = {}
        self.idle_since = self.queued_at = time.monotonic()
        self.waited = 0.0
        self.authentication_error: Exception | None = None
        self._lingering_since: float | None = None
        self.close_when_flushed = False
        super().__init__(server, connection, address, adjustments, map=map)

    def share_key(self) -> Hashable:
        """Name the school of the first request, as far as its token is known; else its origin.

        For a client behind a trusted proxy, the proxy names the origin.
        """
        headers = self.requests[0].headers
        authorization = headers.get("AUTHORIZATION", "")
        school = self._options.school_of(authorization, headers.get("X_SCHOOL_ID"))
        if school is not None:
            return school
        return Stranger(site_of(self._client_address(headers)), authorization[:7].lower() == "bearer ")

    def verify(self) -> None:
        """Verify the token of the first request, in a thread of the dispatcher."""
        self.authentication_error = self._options.verify(self.requests[0].headers.get("AUTHORIZATION", ""))

    def _client_address(self, headers: Mapping[str, str]) -> str:
        return first_untrusted(
            self.address, headers.get("X_FORWARDED_FOR", ""), self._options.trusted_proxies
        )

    def is_quick(self) -> bool:
        """Tell whether the first request asks for health, or for the rights of a page (a preflight), or is refused."""
        request = self.requests[0]
        if request.error is not None or request.path in HEALTH_PATHS:
            return True
        # The application answers a preflight at once; where it were refused, the page could not read why.
        is_preflight = request.command == "OPTIONS" and "ACCESS_CONTROL_REQUEST_METHOD" in request.headers
        return is_preflight and bool(self._options.cors_origins)

    def refuse(self) -> None:
        """Let the answer to the first request be a refusal: the service is overloaded."""
        self.requests[0].error = OVERLOADED

    def service(self) -> None:
        """Answer the first request, in a thread of the dispatcher."""
        self.waited = time.monotonic() - self.queued_at
        headers = self.requests[0].headers
        if self._options.ending.is_set():
            headers["CONNECTION"] = "close"
        origin = headers.get("ORIGIN")
        self.cors_fields = answer_fields(self._options.cors_origins, origin)
        try:
            super().service()
        except BaseException:
            # An error that waitress did not catch left the request open: the connection would wait for ever.
            self.cancel()
            raise
        finally:
            self._tell_loop()
        self.idle_since = time.monotonic()

    def _tell_loop(self) -> None:
        """Wake the loop if it has something to send or to close, or does not listen to this connection."""
        number: int | None = self._fileno
        if number is not None and (self.writable() or self._loop.is_set_aside(number)):
            self._loop.look_again(number)

    def log_refusal(self, request: Any, status: int, request_id: str | None) -> None:
        """Write the line of a request answered without the application, in the log of all requests."""
        cause = QUEUE_FULL if request.error is OVERLOADED else None
        if self._options.observe is not None:
            tell(self._options.observe, Answered(status, waited=self.waited, cause=cause))
        if ACCESS_LOG.isEnabledFor(logging.INFO):
            tell(self._write_line, request, status, cause, request_id)

    def _write_line(self, request: Any, status: int, cause: str | None, request_id: str | None) -> None:
        refusal = request.error
        # In place of header fields that are too large waitress reads some of its own making.
        unread = isinstance(refusal, RequestHeaderFieldsTooLarge)
        path = None if unread else getattr(request, "path", None)
        write_access_line(
            {
                "method": None if unread else getattr(request, "command", None),
                "path": None if path is None else logged_path(path),
                "route": None,
                "status": status,
                "ms": 0.0,
                "queue_ms": round(self.waited * 1000, 2),
                "address": self._client_address(request.headers),
                "school": request.headers.get("X_SCHOOL_ID"),
                "actor": None,
                "request_id": request_id,
                "refused": refusal.message if isinstance(refusal, Refusal) else refusal.reason,
                **({"cause": cause} if cause else {}),
            }
        )

    def write_soon(self, data: Any) -> int:
        """Send as much as the connection takes at once, if nothing waits to be sent; the rest is sent by the loop."""
        sent = 0
        if isinstance(data, bytes) and not self.total_outbufs_len:
            with self.outbuf_lock:
                if self.connected and not self.total_outbufs_len:
                    if self.current_outbuf_count:
                        # The buffer of an answer before this one: a file where it was large.
                        self.outbufs.pop().close()
                        self.outbufs.append(OverflowableBuffer(self.adj.outbuf_overflow))
                        self.current_outbuf_count = 0
                    # A connection that is lost is dealt with below.
                    with suppress(OSError):
                        sent = self.send(data, do_close=False)
                    self.last_activity = time.time()
        if sent < len(data):
            super().write_soon(data[sent:] if sent else data)
            self._tell_loop()
        return len(data)

    def is_idle(self) -> bool:
        """Tell whether nothing is to be done for the client: it sends its next request, or nothing at all."""
        return not (self.requests or self.total_outbufs_len or self.will_close)

    def is_ending(self) -> bool:
        """Tell whether it is about to be closed."""
        return bool(self.will_close)

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

    def end(self) -> None:
        """Close it at once: the loop would wait for room to send in, and a client without reading makes none."""
        self.handle_close()

    def finish(self, idle_before: float) -> None:
        """Close it if nothing has begun, even in part; else let the answers announce its end with them.

        A connection idle only since a moment (`time.monotonic`) after `idle_before` is left alone.
        """
        if not (self.requests or self.request or self.total_outbufs_len):
            if self.idle_since <= idle_before:
                self.end()
            return
        for request in (*self.requests, self.request):
            if request is not None:
                request.headers["CONNECTION"] = "close"

    def handle_write(self) -> None:
        """Send the bytes to be sent; then end the connection if it is to end.

        After a refused body the client is still sending it: it would lose our answer if the connection were closed. So
        only our side is closed, and incoming bytes are thrown away for a while.
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
            self.end()
            return
        self._lingering_since = time.monotonic()

    def received(self, data: bytes) -> Any:
        """Take bytes of the client's, unless the connection is ending."""
        if self._lingering_since is not None:
            return False
        return super().received(data)
