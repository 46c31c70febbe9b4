"""The loop, waiting until something happens on a connection, and looking at no other.

waitress' own loop asks every connection, before each wait, whether it would read or write, and a thread wakes it after
each answer to ask them all again. Here a connection stays registered for reading while its request is answered: nothing
comes then, unless a client sends its next request early, or leaves. If something does come, the connection is set aside
until the thread of its request reports the answer done (`look_again`).
"""

from __future__ import annotations

import select
import time
from collections import deque
from collections.abc import Callable
from typing import Any

from waitress import wasyncore

# Seconds after which every connection is looked at: deadlines change the events that it waits for.
LOOK_INTERVAL = 0.5
MOST_LOOKS = 25  # connections that are looked at before those where something has happened come

# Not POLLPRI, as waitress: urgent data, which nobody reads, would be announced again and again.
_READ = select.POLLIN
_TRANSFER = _READ | select.POLLOUT


class EventLoop(dict[int, Any]):
    """Connections by the number of their socket, as waitress' `map`, and the loop waiting for them.

    All of it belongs to one thread, but for `look_again` and `is_set_aside`. `wake` ends the wait of the thread at
    once; the maker of the server sets it.
    """

    wake: Callable[[], None]
    live: Callable[[], None] = staticmethod(lambda: None)
    """Called before each look at all connections: a sign of life of the thread that serves."""

    def __init__(self) -> None:
        super().__init__()
        self._poll = select.poll()
        self._registered: dict[int, int] = {}
        self._changed: deque[int] = deque()
        self._due: deque[int] = deque()
        self._set_aside: set[int] = set()
        self._paused: set[int] = set()
        self._next_look = 0.0

    def __setitem__(self, number: int, connection: Any) -> None:
        super().__setitem__(number, connection)
        # Not now: its object is still being made.
        self._changed.append(number)

    def __delitem__(self, number: int) -> None:
        super().__delitem__(number)
        self._register(number, 0)
        self._set_aside.discard(number)

    def look_again(self, number: int) -> None:
        """Let the loop look at a connection, at once. From any thread."""
        self._changed.append(number)
        self.wake()

    def is_set_aside(self, number: int) -> bool:
        """Tell whether nothing of a connection is noticed until somebody calls `look_again`. From any thread."""
        return number in self._set_aside

    def pause(self, number: int) -> None:
        """Leave a connection alone until all are looked at again."""
        self._paused.add(number)

    def run_once(self, seconds: float) -> None:
        """Wait at most so many seconds for something to happen, and let the connections concerned deal with it."""
        now = time.monotonic()
        if now >= self._next_look:
            self._next_look = now + LOOK_INTERVAL
            self.live()
            self._due.extend(self)
            self._paused.clear()
        for _ in range(min(MOST_LOOKS, len(self._due))):
            self._look_at(self._due.popleft())
        while self._changed:
            self._look_at(self._changed.popleft())
        for number, events in self._poll.poll(0 if self._due else int(seconds * 1000)):
            self._handle(number, events)

    def _look_at(self, number: int) -> None:
        connection = self.get(number)
        if connection is None:
            return
        wanted = _events_of(connection)
        if wanted:
            self._set_aside.discard(number)
            self._register(number, wanted)
        elif number not in self._registered:
            # A registered one stays so: the thread that answers its request would have to tell us otherwise.
            self._put_aside(number, connection)

    def _put_aside(self, number: int, connection: Any) -> None:
        self._register(number, 0)
        self._set_aside.add(number)
        # Its thread may have ended just before that, and have told nobody.
        if _events_of(connection):
            self._changed.append(number)

    def _handle(self, number: int, events: int) -> None:
        connection = self.get(number)
        if connection is None:
            return
        wanted = _events_of(connection)
        if not wanted:
            self._put_aside(number, connection)
            return
        wasyncore.readwrite(connection, events & (wanted | ~_TRANSFER))
        if number in self._paused:
            self._register(number, 0)
        elif number in self:
            wanted = _events_of(connection)
            # Where nothing is wanted its request is being answered, and most often something is before more comes.
            if wanted:
                self._register(number, wanted)

    def _register(self, number: int, wanted: int) -> None:
        if wanted == self._registered.get(number, 0):
            return
        if wanted:
            self._poll.register(number, wanted)
            self._registered[number] = wanted
        else:
            self._poll.unregister(number)
            del self._registered[number]


def _events_of(connection: Any) -> int:
    wanted = _READ if connection.readable() else 0
    if connection.writable() and not connection.accepting:
        wanted |= select.POLLOUT
    return wanted
