"""The way of requests to the registry: a share of threads waits for it, and none while it is known to be silent.

The registry may be on another server than the schools, the coordinator of a cluster, and their requests need it seldom.
So a registry without an answer holds few threads, and soon one at a time, to find out when it is back.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from sqlalchemy import Connection
from sqlalchemy.engine import Engine
from sqlalchemy.exc import DBAPIError

from tenants.connections.deadline import NoAnswer
from tenants.exceptions import RegistrySilent

PATIENCE = 2.0  # seconds that a thread waits for its turn while none is answered, before the registry counts as silent
BRIEFLY = 0.2  # the same, while none is answered, for requests beyond the share of threads that may wait
RETRY = 1.0  # seconds from one try to the next while it is silent


class RegistryConnections:
    """Lends connections of the registry's engine to requests, `at_once` at a time; as many wait for their turn.

    `engine` finds the engine when a connection is asked for. A registry is silent if a statement or a connection was
    not answered in its time (NoAnswer), and if nobody had an answer while somebody waited for PATIENCE. Then one thread
    tries again each RETRY, and all others are refused at once.
    """

    def __init__(self, engine: Callable[[], Engine], at_once: int) -> None:
        self._engine = engine
        self._at_once = at_once
        self._turn = threading.Condition()
        self._under_way = self._waiting = self._answers = 0
        self._silent = self._trying = False
        self._retry_at = 0.0

    @property
    def silent(self) -> bool:
        """Whether the registry did not answer when it was last asked."""
        return self._silent

    @contextmanager
    def connect(self) -> Iterator[Connection]:
        """Lend a connection; raises RegistrySilent, and the engine's errors."""
        tries = self._begin()
        answered = True
        try:
            with self._engine().connect() as connection:
                yield connection
        except DBAPIError as error:
            answered = not isinstance(error.orig, NoAnswer)
            raise
        finally:
            self._end(tries=tries, answered=answered)

    def _begin(self) -> bool:
        """Wait for a turn; returns whether it is a try while the registry is silent."""
        with self._turn:
            if self._silent:
                return self._try()
            answers, share = self._answers, self._waiting < self._at_once
            begun = time.monotonic()
            ends = begun + (PATIENCE if share else BRIEFLY)
            self._waiting += 1
            try:
                while self._under_way >= self._at_once and not self._silent:
                    left = ends - time.monotonic()
                    if left <= 0:
                        if self._answers != answers and ends < begun + PATIENCE:
                            # Others are answered: it is busy, and not silent.
                            answers, ends = self._answers, min(time.monotonic() + BRIEFLY, begun + PATIENCE)
                            continue
                        if share and self._answers == answers:
                            self._fall_silent()
                        raise RegistrySilent
                    self._turn.wait(left)
            finally:
                self._waiting -= 1
            if self._silent:
                raise RegistrySilent
            self._under_way += 1
            return False

    def _try(self) -> bool:
        if self._trying or time.monotonic() < self._retry_at:
            raise RegistrySilent
        self._trying = True
        self._under_way += 1
        return True

    def _end(self, *, tries: bool, answered: bool) -> None:
        with self._turn:
            self._under_way -= 1
            if tries:
                self._trying = False
            if answered:
                self._silent = False
                self._answers += 1
                self._turn.notify()
            else:
                self._fall_silent()

    def _fall_silent(self) -> None:
        self._silent = True
        self._retry_at = time.monotonic() + RETRY
        self._turn.notify_all()
