"""Pooled connections and the schools they have been in.

A backend of PostgreSQL caches the catalogue rows of every table it ever touched. That makes the second request of a
school on a connection faster than the first, and it fills memory: with all kinds of requests some 0.75 MB for each
school. So a request is given an idle connection that has been in its school, where there is one. Where all of those
work for other schools just now, and the idle ones have seen half of the schools that they may, it waits a little: else
every connection would meet every school, and be replaced over and over. A connection that has been in too many schools
is closed when it is returned, never within a transaction.
"""

from __future__ import annotations

import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, cast
from uuid import UUID

from psycopg2.extensions import TRANSACTION_STATUS_IDLE
from sqlalchemy import Connection
from sqlalchemy.pool import ConnectionPoolEntry, PoolProxiedConnection, QueuePool
from sqlalchemy.pool.base import _NOOP_WEAKREF_CALLBACK, _ConnectionFairy
from sqlalchemy.util.queue import Queue

from tenants.connections.deadline import NoAnswer

SCHOOLS_PER_CONNECTION = 200  # 150 MB at most for a backend

PATIENCE = 0.03  # seconds that a request waits for a connection that has been in its school

_connecting_to: ContextVar[UUID | None] = ContextVar("connecting_to", default=None)


class connecting_to:  # noqa: N801 - reads as the function that it stands for
    """Says which school a connection taken from a pool within the block is for."""

    __slots__ = ("_school_id", "_token")

    def __init__(self, school_id: UUID) -> None:
        self._school_id = school_id

    def __enter__(self) -> None:
        self._token = _connecting_to.set(self._school_id)

    def __exit__(self, *_error: object) -> None:
        _connecting_to.reset(self._token)


def mark_school(connection: Connection | PoolProxiedConnection | BareConnection, school_id: UUID) -> None:
    """Note that a connection is in a school."""
    connection.info.setdefault("schools", set()).add(school_id)


def retire_after(limit: int) -> Callable[[Any, ConnectionPoolEntry], None]:
    """Make what a pool does with a connection given back: close it once it has been in `limit` schools."""

    def retire(_driver: Any, entry: ConnectionPoolEntry) -> None:
        if len(_schools(entry)) >= limit:
            _retire(entry)

    return retire


def _retire(entry: ConnectionPoolEntry) -> None:
    entry.invalidate()
    entry.info.clear()


def _schools(entry: ConnectionPoolEntry) -> set[UUID]:
    found: set[UUID] = entry.info.get("schools") or set()
    return found


class _IdleConnections(Queue[ConnectionPoolEntry]):
    """The idle connections of a pool: who knows the school comes first, then who knows the fewest schools."""

    def knows(self, school_id: UUID) -> bool:
        """Tell whether an idle connection has been in a school."""
        with self.mutex:
            for entry in self.queue:
                if school_id in _schools(entry):
                    return True
        return False

    def has_room(self, schools: int) -> bool:
        """Tell whether an idle connection has been in fewer schools than these."""
        with self.mutex:
            return any(len(_schools(entry)) < schools for entry in self.queue)

    def take_known(self, school_id: UUID) -> ConnectionPoolEntry | None:
        """Take the connection that has been in a school and in the fewest others; None where none has been in it."""
        best, least = -1, sys.maxsize
        with self.mutex:
            queue = self.queue
            for position, entry in enumerate(queue):
                known = entry.info.get("schools")
                if known is not None and school_id in known and len(known) < least:
                    best, least = position, len(known)
            if best < 0:
                return None
            found = queue[best]
            del queue[best]
            return found

    def _get(self) -> ConnectionPoolEntry:
        school_id = _connecting_to.get()
        best, least = 0, (True, sys.maxsize)
        for position, entry in enumerate(self.queue):
            known = _schools(entry)
            distance = (school_id not in known, len(known))
            if distance < least:
                best, least = position, distance
        entry = self.queue[best]
        del self.queue[best]
        return entry


class BareConnection:
    """A connection taken from a SchoolPool without SQLAlchemy's object around it, which would cost as much as a read.

    Whoever takes it gives it back with `close`. SQLAlchemy's object is made where something went wrong: it knows how to
    deal with a lost connection, and how to end what is under way.
    """

    __slots__ = ("_entry", "_pool", "_proxied", "dbapi_connection", "info")

    def __init__(self, pool: SchoolPool, entry: ConnectionPoolEntry, driver: Any) -> None:
        self._pool = pool
        self._entry: Any = entry
        self._proxied: Any = None
        self.dbapi_connection = driver
        self.info: dict[Any, Any] = entry.info

    def proxied(self) -> PoolProxiedConnection:
        """Make SQLAlchemy's object around it, once, as the pool makes it for others."""
        if self._proxied is None:
            fairy = _ConnectionFairy(self._pool, self.dbapi_connection, self._entry, None)
            fairy._counter = 1
            self._entry.fairy_ref = weakref.ref(fairy, _NOOP_WEAKREF_CALLBACK)
            self._proxied = fairy
        return self._proxied  # type: ignore[no-any-return]

    def close(self) -> None:
        """Give the connection back to its pool; what is under way on it is rolled back."""
        if (
            self._proxied is None
            and self.dbapi_connection.get_transaction_status() == TRANSACTION_STATUS_IDLE
        ):
            self._pool.give_back(self._entry)
        else:
            self.proxied().close()


