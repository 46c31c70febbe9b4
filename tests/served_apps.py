"""Applications, served in threads of the tests' own process."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from wsgiref.types import WSGIApplication

from waitress import create_server, wasyncore


@contextmanager
def serving_app(app: WSGIApplication, **place: Any) -> Iterator[str]:
    """Serve an application, at a free port unless a place such as `sockets` is given; gives its address."""
    sockets: dict[int, Any] = {}
    server: Any = create_server(app, map=sockets, threads=4, **(place or {"host": "127.0.0.1", "port": 0}))
    stopped = threading.Event()

    def serve() -> None:
        while not stopped.is_set():
            wasyncore.loop(timeout=0.1, count=1, map=sockets)

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.effective_port}"
    finally:
        stopped.set()
        thread.join()
        server.task_dispatcher.shutdown()
        wasyncore.close_all(sockets)
