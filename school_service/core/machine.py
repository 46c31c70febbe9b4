"""The common state of the workers of one service: turns and counts, kept by their supervisor.

Under `serve --workers N` each worker is a process, and the scarce things of the machine (printers, hashing, readers of
sheets) and the counts (wrong passwords) are common to all of them. A worker asks its supervisor, over sockets of its
own: no name in the file system, nothing to configure, and nobody else can speak with it. A process other than a worker
has no supervisor, and asks nobody.

A connection serves one thread at a time. It carries lines of JSON: a request is a list with its name as the first
member, the answer is one value. A turn belongs to the connection of its request: if the worker is killed, the
connection ends, and the turn with it.
"""

from __future__ import annotations

import socket
import threading
import time
from collections import Counter
from typing import Any

import orjson

from school_service.core.errors import Busy
from school_service.core.refused_shares import count_refusal

CONNECTION = b"c"
"""The message of a worker over its control socket, together with a socket for its later requests."""

TURN, END, COUNT = "turn", "end", "count"
"""Requests: a turn (its shares and the key), the end of this connection's turn, a call of the counts of tries."""

IDLE_CONNECTIONS = 20  # that a worker keeps


class RemoteSupervisor:
    """The supervisor, as one of its `workers` workers asks it; `control` is the socket it was started with."""

    def __init__(self, control: socket.socket, workers: int) -> None:
        self.workers = workers
        self._control = control
        self._lock = threading.Lock()
        self._idle: list[_Connection] = []
        self._waiting: Counter[str] = Counter()

    def count_waiting(self, shares: str) -> int:
        """Count the threads of this worker waiting for a turn."""
        with self._lock:
            return self._waiting[shares]

    def count(self, method: str, *arguments: Any, timeout: float) -> Any:
        """Call a method of the counts of tries; raises OSError if no answer comes within `timeout` seconds."""
        connection = self._take()
        answer = connection.ask([COUNT, method, *arguments], timeout)
        self._put(connection)
        return answer

    def turn(
        self, shares: str, limits: tuple[int, int | None, int], key: str, patience: float
    ) -> MachineTurn:
        """Run a block within the share of a key, as `Shares.of` does.

        `shares` is the name of the shares, `limits` how many of a key, and of all keys, may be under way on the
        machine, and how many of a key may wait.
        """
        return MachineTurn(self, shares, [TURN, shares, *limits, key], patience)

    def _wait(self, shares: str, more: int) -> None:
        with self._lock:
            self._waiting[shares] += more

    def _take(self) -> _Connection:
        with self._lock:
            if self._idle:
                return self._idle.pop()
            ours, theirs = socket.socketpair()
            with theirs:
                try:
                    socket.send_fds(self._control, [CONNECTION], [theirs.fileno()])
                except BaseException:
                    ours.close()
                    raise
        return _Connection(ours)

    def _put(self, connection: _Connection) -> None:
        with self._lock:
            if len(self._idle) < IDLE_CONNECTIONS:
                self._idle.append(connection)
                return
        connection.close()


class _Connection:
    """A connection to the supervisor. After an error it is closed."""

    def __init__(self, ours: socket.socket) -> None:
        self._socket = ours

    def ask(self, request: list[Any], timeout: float) -> Any:
        """Send a request, and wait for its answer; raises OSError, such as a TimeoutError."""
        try:
            self.tell(request)
            return self._answer(timeout)
        except BaseException:
            self.close()
            raise

    def tell(self, request: list[Any]) -> None:
        """Send a request without an answer."""
        self._socket.sendall(orjson.dumps(request) + b"\n")

    def close(self) -> None:
        """End the connection, and with it its turn, whether it has come or not."""
        self._socket.close()

    def _answer(self, timeout: float) -> Any:
        self._socket.settimeout(timeout)
        line = b""
        while not line.endswith(b"\n"):
            part = self._socket.recv(4096)
            if not part:
                raise ConnectionResetError("the supervisor has ended")
            line += part
        return orjson.loads(line)


class MachineTurn:
    """The turn of one thread among the threads of all workers, as a context manager giving the seconds waited."""

    __slots__ = ("_connection", "_patience", "_request", "_shares", "_supervisor")

    _connection: _Connection

    def __init__(
        self, supervisor: RemoteSupervisor, shares: str, request: list[Any], patience: float
    ) -> None:
        self._supervisor, self._shares = supervisor, shares
        self._request, self._patience = request, patience

    def __enter__(self) -> float:
        begun = time.monotonic()
        self._supervisor._wait(self._shares, 1)
        try:
            self._connection = self._supervisor._take()
            granted = self._connection.ask(self._request, self._patience)
        except OSError:
            # Not in time, or there is no supervisor any more: then this worker is about to end, too.
            count_refusal(self._shares)
            raise Busy from None
        finally:
            self._supervisor._wait(self._shares, -1)
        if not granted:
            self._supervisor._put(self._connection)
            count_refusal(self._shares)
            raise Busy
        return time.monotonic() - begun

    def __exit__(self, *_error: object) -> None:
        try:
            self._connection.tell([END])
        except OSError:
            self._connection.close()
        else:
            self._supervisor._put(self._connection)


_supervisor: RemoteSupervisor | None = None


def join(control: socket.socket, workers: int) -> None:
    """Make this process one of so many workers, with the supervisor at the other end of a socket."""
    global _supervisor
    _supervisor = RemoteSupervisor(control, workers)


def supervisor() -> RemoteSupervisor | None:
    """Answer this worker's supervisor; None in a process other than a worker."""
    return _supervisor
