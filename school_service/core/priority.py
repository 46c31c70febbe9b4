"""Long work giving way to short requests, and to PostgreSQL: it is done in threads of lower priority."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from contextvars import copy_context
from typing import TypeVar

NICENESS = 10  # of these threads: beside short requests they get a tenth of a processor's time
_niceness = os.getpriority(os.PRIO_PROCESS, 0) + NICENESS

Answer = TypeVar("Answer")


def _stand_back() -> None:
    # Linux alone knows a priority of each thread; elsewhere it would be the whole process's.
    if sys.platform == "linux":
        # Where the system forbids it, as a sandbox may, work goes on as it is.
        with suppress(PermissionError):
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _niceness)


_threads = ThreadPoolExecutor(thread_name_prefix="low-priority", initializer=_stand_back)


def give_way(work: Callable[[], Answer]) -> Answer:
    """Do some work at a lower priority, in the context of the waiting caller; passes on its exceptions.

    The caller bounds how much of it goes on at once: by `shares`.
    """
    return _threads.submit(copy_context().run, work).result()
