"""The threads of `serve`, and the next request for each.

waitress' own dispatcher has one queue for all: there, the requests of one school, waiting for a lock or computing for
long, take every thread, and everybody else waits behind them. Here a school has its share of the threads, by the rules
of `school_service.core.shares`; a waiting request holds no thread; and quick requests have threads of their own: health
is answered in any case.

Strangers are clients without a known school: with no token, or with a token new to this process. Each of the two kinds
has a part of the threads, by turns of their addresses: so neither takes the threads needed by the schools, nor clients
without a token those of the others. A new token is verified in such a thread, and the request then queues with those of
its school: else the first requests with a new token would come beside the school's share, and be refused because of it.

If the schools are on several database servers, each of these has a share of the threads too, larger than a school's: a
server without an answer holds no more of them, and the schools of the others go on.
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
from school_service.core.shares import GroupLimit, PlaceInLine, Turns

QUICK_THREADS = 2

_log = logging.getLogger(__name__)


class Stranger(NamedTuple):
    """The owner of a request's share if its school is unknown: the client's network, with or without a token."""

    network: str
    has_token: bool

    @property
    def group(self) -> Hashable:
        """Name its group of strangers: each group has a part of the threads."""
        return ("strangers", self.has_token)


def parts_of_strangers(threads: int) -> dict[Hashable, int]:
    """Divide so many threads: half at most for tokens not seen before, an eighth for clients without one."""
    return {
        Stranger("", has_token=True).group: max(1, threads // 2),
        Stranger("", has_token=False).group: max(1, threads // 8),
    }


class Request(Protocol):
    """A request, come whole: waitress hands over its connection, and it is the first request of this.

    `queued_at`, set by the dispatcher, is the moment (`time.monotonic`) when it began to wait for a thread.
    """

    queued_at: float

    def service(self) -> None:
        """Answer it."""

    def cancel(self) -> None:
        """End its connection."""

    def share_key(self) -> Hashable:
        """Name the owner of the share of threads it takes: the school, or a Stranger."""

    def verify(self) -> None:
        """Verify its token, not seen before: `share_key` may name its school then."""

    def is_quick(self) -> bool:
        """Tell whether the answer takes no time worth speaking of."""

    def refuse(self) -> None:
        """Let the answer be a refusal: the service is overloaded."""


class Workers:
    """Threads for answering requests, each key its `share` of them, in the order of `Turns`."""

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
        self._begun: deque[tuple[Request, PlaceInLine]] = deque()
        self._lock = threading.Lock()
        # The lock that each idle thread waits for: the last one works first, whose data the processor still has at
        # hand.
        self._idle: list[threading.Lock] = []
        self._stopped = False
        self.threads = [
            threading.Thread(target=self._work, name=f"{name}-{number}", daemon=True)
            for number in range(threads)
        ]
        for thread in self.threads:
            thread.start()

    def add(self, key: Hashable, request: Request) -> None:
        """Let a request be answered when its turn comes; raises Busy if too many of the key wait already."""
        with self._lock:
            place = self._turns.begin(key)
            if place is None:
                self._turns.wait(key, request)
            else:
                self._begun.append((request, place))
                self._wake(1)

    def count_waiting(self) -> int:
        """Count the requests waiting for a thread."""
        with self._lock:
            return self._turns.count_waiting()

    def stop(self) -> list[Request]:
        """Let each thread end after its request; returns the requests left without an answer."""
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
        """Let a request of a school known by now be answered when the school's turn comes."""
        try:
            self.add(key, request)
        except Busy:
            count_refusal("requests")
            request.refuse()
            self._answer(request, key)

    @staticmethod
    def _answer(request: Request, key: Hashable) -> Hashable:
        """Answer a request of a key; returns the key, or its school's if its token says so: not answered."""
        try:
            if isinstance(key, Stranger) and key.has_token:
                request.verify()
                share = request.share_key()
                if share != key:
                    return share
            request.service()
        except BaseException:
            _log.exception("a request failed outside of the application")
        return key

    def _take(self, woken: threading.Lock) -> tuple[Request, PlaceInLine] | None:
        """Wait until `woken` for the request next in turn; None once the threads are to end."""
        while True:
            with self._lock:
                if self._begun:
                    return self._begun.popleft()
                if self._stopped:
                    return None
                self._idle.append(woken)
            woken.acquire()


class Dispatcher:
    """Divides `threads` over the requests: at most `share` for those of one key, while at most `waiting` more wait.

    Further ones are refused at once. Quick requests have QUICK_THREADS besides. `groups` bounds the threads at work for
    the schools of one database server.
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
        """Count the requests waiting for a thread, of all keys."""
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
