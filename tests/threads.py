"""Many requests at once."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any


def run_concurrently(count: int, work: Callable[[int], Any]) -> list[Any]:
    """Run `work(number)` in `count` threads, which all begin together; answers what each returned, by number."""
    barrier = Barrier(count)

    def begin(number: int) -> Any:
        barrier.wait(timeout=60)
        return work(number)

    with ThreadPoolExecutor(count) as threads:
        return list(threads.map(begin, range(count)))
