"""Shares: who may do how much at once of what is scarce, such as threads and processors.

`serve` gives no thread to a request beyond its school's share (`school_service.dispatcher`). Here the same is bound
where requests have their threads already: under another WSGI server, and for a token that is seen for the first time.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Hashable

from school_service.core.errors import Busy


class Shares:
    """Of each key at most `limit` run at once, `waiting` wait, at most `patience` seconds; the others raise Busy.

    Whoever has waited longest comes next, also before one who has just left and comes again. The three may be set
    until the first comes.
    """

    def __init__(self, limit: int, *, waiting: int, patience: float) -> None:
        self.limit = limit
        self.waiting = waiting
        self.patience = patience
        self._lock = threading.Lock()
        self._running: dict[Hashable, int] = {}
        self._waiting: dict[Hashable, deque[threading.Event]] = {}

    def of(self, key: Hashable) -> _Share:
        """Run a block within the key's share; entering it gives the seconds that it was waited for, or raises Busy."""
        return _Share(self, key)

    def count_waiting(self) -> int:
        """Count who waits, of all keys."""
        with self._lock:
            return sum(map(len, self._waiting.values()))

    def _enter(self, key: Hashable) -> float:
        with self._lock:
            running = self._running.get(key, 0)
            if running < self.limit:
                self._running[key] = running + 1
                return 0.0
            waiting = self._waiting.get(key) or deque()
            if len(waiting) >= self.waiting:
                raise Busy
            self._waiting[key] = waiting
            turn = threading.Event()
            waiting.append(turn)
        begun = time.monotonic()
        if turn.wait(self.patience):
            return time.monotonic() - begun
        with self._lock:
            # It may have been its turn at this very moment.
            if turn.is_set():
                return time.monotonic() - begun
            self._forget(key, turn)
        raise Busy

    def _leave(self, key: Hashable) -> None:
        with self._lock:
            waiting = self._waiting.get(key)
            if waiting:
                # It stays counted: who has waited longest takes it over.
                turn = waiting[0]
                self._forget(key, turn)
                turn.set()
            elif self._running[key] == 1:
                del self._running[key]
            else:
                self._running[key] -= 1

    def _forget(self, key: Hashable, turn: threading.Event) -> None:
        waiting = self._waiting[key]
        waiting.remove(turn)
        if not waiting:
            del self._waiting[key]


class _Share:
    """One turn within a share, as a context manager: a generator would cost each request several times as much."""

    __slots__ = ("_key", "_shares")

    def __init__(self, shares: Shares, key: Hashable) -> None:
        self._shares, self._key = shares, key

    def __enter__(self) -> float:
        return self._shares._enter(self._key)

    def __exit__(self, *_error: object) -> None:
        self._shares._leave(self._key)
