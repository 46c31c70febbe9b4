"""The part of a worker of `serve --workers N` beyond serving: it speaks with its supervisor."""

from __future__ import annotations

import socket
import struct
import threading
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from school_service.core import machine

if TYPE_CHECKING:
    from school_service.serving.monitoring import ProcessMetrics

SERVES = b"r"
"""A worker's announcement of its service."""
LIVES = b"l"
"""A worker's sign of life, given by the thread that serves, each second at least."""
METRICS = b"m"
"""A worker's word for the socket sent along: on this it is asked for its metrics."""
STOP = b"s"
"""The supervisor's order to a worker to end once its requests have."""

WITH_DATABASE, WITHOUT_DATABASE = b"D", b"-"
"""The supervisor's requests to a worker: for its metrics, with or without those of the database."""
LAST_WORD = 2.0  # seconds that a worker's last metrics may take to send
LENGTH = struct.Struct("!I")
"""The head of the compressed metrics: how many bytes they are."""


@dataclass(frozen=True)
class Worker:
    """This process as a worker: `number` of `count`, with a socket to its supervisor."""

    number: int
    count: int
    control: socket.socket

    @classmethod
    def join(cls, number: int, count: int, control: socket.socket) -> Worker:
        """Make this process a worker; the common state of workers is asked of the supervisor from now on."""
        machine.join(control, count)
        return cls(number, count, control)

    def say_that_it_serves(self) -> None:
        """Let the supervisor know."""
        self.control.sendall(SERVES)

    def say_that_it_lives(self) -> None:
        """Let the supervisor know, unless it has so many signs to read that there is no room for another."""
        with suppress(OSError):
            self.control.send(LIVES, socket.MSG_DONTWAIT)

    def on_stop(self, stop: Callable[[], None]) -> None:
        """Call a function, in a thread of its own, once this worker is to stop: told to, or left alone."""

        def wait() -> None:
            with suppress(OSError):
                self.control.recv(1)
            stop()

        threading.Thread(target=wait, name="supervisor", daemon=True).start()

    @contextmanager
    def telling(self, metrics: ProcessMetrics) -> Iterator[None]:
        """Answer the supervisor's requests for metrics while the block runs, and tell the last ones at its end."""
        ours, theirs = socket.socketpair()
        with theirs:
            socket.send_fds(self.control, [METRICS], [theirs.fileno()])
        lock = threading.Lock()

        def tell(*, database: bool) -> None:
            with lock:
                # Compressed they find room in the socket, also where nobody reads them until this worker has ended.
                content = zlib.compress(metrics.write(database=database), 1)
                ours.sendall(LENGTH.pack(len(content)) + content)

        def answer() -> None:
            with suppress(OSError):
                while asked := ours.recv(1):
                    tell(database=asked == WITH_DATABASE)

        threading.Thread(target=answer, name="metrics", daemon=True).start()
        try:
            yield
        finally:
            # Nobody reads them where the supervisor is gone.
            with suppress(OSError):
                ours.settimeout(LAST_WORD)
                tell(database=False)
