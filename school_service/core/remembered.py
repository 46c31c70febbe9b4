"""Values remembered for a moment, and shared by threads."""

from __future__ import annotations

import threading
from collections.abc import Hashable
from typing import Generic, TypeVar

from cachetools import TTLCache

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
