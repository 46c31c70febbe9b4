"""Pooled connections and the schools they have been in.

A backend of PostgreSQL caches the catalogue rows of every table it ever touched. That makes the second request of a
school on a connection faster than the first, and it fills memory: with all kinds of requests some 0.75 MB for each
school. So a request is given an idle connection that has been in its school, where there is one; and a connection that
has been in too many schools is closed when it is returned, never within a transaction.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any
from uuid import UUID

from sqlalchemy import Connection
from sqlalchemy.pool import ConnectionPoolEntry, PoolProxiedConnection, QueuePool
from sqlalchemy.util.queue import Queue

from tenants.connections.deadline import NoAnswer

SCHOOLS_PER_CONNECTION = 200  # 150 MB at most for a backend

_connecting_to: ContextVar[UUID | None] = ContextVar("connecting_to", default=None)


@contextmanager
def connecting_to(school_id: UUID) -> Iterator[None]:
    """Say which school a connection taken from a pool within the block is for."""
    token = _connecting_to.set(school_id)
    try:
        yield
    finally:
        _connecting_to.reset(token)


def mark_school(connection: Connection | PoolProxiedConnection, school_id: UUID) -> None:
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
            return any(school_id in _schools(entry) for entry in self.queue)

    def _get(self) -> ConnectionPoolEntry:
        school_id = _connecting_to.get()

        def distance(position: int) -> tuple[bool, int]:
            known = _schools(self.queue[position])
            return school_id not in known, len(known)

        best = min(range(len(self.queue)), key=distance)
        entry = self.queue[best]
        del self.queue[best]
        return entry


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
