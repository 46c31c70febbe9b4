"""The connections to a server, and the schools served by each of them.

A backend of PostgreSQL caches the catalogue rows of every table it ever touched. So the second request of a school on a
connection is faster than the first, and memory fills up: with all kinds of requests some 1.8 MB for each school. So a
request is given an idle connection that has served its school, if there is one. If all of those work for other schools
just now, and the idle ones have served a part of their permitted number of schools, it waits a little, as long as a few
others take: else every connection would serve every school, and be replaced over and over. Behind a transaction longer
than this wait nobody waits. A connection that has served too many schools is closed when it is given back, never within
a transaction.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from uuid import UUID

from psycopg2.extensions import TRANSACTION_STATUS_IDLE
from sqlalchemy.exc import TimeoutError as PoolTimeout

from tenants.connections.deadline import NoAnswer

SCHOOLS_PER_CONNECTION = 200  # 360 MB at most for a backend

POOL_TIMEOUT = 5  # seconds that a request waits for a connection, where all are taken
# A request waits for a connection that has served its school for as long as so many transactions take, and at least and
# at most these seconds: where the machine is busy, each takes longer.
TRANSACTIONS_WAITED_FOR = 4
PATIENCE, LONGEST_PATIENCE = 0.03, 0.25
# It takes another one as long as that has served less than this part of the schools that it may.
FREE_PART = 8


class PooledConnection:
    """A connection of a SchoolPool: one of psycopg2, and the schools served by it.

    `works_for` is the school it was taken for, None if it was taken for none or is idle; `taken_at` the moment of
    taking it, on the monotonic clock. It is used as the driver's own, but for `close`: this gives it back to its pool.
    """

    __slots__ = (
        "_pool",
        "cursor",
        "driver",
        "generation",
        "get_transaction_status",
        "schools",
        "taken_at",
        "works_for",
    )

    def __init__(self, pool: SchoolPool, driver: Any, generation: int) -> None:
        self._pool = pool
        self.driver = driver
        self.generation = generation
        self.schools: set[UUID] = set()
        self.works_for: UUID | None = None
        self.taken_at = 0.0
        # Methods called many times a request, without a look through __getattr__.
        self.cursor: Callable[..., Any] = driver.cursor
        self.get_transaction_status: Callable[[], int] = driver.get_transaction_status

    def __getattr__(self, name: str) -> Any:
        return getattr(self.driver, name)

    @property
    def closed(self) -> int:
        """Whether the driver's connection is closed: not 0 if it was closed, or has been lost."""
        closed: int = self.driver.closed
        return closed

    def close(self) -> None:
        """Give the connection back to its pool."""
        self._pool.give_back(self)

    def discard(self) -> None:
        """Close the connection for good, in place of giving it back."""
        self._pool.discard(self)


class Waits:
    """The waits for a connection: how many just now, how many so far, and for how many seconds in all."""

    def __init__(self) -> None:
        self.waiting = self.count = 0
        self.seconds = 0.0
        self._lock = threading.Lock()

    @contextmanager
    def counting(self) -> Iterator[None]:
        """Count the block as a wait."""
        begun = time.monotonic()
        with self._lock:
            self.waiting += 1
        try:
            yield
        finally:
            with self._lock:
                self.waiting -= 1
                self.count += 1
                self.seconds += time.monotonic() - begun


class _Waiter:
    """A thread waiting for a connection: for one that has served its school, or else for `any_will_do`.

    Woken, it has a `connection`, or the place in the pool of a closed one: it `may_connect`.
    """

    def __init__(self, school_id: UUID | None, *, any_will_do: bool) -> None:
        self.school_id = school_id
        self.any_will_do = any_will_do
        self.connection: PooledConnection | None = None
        self.may_connect = False
        self.woken = threading.Event()


