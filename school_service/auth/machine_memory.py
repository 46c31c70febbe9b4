"""Counts of tries in common for all workers: their supervisor has them in its memory, and a worker asks it."""

from __future__ import annotations

from typing import Any

from limits.storage import MovingWindowSupport, Storage

from school_service.core.machine import Supervisor

METHODS = frozenset({"acquire_entry", "get_moving_window", "incr", "get", "get_expiry", "clear", "reset"})
"""The methods of BoundedMemory called by a worker."""


class MachineMemory(Storage, MovingWindowSupport):
    """The BoundedMemory of the supervisor, as a storage of `limits`; raises StorageError if that does not answer."""

    STORAGE_SCHEME = ["machine-memory"]

    def __init__(self, supervisor: Supervisor, timeout: float) -> None:
        super().__init__(None, wrap_exceptions=True)
        self._supervisor, self._timeout = supervisor, timeout

    def _call(self, method: str, *arguments: Any) -> Any:
        return self._supervisor.count(method, *arguments, timeout=self._timeout)

    def acquire_entry(self, key: str, limit: int, expiry: int, amount: int = 1) -> bool:
        """Count so many tries, unless there would be more than the limit within `expiry` seconds."""
        return bool(self._call("acquire_entry", key, limit, expiry, amount))

    def get_moving_window(self, key: str, limit: int, expiry: int) -> tuple[float, int]:
        """Tell when the oldest try of the last `expiry` seconds was, and how many there were."""
        begun, count = self._call("get_moving_window", key, limit, expiry)
        return float(begun), int(count)

    def incr(self, key: str, expiry: float, amount: int = 1) -> int:
        """Count so many tries of a window, begun with the first, and answer their number in it."""
        return int(self._call("incr", key, expiry, amount))

    def get(self, key: str) -> int:
        """Tell how many tries `incr` has counted."""
        return int(self._call("get", key))

    def get_expiry(self, key: str) -> float:
        """Tell when the window of `incr` ends, in seconds since 1970."""
        return float(self._call("get_expiry", key))

    def clear(self, key: str) -> None:
        """Forget a key."""
        self._call("clear", key)

    def reset(self) -> int:
        """Forget every key; answers how many there were."""
        return int(self._call("reset"))

    def check(self) -> bool:
        """Tell whether the supervisor answers."""
        try:
            self._call("get", "check")
        except OSError:
            return False
        return True

    @property
    def base_exceptions(self) -> type[Exception]:
        """The exception if the supervisor does not answer; `limits` makes it a StorageError."""
        return OSError
