"""Serving the application with waitress, and stopping without losing a request."""

from __future__ import annotations

import errno
import gc
import logging
import select
import socket
import sys
import threading
import time
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING, Any
from uuid import UUID

import waitress

from school_service.config import Settings
from school_service.core.shares import GroupLimit, Shares
from school_service.serving.admission import CONNECTION_LIMIT, ConnectionLimits, raise_file_limit
from school_service.serving.channel import Channel, ChannelOptions
from school_service.serving.dispatcher import Dispatcher, Stranger, parts_of_strangers
from school_service.serving.listening import base_address
from school_service.serving.loop import EventLoop
from school_service.serving.parser import HEADER_LIMIT
from school_service.serving.parts import DEFAULT_THREADS, waiting_of_each
from school_service.serving.worker import Worker
from school_service.web.application import Service
from tenants.placement import Placement
from tenants.signals import handled, to_heed

if TYPE_CHECKING:
    from school_service.web.app_state import AppState


CHECK_INTERVAL = 1.0  # seconds between two looks at the deadlines of connections
NEVER = 2**31  # seconds
SHUTDOWN_TIMEOUT = 30  # seconds that requests have to end once the process is to stop
GRACE = 1.0  # seconds for which a connection to a worker that ends may have been idle
IN_THREAD = 2.0  # seconds that a request waits for its school's share, where it has a thread already
SWITCH_INTERVAL = 0.0002  # seconds that a thread computes while others wait to
# Allocations, and collections of the younger, between the garbage collector's looks: with Python's own it looked again
# and again at the rows of a large sheet, which all live, while other requests waited.
GC_THRESHOLDS = (10_000, 100, 50)
MOST_UNSENT = 2**31  # bytes of answers that a connection has still to send before its thread waits
NEW_CONNECTIONS = 1024  # that are taken at the end, as many as may wait to be
NO_FILES = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})

_log = logging.getLogger(__name__)


