"""Counts of tries in common for all workers: their supervisor has them in its memory, and a worker asks it."""

from __future__ import annotations

from typing import Any

from school_service.auth.bounded_memory import MovingWindows
from school_service.core.machine import RemoteSupervisor

METHODS = frozenset({"acquire_entry", "get_moving_window"})
"""The methods of BoundedMemory called by a worker."""


class MachineMemory(MovingWindows):
    """The BoundedMemory of the supervisor, as a storage of `limits`; raises StorageError if that does not answer."""

    STORAGE_SCHEME = ["machine-memory"]

    def __init__(self, supervisor: RemoteSupervisor, timeout: float) -> None:
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
