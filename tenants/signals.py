"""Signals, handled in another way for the length of a block."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

Handler = Callable[[int, FrameType | None], object]

TO_STOP = tuple(getattr(signal, name) for name in ("SIGTERM", "SIGINT", "SIGHUP") if hasattr(signal, name))
"""The signals to stop a process: of a service manager, of the keyboard, and of a closed terminal."""


@contextmanager
def handled(numbers: Iterable[int], handler: Handler) -> Iterator[None]:
    """Handle signals in the block by this handler, and after it as before."""
    before: dict[int, Any] = {number: signal.signal(number, handler) for number in numbers}
    try:
        yield
    finally:
        for number, previous in before.items():
            signal.signal(number, previous)


def to_heed() -> list[int]:
    """List the signals to stop a process, for it to heed: a closed terminal stops it, unless nohup says otherwise."""
    ignored = getattr(signal, "SIGHUP", None)
    return [each for each in TO_STOP if each != ignored or signal.getsignal(each) != signal.SIG_IGN]
