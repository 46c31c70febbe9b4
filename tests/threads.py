"""Many requests at once."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier, Event
from typing import Any

import pytest


def run_concurrently(count: int, work: Callable[[int], Any]) -> list[Any]:
    """Run `work(number)` in `count` threads, which all begin together; answers the results, by number."""
    barrier = Barrier(count)

    def begin(number: int) -> Any:
        barrier.wait(timeout=60)
        return work(number)

    with ThreadPoolExecutor(count) as threads:
        return list(threads.map(begin, range(count)))


def pausing(monkeypatch: pytest.MonkeyPatch, module: Any, name: str) -> tuple[Event, Event]:
    """Let a function of a module wait each time that it is called; answers the events of its call and of going on."""
    function, called, go_on = getattr(module, name), Event(), Event()

    def wait(*arguments: Any, **named: Any) -> Any:
        called.set()
        assert go_on.wait(60)
        return function(*arguments, **named)

    monkeypatch.setattr(module, name, wait)
    return called, go_on
