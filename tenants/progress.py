"""Reporting the progress of long work to its caller."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

# Called with the number of steps that there are; yields a function that is called with the number of steps just done.
Progress = Callable[[int], AbstractContextManager[Callable[[int], None]]]


@contextmanager
def no_progress(_length: int) -> Iterator[Callable[[int], None]]:
    """Report no progress."""
    yield lambda _done: None
