"""Pooled connections and the schools they have been in.

A backend of PostgreSQL caches the catalogue rows of every table it ever touched. That makes the second request of a
school on a connection faster than the first, and it fills memory: with all kinds of requests some 0.75 MB for each
school. So a request is given an idle connection that has been in its school, where there is one; and a connection that
has been in too many schools is closed when it is returned, never within a transaction.
"""

from __future__ import annotations

import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any
from uuid import UUID

from psycopg2.extensions import TRANSACTION_STATUS_IDLE
from sqlalchemy import Connection
from sqlalchemy.pool import ConnectionPoolEntry, PoolProxiedConnection, QueuePool
from sqlalchemy.pool.base import _NOOP_WEAKREF_CALLBACK, _ConnectionFairy
from sqlalchemy.util.queue import Queue

from tenants.connections.deadline import NoAnswer

SCHOOLS_PER_CONNECTION = 200  # 150 MB at most for a backend

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
            entry.invalidate()
            entry.info.clear()

    return retire


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

    def __init__(self, pool: SchoolPool, entry: Any, driver: Any) -> None:
        self._pool, self._entry = pool, entry
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
            self._entry.checkin(_fairy_was_created=False)
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


class SchoolPool(QueuePool):
    """A pool that fills up before a connection meets another school, and takes a school to who knows it.

    `waits` are those for a connection where all are taken.
    """

    _queue_class = _IdleConnections
    _pool: _IdleConnections

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.waits = Waits()

    def take(self) -> BareConnection:
        """Take a connection, as `connect` does, without SQLAlchemy's object around it."""
        entry: Any = self._do_get()
        try:
            driver = entry.get_connection()
        except BaseException as error:
            entry._checkin_failed(error, _fairy_was_created=False)
            raise
        return BareConnection(self, entry, driver)

    def _do_get(self) -> ConnectionPoolEntry:
        school_id = _connecting_to.get()
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
