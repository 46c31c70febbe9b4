"""Whether the database answers, and whether tries to sign in are counted."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Engine, text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from school_service.auth.login_throttle import storage_failure
from school_service.core.database import HEALTH_BIND, db, placement
from tenants.connections.dialect import SessionPool
from tenants.driver_errors import TOO_MANY_CONNECTIONS, first_line, sqlstate

_log = logging.getLogger(__name__)


@dataclass
class Check:
    """A check, made by one thread at a time; other threads meanwhile get the result of the last one.

    So a silent database holds one thread at most. Until the first check has ended, the result is False.
    """

    passes: Callable[[], bool]
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _last: bool = False

    def __call__(self) -> bool:
        """Tell whether the check passes."""
        if not self._lock.acquire(blocking=False):
            return self._last
        try:
            self._last = self.passes()
        finally:
            self._lock.release()
        return self._last


@dataclass
class LoginCountsCheck:
    """Whether the storage of tries, a Redis, lets this process in; it is asked until it has.

    A process with a wrong password gets no requests. A Redis that is away, or refuses later, is of signing in alone: to
    take every process away for it would help nobody.
    """

    _admitted: bool = False

    def __call__(self) -> bool:
        """Tell whether the process is not refused."""
        if self._admitted:
            return True
        failure = storage_failure()
        self._admitted = failure is None
        return failure is None or not failure.refuses


def database_answers() -> bool:
    """Tell whether the database answers, on a connection for this check alone.

    A process that serves schools on several servers does not wait for the registry's.
    """
    # Requests with a connection are served: another process would help nobody.
    if _serves(placement().engines_by_server()):
        return True
    try:
        with db.engines[HEALTH_BIND].connect() as connection:
            connection.execute(text("SELECT 1"))
    except (DBAPIError, PoolTimeout) as error:
        is_full = isinstance(error, DBAPIError) and sqlstate(error) == TOO_MANY_CONNECTIONS
        if is_full and _serves(db.engines):
            _log.warning("the database takes no more connections", extra={"reason": _reason(error)})
            return True
        _log.warning("the database does not answer", extra={"reason": _reason(error)})
        return False
    return True


def _serves(engines: Mapping[Any, Engine]) -> bool:
    """Tell whether this process has connections of these engines for serving schools."""
    pools = [engine.pool for engine in engines.values()]
    return any(pool.connections.has_any() for pool in pools if isinstance(pool, SessionPool))


def _reason(error: DBAPIError | PoolTimeout) -> str:
    if isinstance(error, PoolTimeout):
        return "the check has no connection"
    words = f"{type(error.orig).__name__}: {first_line(error.orig)}"
    state = sqlstate(error)
    return f"{state}: {words}" if state else words
