"""The program of a printer: it reads tasks from standard input until its end, and answers each on standard output."""

from __future__ import annotations

import json
import os
import resource
import sys
import time
from contextlib import suppress
from typing import IO, Any

from typst import TypstError

from school_service.printing import ANSWER, TASK, BrokenPicture
from school_service.printing.papers import PAPERS

MOST_CPU = 60  # seconds of processor time of a task, after which the system ends it: also where nobody waits any more
NICENESS = 5  # of a printer: beside a busy process it gets a third of a processor's time


def main() -> None:
    """Print each coming task; returns when the serving process has ended or closed the connection."""
    # Short requests, and PostgreSQL, come before papers; where the system forbids it, as a sandbox may, they do not.
    with suppress(PermissionError):
        os.nice(NICENESS)
    tasks = sys.stdin.buffer
    with os.fdopen(os.dup(1), "wb") as answers:
        # Prints of a library are for the log, and no part of an answer.
        os.dup2(2, 1)
        while task := _next_task(tasks):
            number, document = task
            printed, content = _print(document)
            answers.write(ANSWER.pack(number, printed, _memory(), len(content)))
            answers.write(content)
            answers.flush()


def _next_task(tasks: IO[bytes]) -> tuple[int, bytes] | None:
    """Wait for a task: its number, and its document as JSON. None if no more come."""
    head = tasks.read(TASK.size)
    if len(head) < TASK.size:
        return None
    number, length = TASK.unpack(head)
    document = tasks.read(length)
    return (number, document) if len(document) == length else None


def _print(document: bytes) -> tuple[bool, bytes]:
    """Print a document: answers whether this went well, and the file or the error message of typst or Pillow.

    The message is about the template and the pictures, and has no text of a person in it.
    """
    _bound_processor_time()
    # Numbers stay the texts that they are, so that each printing shows the same digits.
    task: dict[str, Any] = json.loads(document, parse_float=str)
    try:
        return True, PAPERS[task.pop("paper")](**task)
    except TypstError as error:
        return False, error.message.encode()
    except BrokenPicture as error:
        return False, str(error).encode()


def _bound_processor_time() -> None:
    """Let the system end this process if the beginning task takes too long."""
    _, most = resource.getrlimit(resource.RLIMIT_CPU)
    until = int(time.process_time()) + 1 + MOST_CPU
    resource.setrlimit(
        resource.RLIMIT_CPU, (until if most == resource.RLIM_INFINITY else min(until, most), most)
    )


def _memory() -> int:
    """Answer how many bytes of memory this process has; without /proc, how many it has had at most."""
    try:
        with open("/proc/self/statm", "rb") as sizes:
            return int(sizes.read().split()[1]) * resource.getpagesize()
    except FileNotFoundError:
        most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return most if sys.platform == "darwin" else most * 1024