class Waits:
    """Who waits for a connection: how many just now, how many did, and for how many seconds in all."""

    def __init__(self) -> None:
        self.waiting = self.count = 0
        self.seconds = 0.0
        self._lock = threading.Lock()

    @contextmanager
    def one(self) -> Iterator[None]:
        """Count the wait that the block is."""
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
    """Who waits for a connection that has been in a school; `entry` is the one that was handed over."""

    def __init__(self, school_id: UUID) -> None:
        self.school_id = school_id
        self.entry: ConnectionPoolEntry | None = None
        self.handed_over = threading.Event()


class SchoolPool(QueuePool):
    """A pool that fills up before a connection meets another school, and takes a school to who knows it.

    `schools_per_connection`: after how many schools its connections are closed. `waits` are those for a connection
    where all are taken.
    """

    _queue_class = _IdleConnections
    _pool: _IdleConnections

    def __init__(
        # create_engine looks for positional arguments by name.
        self,
        creator: Any,
        schools_per_connection: int = SCHOOLS_PER_CONNECTION,
        **options: Any,
    ) -> None:
        super().__init__(creator, **options)
        self.waits = Waits()
        self._schools_per_connection = schools_per_connection
        self._lock = threading.Lock()
        self._taken: dict[ConnectionPoolEntry, UUID] = {}
        self._waiters: list[_Waiter] = []

    def recreate(self) -> SchoolPool:
        """Make a pool like this one, without its connections."""
        made = cast(SchoolPool, super().recreate())
        made._schools_per_connection = self._schools_per_connection
        return made

    def take(self, school_id: UUID) -> BareConnection:
        """Take a connection for a school, as `connect` does, without SQLAlchemy's object around it."""
        entry: Any = self._pool.take_known(school_id)
        if entry is None:
            with connecting_to(school_id):
                entry = self._do_get()
        else:
            with self._lock:
                self._taken[entry] = school_id
        try:
            driver = entry.get_connection()
        except BaseException as error:
            entry._checkin_failed(error, _fairy_was_created=False)
            raise
        return BareConnection(self, entry, driver)

    def give_back(self, entry: Any) -> None:
        """Give back a connection that was taken with `take`, and on which nothing is under way."""
        if self.dispatch.checkin or entry.finalize_callback:
            entry.checkin(_fairy_was_created=False)
        else:
            self._do_return_conn(entry)

    def _do_get(self) -> ConnectionPoolEntry:
        school_id = _connecting_to.get()
        if school_id is None:
            return self._take(None)
        entry = self._await_known(school_id) or self._take(school_id)
        with self._lock:
            self._taken[entry] = school_id
        return entry

    def _do_return_conn(self, record: ConnectionPoolEntry) -> None:
        if len(_schools(record)) >= self._schools_per_connection:
            _retire(record)
        with self._lock:
            self._taken.pop(record, None)
            waiter = self._find_waiter(_schools(record)) if self._waiters else None
            if waiter is not None:
                self._waiters.remove(waiter)
                self._taken[record] = waiter.school_id
                waiter.entry = record
                waiter.handed_over.set()
                return
        super()._do_return_conn(record)

    def _find_waiter(self, known: set[UUID]) -> _Waiter | None:
        return next((one for one in self._waiters if one.school_id in known), None)

    def _await_known(self, school_id: UUID) -> ConnectionPoolEntry | None:
        """Wait, PATIENCE at most, for a connection that knows a school and works for another; None where in vain."""
        with self._lock:
            if not self._is_worth_waiting(school_id):
                return None
            waiter = _Waiter(school_id)
            self._waiters.append(waiter)
        waiter.handed_over.wait(PATIENCE)
        with self._lock:
            if waiter in self._waiters:
                self._waiters.remove(waiter)
            return waiter.entry

    def _is_worth_waiting(self, school_id: UUID) -> bool:
        # A school with several requests at once is to be known by as many connections.
        if self._overflow < 0 or school_id in self._taken.values():
            return False
        return (
            any(school_id in _schools(entry) for entry in self._taken)
            and not self._pool.knows(school_id)
            and not self._pool.has_room(self._schools_per_connection // 2)
        )

    def _take(self, school_id: UUID | None) -> ConnectionPoolEntry:
        # Below zero is the number of connections that are still to be made.
        if (
            school_id is not None
            and self._overflow < 0
            and not self._pool.knows(school_id)
            and self._inc_overflow()
        ):
            try:
                return self._create_connection()
            except BaseException as error:
                self._dec_overflow()
                # Where PostgreSQL takes no more connections, those that there are must do; where it is silent, none do.
                if self._pool.empty() or isinstance(error, NoAnswer) or not isinstance(error, Exception):
                    raise
        if self._overflow >= self._max_overflow and self._pool.empty():
            with self.waits.one():
                return super()._do_get()
        return super()._do_get()
