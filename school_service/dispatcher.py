"""Which request a thread works on next: a school has its share of the threads, and what is quick has its own.

Where the schools are on several database servers, each of these has its share of the threads too, larger than a
school's: one that does not answer holds no more threads than that, and the schools of the others go on.

In place of waitress' own dispatcher, which has one queue for all: there, the requests of one school that wait for a
lock, or compute for long, take every thread, and everybody else waits behind them. Here each school has a queue, the
queues take turns, and at most a school's share of the threads work for it. A request that waits holds no thread.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Hashable
from typing import NamedTuple, Protocol

QUICK_THREADS = 2

_log = logging.getLogger(__name__)


_NOBODY = object()


class Task(Protocol):
    """What waitress hands to a dispatcher: a connection whose first request is complete.

    `queued_at`, set by the dispatcher, is the moment (`time.monotonic`) since which it has waited for a thread.
    """

    queued_at: float

    def service(self) -> None:
        """Work on it."""

    def cancel(self) -> None:
        """End the connection."""

    def group(self) -> Hashable:
        """Name whose request it is: those of one group share what is a school's."""

    def is_quick(self) -> bool:
        """Tell whether the answer takes no time worth speaking of."""

    def refuse(self) -> None:
        """Let the answer be that the service is overloaded."""


class ServerShares(NamedTuple):
    """How many threads may work for one database server, and which of them has a group (None: it is not known)."""

    share: int
    server_of: Callable[[Hashable], Hashable | None]


class _Taken(NamedTuple):
    """A task that a thread works on, whose it is, and the database server that it counts for."""

    group: Hashable
    server: Hashable | None
    task: Task


class Workers:
    """Threads that work on tasks: groups take turns, and one that has its share of the threads is passed over.

    So is one whose database server has its share, where there are several `servers`.
    """

    def __init__(self, name: str, threads: int, *, share: int, servers: ServerShares | None = None) -> None:
        self._share = share
        self._servers = servers
        self._waiting: OrderedDict[Hashable, deque[Task]] = OrderedDict()
        self._running: Counter[Hashable] = Counter()
        self._running_on: Counter[Hashable] = Counter()
        self._changed = threading.Condition()
        self._stopped = False
        self.threads = [
            threading.Thread(target=self._work, name=f"{name}-{number}", daemon=True)
            for number in range(threads)
        ]
        for thread in self.threads:
            thread.start()

    def add(self, group: Hashable, task: Task, *, most: int | None = None) -> bool:
        """Let a task wait for a thread; False where `most` of its group are waiting already."""
        with self._changed:
            tasks = self._waiting.get(group)
            if tasks is None:
                tasks = self._waiting[group] = deque()
            elif most is not None and len(tasks) >= most:
                return False
            tasks.append(task)
            # Of a group that has its share, the thread that ends a task of it takes the next one; so of a server's.
            if self._may_run(group):
                self._changed.notify()
        return True

    def count_waiting(self) -> int:
        """Count the tasks that wait for a thread."""
        with self._changed:
            return sum(map(len, self._waiting.values()))

    def stop(self) -> list[Task]:
        """Let each thread end after its task; returns the tasks that nobody will work on."""
        with self._changed:
            self._stopped = True
            left = [task for tasks in self._waiting.values() for task in tasks]
            self._waiting.clear()
            self._changed.notify_all()
        return left

    def _work(self) -> None:
        while taken := self._take():
            try:
                taken.task.service()
            except BaseException:
                _log.exception("a request failed outside of the application")
            with self._changed:
                _count_down(self._running, taken.group)
                if taken.server is not None:
                    _count_down(self._running_on, taken.server)
            # Nobody is told of the share that is free again: this thread itself looks for a task next.

    def _take(self) -> _Taken | None:
        """Wait for a task; None once the threads are to end."""
        with self._changed:
            while not self._stopped:
                taken = self._next()
                if taken is not None:
                    return taken
                self._changed.wait()
        return None

    def _next(self) -> _Taken | None:
        group = next((group for group in self._waiting if self._may_run(group)), _NOBODY)
        if group is _NOBODY:
            return None
        tasks = self._waiting[group]
        task = tasks.popleft()
        self._running[group] += 1
        server = self._server_of(group)
        if server is not None:
            self._running_on[server] += 1
        if tasks:
            self._waiting.move_to_end(group)
        else:
            del self._waiting[group]
        return _Taken(group, server, task)

    def _may_run(self, group: Hashable) -> bool:
        if self._running[group] >= self._share:
            return False
        server = self._server_of(group)
        return server is None or self._servers is None or self._running_on[server] < self._servers.share

    def _server_of(self, group: Hashable) -> Hashable | None:
        return None if self._servers is None else self._servers.server_of(group)


def _count_down(running: Counter[Hashable], key: Hashable) -> None:
    running[key] -= 1
    if not running[key]:
        del running[key]


class Dispatcher:
    """Divides `threads` over the groups of tasks, at most `share` for one; `waiting` tasks of a group may wait.

    What is beyond is refused at once. Quick tasks have threads of their own, so that health is answered whatever
    the others do. `servers` bounds the threads that work for one database server.
    """

    def __init__(
        self, threads: int, *, share: int, waiting: int, servers: ServerShares | None = None
    ) -> None:
        self._requests = Workers("requests", threads, share=share, servers=servers)
        self._quick = Workers("quick requests", QUICK_THREADS, share=QUICK_THREADS)
        self._most = waiting

    def add_task(self, task: Task) -> None:
        """Let a task be worked on, or refused."""
        task.queued_at = time.monotonic()
        if not task.is_quick():
            if self._requests.add(task.group(), task, most=self._most):
                return
            task.refuse()
        self._quick.add(None, task)

    def count_waiting(self) -> int:
        """Count the tasks that wait for a thread, of all groups."""
        return self._requests.count_waiting() + self._quick.count_waiting()

    def shutdown(self, cancel_pending: bool = True, timeout: float = 5) -> bool:
        """Let the threads end, each after its task; tell whether all did within so many seconds."""
        for workers in (self._requests, self._quick):
            left = workers.stop()
            for task in left if cancel_pending else ():
                task.cancel()
        threads = [*self._requests.threads, *self._quick.threads]
        for thread in threads:
            thread.join(timeout)
        return not any(thread.is_alive() for thread in threads)
