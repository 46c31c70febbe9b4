"""The threads of `serve`: which request one of them works on next.

waitress' own dispatcher has one queue for all: there, the requests of one school that wait for a lock, or compute for
long, take every thread, and everybody else waits behind them. Here a school has its share of the threads, by the rules
of `school_service.core.shares`; a request that waits holds no thread; and what is quick has threads of its own, so that
health is answered whatever the others do.

Strangers are those of whom no school is known: who sends no token, and who sends one that this process has not seen.
Each of the two kinds has a part of the threads, by turns of their addresses: so neither takes what the schools need,
nor those without a token what the others do. A token that was not seen before is verified in such a thread, and the
request then queues with those of its school: else the first requests with a new token would come beside the school's
share, and be refused because of it.

Where the schools are on several database servers, each of these has a share of the threads too, larger than a
school's: one that does not answer holds no more of them, and the schools of the others go on.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Hashable
from typing import NamedTuple, Protocol

from school_service.core.errors import Busy
from school_service.core.refused_shares import count_refusal
from school_service.core.shares import GroupLimit, Place, Turns

QUICK_THREADS = 2

_log = logging.getLogger(__name__)


class Stranger(NamedTuple):
    """Whose share a request takes of which no school is known: the client's network, and whether it has a token."""

    network: str
    has_token: bool

    @property
    def group(self) -> Hashable:
        """Name the group of strangers whose part of the threads it takes."""
        return ("strangers", self.has_token)


def parts_of_strangers(threads: int) -> dict[Hashable, int]:
    """Divide so many threads: half at most for tokens that were not seen before, an eighth for who has none."""
    return {
        Stranger("", has_token=True).group: max(1, threads // 2),
        Stranger("", has_token=False).group: max(1, threads // 8),
    }


class Request(Protocol):
    """A request that has come whole: waitress hands over the connection, whose first request it is.

    `queued_at`, set by the dispatcher, is the moment (`time.monotonic`) since which it has waited for a thread.
    """

    queued_at: float

    def service(self) -> None:
        """Answer it."""

    def cancel(self) -> None:
        """End its connection."""

    def share_key(self) -> Hashable:
        """Name whose share of the threads it takes: the school's, or a Stranger's."""

    def verify(self) -> None:
        """Verify its token, which was not seen before: `share_key` may name its school then."""

    def is_quick(self) -> bool:
        """Tell whether the answer takes no time worth speaking of."""

    def refuse(self) -> None:
        """Let the answer be that the service is overloaded."""


class Workers:
    """Threads that answer requests, each key its `share` of them, in the order that `Turns` decides."""

    def __init__(
        self,
        name: str,
        threads: int,
        *,
        share: int,
        waiting: int | None = None,
        groups: GroupLimit | None = None,
    ) -> None:
        self._turns: Turns[Request] = Turns(share, waiting=waiting, total=threads, groups=groups)
        # Requests whose turn it is: there is a thread for each, which takes it in a moment.
        self._begun: deque[tuple[Request, Place]] = deque()
        self._lock = threading.Lock()
        # Of each idle thread what it waits for: the last one works first, whose data the processor still has at hand.
        self._idle: list[threading.Lock] = []
        self._stopped = False
        self.threads = [
            threading.Thread(target=self._work, name=f"{name}-{number}", daemon=True)
            for number in range(threads)
        ]
        for thread in self.threads:
            thread.start()

    def add(self, key: Hashable, request: Request) -> None:
        """Let a request be answered when its turn comes; raises Busy where too many of the key wait already."""
        with self._lock:
            place = self._turns.begin(key)
            if place is None:
                self._turns.wait(key, request)
            else:
                self._begun.append((request, place))
                self._wake(1)

    def count_waiting(self) -> int:
        """Count the requests that wait for a thread."""
        with self._lock:
            return self._turns.count_waiting()

    def stop(self) -> list[Request]:
        """Let each thread end after its request; returns the requests that nobody will answer."""
        with self._lock:
            self._stopped = True
            left = [*(request for request, _ in self._begun), *self._turns.clear()]
            self._begun.clear()
            self._wake(len(self._idle))
        return left

    def _wake(self, threads: int) -> None:
        """Wake so many of the idle threads, as far as there are any: all others look for a request by themselves."""
        for _ in range(min(threads, len(self._idle))):
            self._idle.pop().release()

    def _work(self) -> None:
        woken = threading.Lock()
        woken.acquire()
        while taken := self._take(woken):
            request, place = taken
            key = self._answer(request, place.key)
            with self._lock:
                begun = self._turns.end(place)
                self._begun.extend(begun)
                # One of them is for this thread, which looks for a request next.
                self._wake(len(begun) - 1)
            if key != place.key:
                self._move(key, request)

    def _move(self, key: Hashable, request: Request) -> None:
        """Let a request whose school is known by now be answered when the turn of that comes."""
        try:
            self.add(key, request)
        except Busy:
            count_refusal("requests")
            request.refuse()
            self._answer(request, key)

    @staticmethod
    def _answer(request: Request, key: Hashable) -> Hashable:
        """Answer a request of a key; returns the key, or that of its school where its token says so: not answered."""
        try:
            if isinstance(key, Stranger) and key.has_token:
                request.verify()
                found = request.share_key()
                if found != key:
                    return found
            request.service()
        except BaseException:
            _log.exception("a request failed outside of the application")
        return key

    def _take(self, woken: threading.Lock) -> tuple[Request, Place] | None:
        """Wait until `woken` for a request whose turn it is; None once the threads are to end."""
        while True:
            with self._lock:
                if self._begun:
                    return self._begun.popleft()
                if self._stopped:
                    return None
                self._idle.append(woken)
            woken.acquire()


class Dispatcher:
    """Divides `threads` over the requests: at most `share` for those of one key, of which at most `waiting` wait.

    What is beyond is refused at once. Quick requests have QUICK_THREADS besides. `groups` bounds the threads that work
    for the schools of one database server.
    """

    def __init__(self, threads: int, *, share: int, waiting: int, groups: GroupLimit | None = None) -> None:
        self._requests = Workers("requests", threads, share=share, waiting=waiting, groups=groups)
        self._quick = Workers("quick requests", QUICK_THREADS, share=QUICK_THREADS)

    def add_task(self, request: Request) -> None:
        """Let a request be answered, or refused."""
        request.queued_at = time.monotonic()
        if not request.is_quick():
            try:
                self._requests.add(request.share_key(), request)
                return
            except Busy:
                count_refusal("requests")
                request.refuse()
        self._quick.add(None, request)

    def count_waiting(self) -> int:
        """Count the requests that wait for a thread, of all keys."""
        return self._requests.count_waiting() + self._quick.count_waiting()

    def shutdown(self, cancel_pending: bool = True, timeout: float = 5) -> bool:
        """Let the threads end, each after its request; tell whether all did within so many seconds."""
        for workers in (self._requests, self._quick):
            left = workers.stop()
            for request in left if cancel_pending else ():
                request.cancel()
        threads = [*self._requests.threads, *self._quick.threads]
        for thread in threads:
            thread.join(timeout)
        return not any(thread.is_alive() for thread in threads)
