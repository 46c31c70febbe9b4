"""Values remembered for a moment, and shared by threads."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

from cachetools import TTLCache
from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError

from school_service.core.database import registry_connection
from tenants.connections.statements import is_unreachable
from tenants.exceptions import RegistrySilent

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


class Remembered(Generic[Key, Value]):
    """At most so many values, each for so many seconds; beyond the number, the oldest is forgotten."""

    def __init__(self, most: int, seconds: float) -> None:
        self._values: TTLCache[Key, Value] = TTLCache(most, seconds)
        self._lock = threading.Lock()

    def find(self, key: Key) -> Value | None:
        """Find the value of a key, or None if it is not remembered."""
        with self._lock:
            return self._values.get(key)

    def remember(self, key: Key, value: Value | None) -> None:
        """Remember the value of a key; None forgets it."""
        with self._lock:
            if value is None:
                self._values.pop(key, None)
            else:
                self._values[key] = value


class KnownByRegistry(Generic[Key, Value]):
    """At most so many answers of the registry, each so many seconds old; while it is away, as they were read last."""

    def __init__(self, most: int, seconds: float) -> None:
        self._fresh: Remembered[Key, Value] = Remembered(most, seconds)
        self._last: Remembered[Key, Value] = Remembered(most, math.inf)

    def find(self, key: Key, read: Callable[[Connection], Value], *, anew: bool = False) -> Value:
        """Find the value of a key, by `read` where it is not remembered; None is not. `anew` reads it in any case.

        Raises RegistrySilent, and the driver's error, for a value that was never read; and the errors of `read`.
        """
        fresh = None if anew else self._fresh.find(key)
        if fresh is not None:
            return fresh
        try:
            with registry_connection() as connection:
                value = read(connection)
            self._last.remember(key, value)
        except (DBAPIError, RegistrySilent) as error:
            last = self._last.find(key)
            if last is None or (isinstance(error, DBAPIError) and not is_unreachable(error)):
                raise
            value = last
        self._fresh.remember(key, value)
        return value