class SchoolPool:
    """A pool with a preference for connections that have served the school; it fills up before one serves another.

    `connect` makes a connection of psycopg2. The pool keeps `size` of them, opens `max_overflow` more if those do not
    suffice, and closes each after `schools_per_connection` schools. If all are taken, a request waits for `timeout`
    seconds, and `waits` counts these waits.
    """

    def __init__(
        self,
        connect: Callable[[], Any],
        size: int,
        *,
        max_overflow: int = 0,
        timeout: float = POOL_TIMEOUT,
        schools_per_connection: int = SCHOOLS_PER_CONNECTION,
    ) -> None:
        self.size = size
        self.max_overflow = max_overflow
        self.timeout = timeout
        self.schools_per_connection = schools_per_connection
        self.waits = Waits()
        self._connect = connect
        self._lock = threading.Lock()
        self._idle: list[PooledConnection] = []
        self._taken: set[PooledConnection] = set()
        self._places = 0  # of connections that are open, or are being opened
        self._generation = 0  # connections of an earlier one are as old as one that was lost
        self._waiters: list[_Waiter] = []
        self._seconds_taken = 0.0  # for which connections were taken of late, on average

    def checkedout(self) -> int:
        """Count the connections taken."""
        return len(self._taken)

    def has_any(self) -> bool:
        """Tell whether there is a connection, taken or idle."""
        return bool(self._taken or self._idle)

    def checkedin(self) -> int:
        """Count the idle connections."""
        return len(self._idle)

    def take(self, school_id: UUID | None = None) -> PooledConnection:
        """Take a connection, of preference one that has served the school, if one is named.

        Raises SQLAlchemy's TimeoutError if all are taken for too long, and psycopg2's errors if none can be made.
        """
        with self._lock:
            connection = self._take_idle(school_id, only_served=True)
        return connection or self._await_served(school_id) or self._take_other(school_id)

    def give_back(self, connection: PooledConnection) -> None:
        """Give a connection back; it is closed unless it is of further use. Once it is idle, this does nothing.

        It is closed if it is lost or as old as a lost one, if a transaction is under way on it, if it has served so
        many schools, and if there are enough idle ones.
        """
        usable = (
            connection.generation == self._generation
            and len(connection.schools) < self.schools_per_connection
            and not connection.closed
            and connection.get_transaction_status() == TRANSACTION_STATUS_IDLE
        )
        with self._lock:
            if connection not in self._taken:
                return
            self._note_time(connection)
            if usable and self._hand_over(connection):
                return
            self._taken.remove(connection)
            connection.works_for = None
            if usable and len(self._idle) < self.size:
                self._idle.append(connection)
                return
            self._free_place()
        connection.driver.close()

    def discard(self, connection: PooledConnection) -> None:
        """Close a taken connection. If it was lost, those as old as it will be closed, too."""
        with self._lock:
            if connection not in self._taken:
                return
            self._taken.remove(connection)
            self._free_place()
        if connection.closed:
            self.dispose()
        connection.driver.close()

    def dispose(self) -> None:
        """Close the idle connections; taken ones are closed when they are given back."""
        with self._lock:
            self._generation += 1
            closing, self._idle = self._idle, []
            for _ in closing:
                self._free_place()
        for connection in closing:
            connection.driver.close()

    def _take_idle(self, school_id: UUID | None, *, only_served: bool = False) -> PooledConnection | None:
        """Take an idle connection: of those that have served the school the last used, with the quickest backend.

        Without any it is the one with the fewest schools, unless `only_served`.
        """
        connection = next(
            (connection for connection in reversed(self._idle) if school_id in connection.schools), None
        )
        if connection is None and not only_served:
            connection = min(self._idle, key=lambda connection: len(connection.schools), default=None)
        if connection is not None:
            self._idle.remove(connection)
            self._note_taken(connection, school_id)
        return connection

    def _note_taken(self, connection: PooledConnection, school_id: UUID | None) -> None:
        self._taken.add(connection)
        connection.works_for, connection.taken_at = school_id, time.monotonic()

    def _note_time(self, connection: PooledConnection) -> None:
        """Note for how long a connection was taken; times longer than anybody waits count as the longest wait."""
        seconds = min(time.monotonic() - connection.taken_at, LONGEST_PATIENCE)
        self._seconds_taken += (seconds - self._seconds_taken) / 16

    def _await_served(self, school_id: UUID | None) -> PooledConnection | None:
        """Wait for a connection that has served a school and works for another; None if waiting is in vain."""
        with self._lock:
            if school_id is None or not self._is_worth_waiting(school_id):
                return None
            waiter, patience = self._enqueue(school_id, any_will_do=False), self._patience()
        self._await(waiter, patience)
        return waiter.connection

    def _patience(self) -> float:
        """Tell for how many seconds a request waits for a connection that has served its school."""
        return max(PATIENCE, min(LONGEST_PATIENCE, TRANSACTIONS_WAITED_FOR * self._seconds_taken))

    def _is_worth_waiting(self, school_id: UUID) -> bool:
        # A school with several requests at once is to be served by as many connections.
        if self._places < self.size or any(connection.works_for == school_id for connection in self._taken):
            return False
        since = time.monotonic() - self._patience()
        return (
            any(school_id in connection.schools and connection.taken_at > since for connection in self._taken)
            and not any(school_id in connection.schools for connection in self._idle)
            and not any(
                len(connection.schools) < self.schools_per_connection // FREE_PART
                for connection in self._idle
            )
        )

    def _take_other(self, school_id: UUID | None) -> PooledConnection:
        """Take a connection new to the school: a newly made one as long as the pool is not full."""
        with self._lock:
            if school_id is None or self._places >= self.size:
                connection = self._take_idle(school_id)
                if connection is not None:
                    return connection
            waiter = None
            if self._places < self.size + self.max_overflow:
                self._places += 1
            else:
                waiter = self._enqueue(school_id, any_will_do=True)
        if waiter is not None:
            with self.waits.counting():
                self._await(waiter, self.timeout)
            if waiter.connection is not None:
                return waiter.connection
            if not waiter.may_connect:
                raise PoolTimeout(
                    f"All connections, {self.size + self.max_overflow}, are taken, and none was given back within "
                    f"{self.timeout} seconds."
                )
        return self._open(school_id)

    def _open(self, school_id: UUID | None) -> PooledConnection:
        """Open a connection, in a place reserved for it; else take an existing one."""
        generation = self._generation
        try:
            made = PooledConnection(self, self._connect(), generation)
        except BaseException as error:
            with self._lock:
                self._free_place()
                # Where PostgreSQL takes no more connections, those that there are must do; where it is silent, none do.
                instead = isinstance(error, Exception) and not isinstance(error, NoAnswer)
                connection = self._take_idle(school_id) if instead else None
            if connection is None:
                raise
            return connection
        with self._lock:
            self._note_taken(made, school_id)
        return made

    def _enqueue(self, school_id: UUID | None, *, any_will_do: bool) -> _Waiter:
        waiter = _Waiter(school_id, any_will_do=any_will_do)
        self._waiters.append(waiter)
        return waiter

    def _await(self, waiter: _Waiter, seconds: float) -> None:
        """Wait until the waiter is woken, or so many seconds."""
        try:
            waiter.woken.wait(seconds)
        finally:
            with self._lock:
                if waiter in self._waiters:
                    self._waiters.remove(waiter)

    def _hand_over(self, connection: PooledConnection) -> bool:
        """Hand a connection over to a waiter: of a school served by it, else to the first with `any_will_do`."""
        if not self._waiters:
            return False
        waiter = next(
            (waiter for waiter in self._waiters if waiter.school_id in connection.schools),
            next((waiter for waiter in self._waiters if waiter.any_will_do), None),
        )
        if waiter is None:
            return False
        self._note_taken(connection, waiter.school_id)
        waiter.connection = connection
        self._wake(waiter)
        return True

    def _free_place(self) -> None:
        """Free the place of a closed connection, and let a waiter open one there."""
        waiter = next((waiter for waiter in self._waiters if waiter.any_will_do), None)
        if waiter is None:
            self._places -= 1
        else:
            waiter.may_connect = True
            self._wake(waiter)

    def _wake(self, waiter: _Waiter) -> None:
        self._waiters.remove(waiter)
        waiter.woken.set()
