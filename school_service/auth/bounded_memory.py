"""Counts of tries in this process's memory, within a bound.

The memory storage of `limits` starts a thread to look at every key, again and again, and forgets no key before its
time, even those made up by strangers. Here nothing runs beside the tries: an expired key goes when another one comes.
When all is full, the key unused for the longest time goes. The account being guessed at is used with each
guess.
"""

from __future__ import annotations

import threading
import time
from bisect import bisect_left
from typing import Any

from cachetools import TLRUCache
from limits.storage import MovingWindowSupport, Storage

MOST_BYTES = 32 * 2**20
_OF_KEY, _OF_TRY = 1000, 40  # bytes, as measured on CPython 3.11 (64 bits)


class _Tries:
    """The moments (seconds since 1970) of the tries of a key, the oldest first, and for how long each counts."""

    __slots__ = ("moments", "seconds")

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.moments: list[float] = []

    def forget_before(self, moment: float) -> None:
        """Forget the tries before a moment."""
        del self.moments[: bisect_left(self.moments, moment)]


class MovingWindows(Storage, MovingWindowSupport):
    """A storage of `limits` for moving windows alone, such as all windows of this service are."""

    def _refuse(self, *_arguments: Any, **_options: Any) -> Any:
        raise NotImplementedError

    incr = get = get_expiry = clear = reset = check = _refuse

    @property
    def base_exceptions(self) -> type[Exception]:
        """The exception for an unreachable storage; `limits` makes it a StorageError."""
        return OSError


class BoundedMemory(MovingWindows):
    """The windows of this process."""

    STORAGE_SCHEME = ["bounded-memory"]

    def __init__(self, uri: str | None = None, most_bytes: int = MOST_BYTES, **options: Any) -> None:
        super().__init__(uri, **options)
        self._lock = threading.Lock()
        self._tries: TLRUCache[str, _Tries] = TLRUCache(
            most_bytes,
            ttu=lambda _key, tries, now: now + tries.seconds,
            timer=lambda: time.time(),
            getsizeof=lambda tries: _OF_KEY + _OF_TRY * len(tries.moments),
        )

    def acquire_entry(self, key: str, limit: int, expiry: int, amount: int = 1) -> bool:
        """Count so many tries, unless there would be more than the limit within `expiry` seconds."""
        if amount > limit:
            return False
        now = time.time()
        with self._lock:
            tries = self._tries.get(key) or _Tries(expiry)
            tries.forget_before(now - expiry)
            if len(tries.moments) + amount > limit:
                return False
            tries.moments.extend([now] * amount)
            # Set anew, since it takes more room, and counts for longer.
            self._tries[key] = tries
            return True

    def get_moving_window(self, key: str, limit: int, expiry: int) -> tuple[float, int]:
        """Tell when the oldest try of the last `expiry` seconds was, and how many there were."""
        now = time.time()
        with self._lock:
            tries = self._tries.get(key)
            if tries is None:
                return now, 0
            begin = bisect_left(tries.moments, now - expiry)
            count = len(tries.moments) - begin
            return (tries.moments[begin] if count else now), count

    def reset(self) -> int:
        """Forget every key; answers how many there were."""
        with self._lock:
            count = len(self._tries)
            self._tries.clear()
            return count