def serve(
    app: Service,
    settings: Settings,
    listener: socket.socket,
    *,
    threads: int = DEFAULT_THREADS,
    announce: Callable[[], None] | None = None,
    worker: Worker | None = None,
) -> None:
    """Serve until SIGTERM, SIGINT or SIGHUP; requests under way then end, within SHUTDOWN_TIMEOUT seconds.

    `announce` is called when requests are let in and those signals are heeded. A second signal ends it at once, as
    SystemExit(1). A `worker` of several ends at the word of its supervisor, too, and has no port for metrics of its
    own. Raises ServingError if the port of the metrics is taken.
    """
    tune_interpreter()
    raise_file_limit()
    state: AppState = app.extensions["school-service"]
    share = settings.school_requests or max(1, threads // 2)
    # Requests wait in the queue of the dispatcher; few ever in a thread, and not for long.
    state.shares = Shares(share, waiting=max(1, share // 2), patience=IN_THREAD, name="school")
    dispatcher = Dispatcher(
        threads,
        share=share,
        waiting=waiting_of_each(1 if worker is None else worker.count),
        groups=_group_limits(app, threads),
    )

    def verify(authorization: str) -> Exception | None:
        with app.app_context():
            return state.verify(authorization)

    with _measuring(app, settings, dispatcher, worker):
        loop = EventLoop()
        options = ChannelOptions(
            state.known_school, verify, settings.cors_origins, settings.trusted_proxies, app.observe
        )
        server = make_server(
            app,
            listener,
            loop,
            dispatcher,
            ConnectionLimits(settings.connections_per_address, settings.trusted_proxies),
            options,
            largest_body=app.config["MAX_CONTENT_LENGTH"],
        )
        stopping = threading.Event()

        def stop(_number: int, _frame: FrameType | None) -> None:
            if stopping.is_set():
                raise SystemExit(1)
            stopping.set()
            loop.wake()

        def stop_as_told() -> None:
            stopping.set()
            loop.wake()

        with handled(to_heed(), stop):
            if announce is not None:
                announce()
            if worker is None:
                _log.info("serving", extra={"address": base_address(listener), "threads": threads})
            else:
                worker.on_stop(stop_as_told)
                worker.say_that_it_serves()
                loop.live = worker.say_that_it_lives
            checked = time.monotonic()
            while not stopping.is_set():
                loop.run_once(CHECK_INTERVAL)
                now = time.monotonic()
                if now - checked >= CHECK_INTERVAL:
                    checked = now
                    end_late(server, now)
            _log.info("stopping", extra={"worker": worker.number} if worker else None)
            options.ending.set()
            drain(server, loop, listener, GRACE if worker else 0.0)


def tune_interpreter() -> None:
    """Let Python look for garbage less often, and give short requests their turn sooner."""
    # Objects made by now live as long as the process: the collector need not look at them again.
    gc.collect()
    gc.freeze()
    gc.set_threshold(*GC_THRESHOLDS)
    # So a short request waits less for its turn beside one that computes; the default is 5 ms.
    sys.setswitchinterval(SWITCH_INTERVAL)


@contextmanager
def _measuring(
    app: Service, settings: Settings, dispatcher: Dispatcher, worker: Worker | None
) -> Iterator[None]:
    """Count requests while the block runs, and serve the metrics or tell them to the supervisor.

    Unless METRICS_PORT is set, nothing is counted.
    """
    if settings.metrics_port is None:
        yield
        return
    # Imported here: most installations do without.
    from school_service.serving.monitoring import count_requests
    from school_service.serving.scraping import serve_metrics

    metrics = count_requests(app)
    metrics.queue = dispatcher
    if worker is not None:
        with worker.telling(metrics):
            yield
        return
    with serve_metrics(metrics, settings.metrics_address, settings.metrics_port):
        yield


def make_server(
    application: Any,
    listener: socket.socket,
    loop: EventLoop,
    dispatcher: Any,
    admission: ConnectionLimits,
    options: ChannelOptions,
    *,
    largest_body: int,
) -> Any:
    """Make waitress' server of an application; its `active_channels` are the connections by their number.

    A body may have `largest_body` bytes. The `loop` takes connections and reads their requests, the `dispatcher` has
    them answered.
    """
    server: Any = waitress.create_server(
        application,
        map=loop,
        sockets=[listener],
        _dispatcher=dispatcher,
        max_request_body_size=largest_body + 1,
        max_request_header_size=HEADER_LIMIT,
        # Ours come first: `ConnectionLimits` makes room, waitress would stop accepting.
        connection_limit=2 * CONNECTION_LIMIT,
        # Deadlines are ours: `end_late`.
        channel_timeout=NEVER,
        # An answer of any size is handed over at once, a large one to a temporary file: no thread waits for a client.
        outbuf_high_watermark=MOST_UNSENT,
        # X-Forwarded-For is read by ourselves, hop by hop, where there are trusted proxies (web.client_address).
        clear_untrusted_proxy_headers=not options.trusted_proxies,
        expose_tracebacks=False,
        ident=None,
    )

    def take(server: Any, connection: socket.socket, address: Any, adjustments: Any, map: EventLoop) -> None:
        if admission.makes_room(server.active_channels.values(), address[0]):
            Channel(options, server, connection, address, adjustments, map=map)
        else:
            connection.close()

    server.channel_class = take
    server.accept = accepting(server.accept, loop, listener)
    # waitress wakes the loop after each answer; a channel does so itself, where the loop has something to do.
    loop.wake, server.pull_trigger = server.pull_trigger, lambda: None
    return server


def _group_limits(app: Service, threads: int) -> GroupLimit:
    """Give strangers their parts of the threads, and each of several database servers three quarters.

    A server has more than a school, and never all.
    """
    placement: Placement = app.extensions["placement"]
    several_servers = placement.several_servers

    def group_of(key: Hashable) -> Hashable | None:
        if isinstance(key, Stranger):
            return key.group
        return placement.server_of(UUID(str(key))) if several_servers else None

    return GroupLimit(max(1, threads * 3 // 4), group_of, parts_of_strangers(threads))


def accepting(accept: Callable[[], Any], loop: EventLoop, listener: socket.socket) -> Callable[[], Any]:
    """Make a taker of connections like `accept`: while no more files can be open, it says so and waits a little.

    waitress tries again at once, and writes a traceback each time.
    """

    def take() -> Any:
        try:
            return accept()
        except OSError as error:
            if error.errno not in NO_FILES:
                raise
            loop.pause(listener.fileno())
            _log.warning("no connection can be taken", extra={"reason": error.strerror})
            return None

    return take


def end_late(server: Any, now: float) -> None:
    """Close the connections whose clients have had their time at a moment of `time.monotonic`."""
    for channel in list(server.active_channels.values()):
        if channel.is_late(now):
            channel.end()


def drain(server: Any, loop: EventLoop, listener: socket.socket, grace: float) -> None:
    """Stop listening, let present requests end (even those come in part), close connections idle for `grace` seconds.

    A client just answered may be sending the next request: while others go on serving, it is answered here. Once all
    requests have ended the server is closed; if some are cut off, its open sockets end with the process.
    """
    # Clients connected already are not turned away.
    for _ in range(NEW_CONNECTIONS):
        if not select.select([listener], [], [], 0)[0]:
            break
        loop.run_once(0)
    del loop[listener.fileno()]
    listener.close()
    loop.run_once(0)
    deadline = time.monotonic() + SHUTDOWN_TIMEOUT
    while server.active_channels and (now := time.monotonic()) < deadline:
        for channel in list(server.active_channels.values()):
            channel.finish(now - grace)
        if server.active_channels:
            loop.run_once(min(0.5, grace or 0.5))
    if server.active_channels:
        _log.warning("requests were cut off", extra={"requests": len(server.active_channels)})
        return
    # The supervisor may still say that this process is to stop: the pipe by which the loop is woken is closed now.
    loop.wake = lambda: None
    server.close()
