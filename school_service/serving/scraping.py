"""Serving the metrics to Prometheus, on a port of their own (METRICS_PORT), in a thread of their own."""

from __future__ import annotations

import logging
import socket
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from socketserver import TCPServer, ThreadingMixIn
from typing import Any, Protocol
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer

from prometheus_client import CollectorRegistry, make_wsgi_app

from school_service.serving import ServingError

SCRAPES = 5  # connections at once
SCRAPE_TIMEOUT = 5.0  # seconds that a scraper has to send, and to read

_log = logging.getLogger(__name__)


class ServedMetrics(Protocol):
    """The metrics to be served: of this process, or of the workers of a supervisor."""

    @property
    def registry(self) -> CollectorRegistry:
        """Their collectors."""


class _Handler(WSGIRequestHandler):
    timeout = SCRAPE_TIMEOUT

    def log_message(self, *_: Any) -> None:
        """Write nothing: Prometheus asks for metrics every few seconds."""


class _Server(ThreadingMixIn, WSGIServer):
    daemon_threads = True
    request_queue_size = 64

    def __init__(self, address: tuple[str, int]) -> None:
        self.address_family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
        self._free = threading.BoundedSemaphore(SCRAPES)
        super().__init__(address, _Handler)

    def server_bind(self) -> None:
        """Take the address, without asking the name service for its name."""
        TCPServer.server_bind(self)
        self.server_name, self.server_port = str(self.server_address[0]), self.server_address[1]
        self.setup_environ()

    @property
    def url(self) -> str:
        """The address of the metrics."""
        host = str(self.server_address[0])
        return f"http://{f'[{host}]' if ':' in host else host}:{self.server_port}/metrics"

    def process_request(self, request: Any, client_address: Any) -> None:
        """Answer in a thread, unless SCRAPES are under way: then close the connection."""
        if not self._free.acquire(blocking=False):
            self.shutdown_request(request)
            return
        super().process_request(request, client_address)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Answer, and make room for the next."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._free.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Write down a failure, as all else is; a client gone away, or silent, is none."""
        if not isinstance(sys.exception(), OSError):
            _log.exception("the metrics could not be written")


def start_serving(metrics: ServedMetrics, address: str, port: int) -> _Server:
    """Serve the metrics in a thread of their own; raises OSError if the address can't be taken.

    Port 0 takes a free one; the server's `url` has it.
    """
    server = _Server((address, port))
    server.set_app(make_wsgi_app(metrics.registry))
    threading.Thread(
        target=server.serve_forever, kwargs={"poll_interval": 0.1}, name="metrics", daemon=True
    ).start()
    return server


@contextmanager
def serve_metrics(metrics: ServedMetrics, address: str, port: int) -> Iterator[str]:
    """Serve the metrics while the block runs; yields their address. Raises ServingError if the port is taken."""
    try:
        server = start_serving(metrics, address, port)
    except OSError as error:
        raise ServingError(
            f"METRICS_PORT {port} of {address} can't be taken: {(error.strerror or str(error)).lower()}."
        ) from None
    with server:
        try:
            _log.info("serving metrics", extra={"address": server.url})
            yield server.url
        finally:
            server.shutdown()


def serve_in_background(metrics: ServedMetrics, address: str, port: int) -> None:
    """Serve the metrics until the process ends, for servers without knowledge of them.

    If another process of the same server has taken the port, this one has no metrics, and the log says so.
    """
    try:
        url = start_serving(metrics, address, port).url
    except OSError as error:
        reason = error.strerror or str(error)
        _log.warning("the metrics of this process are not served", extra={"port": port, "reason": reason})
    else:
        _log.info("serving metrics", extra={"address": url})
