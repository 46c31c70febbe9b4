"""Printers: processes for making files of tasks, so many at once, each for so long at most.

Schools take turns for them, and a school never has them all: another's card waits for no class of it.

A printer stays for the next task, since a new one takes longer to start than to print a card. It inherits no
environment, no file and no secret of the serving process, and ends with it. Typst remembers much of its past work, and
nothing can interrupt it: a process of its own gives its memory back when it ends, and can be killed.
"""

from __future__ import annotations

import logging
import math
import os
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from contextlib import suppress
from functools import cache
from importlib.util import find_spec
from typing import IO, Any
from weakref import WeakSet, finalize, ref

import orjson
from flask import Flask, current_app

from school_service.core import machine
from school_service.core.errors import Busy
from school_service.core.shares import Shares
from school_service.printing import ANSWER, TASK

PATIENCE = 10.0  # seconds that a request waits for a printer
TIMEOUT = 30.0  # seconds that a printer has
WAITING = 500  # of a school that wait for a printer at once
IDLE = 60.0  # seconds that a printer stays without a task
OUTCOMES = ("printed", "failed", "too_slow")
MOST_TASKS = 200  # of a printer, then it ends
MOST_MEMORY = 256 * 1024 * 1024  # bytes; a printer that has more after a task ends

# Isolated: neither the folder it is started in nor PYTHONPATH add modules. To find packages among all installed ones
# takes Python longer than to start: a printer gets the paths of the few that it needs. It does not collect garbage:
# there is no more than its tasks leave.
_PROGRAM = """
import gc, sys
gc.disable()
sys.path += sys.argv[1:]
from school_service.printing.worker import main
main()
"""
_PACKAGES = ("school_service", "typst", "fontpkg_noto_sans", "segno", "pypdf", "PIL")
_ENVIRONMENT = {"LC_ALL": "C.UTF-8"}
_MOST_LOGGED = 2000  # characters of a printer's standard error
_MOST_RECEIVED = 256 * 1024  # bytes at once
_MOMENT = 1.0  # seconds that a printer has to end once it has closed its standard output

_log = logging.getLogger(__name__)


class NotPrinted(Exception):
    """The printer has made no file, for example because a picture is broken. Its error message is in the log."""


class _PrinterEnded(Exception):
    """The printer has ended without an answer, or its answer is not one to this task."""

    def __init__(self, details: Mapping[str, Any]) -> None:
        super().__init__()
        self.details = details  # for the log


@cache
def _command() -> tuple[str, ...]:
    specs = [find_spec(package) for package in _PACKAGES]
    origins = [spec.origin for spec in specs if spec is not None and spec.origin is not None]
    folders = dict.fromkeys(os.path.dirname(os.path.dirname(origin)) for origin in origins)
    return (sys.executable, "-I", "-S", "-c", _PROGRAM, *folders)


class _Printer:
    """A process for printing one task after the other.

    It is killed when nothing refers to it any more, and at our own end.
    """

    def __init__(self, command: Sequence[str]) -> None:
        self.tasks = 0
        self.memory = 0  # bytes, after the last task
        self._socket, its = socket.socketpair()
        try:
            with its:
                # In a session of its own: Ctrl-C in a terminal is for the process that serves, which finishes papers
                # under way.
                self._process = subprocess.Popen(  # noqa: S603 the command is fixed
                    command,
                    stdin=its.fileno(),
                    stdout=its.fileno(),
                    stderr=subprocess.PIPE,
                    env=_ENVIRONMENT,
                    cwd="/",
                    start_new_session=True,
                )
        except BaseException:
            self._socket.close()
            raise
        assert self._process.stderr is not None  # noqa: S101 it is a pipe
        self._said: IO[bytes] = self._process.stderr
        os.set_blocking(self._said.fileno(), False)
        # Where this process is killed, the printer's standard input ends, and so does it.
        self.kill = finalize(self, _end, os.getpid(), self._process, self._socket)
        _started.add(self)

    def print(self, task: bytes, deadline: float) -> tuple[bool, bytes]:
        """Print until a moment of `time.monotonic`: whether it did, and the file or its error message.

        Raises TimeoutError and _PrinterEnded. After an error it can only be killed.
        """
        self.tasks += 1
        try:
            self._wait_until(deadline)
            self._socket.sendall(TASK.pack(self.tasks, len(task)) + task)
            number, printed, self.memory, length = ANSWER.unpack(self._receive(ANSWER.size, deadline))
            if number != self.tasks:
                self._process.kill()
                raise _PrinterEnded(self._end_of_process())
            content = self._receive(length, deadline)
        except ConnectionError:
            raise _PrinterEnded(self._end_of_process()) from None
        if said := self._said.read():
            # With a pipe full of unread bytes the printer would wait for ever.
            _log.warning("a printer has said something", extra={"printer": _end_of(said)})
        return printed, content

    def _receive(self, length: int, deadline: float) -> bytes:
        parts = []
        while length:
            self._wait_until(deadline)
            part = self._socket.recv(min(length, _MOST_RECEIVED))
            if not part:
                raise ConnectionResetError
            parts.append(part)
            length -= len(part)
        return b"".join(parts)

    def _wait_until(self, deadline: float) -> None:
        left = deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError
        self._socket.settimeout(left)

    def _end_of_process(self) -> dict[str, Any]:
        """Answer the exit code of the process, and the end of its standard error."""
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(_MOMENT)
        said = self._said.read() or b""
        return {"exit_code": self._process.returncode, "printer": _end_of(said)}


def _end_of(said: bytes) -> str:
    return said.decode(errors="replace").strip()[-_MOST_LOGGED:]


def _end(owner: int, process: subprocess.Popen[bytes], connection: socket.socket) -> None:
    """End a printer of the process `owner`; in a process forked from it, only close the connection to it."""
    connection.close()
    if os.getpid() == owner:
        process.kill()
        process.wait()
    else:
        process.returncode = 0  # only the owner can wait for it
    if process.stderr is not None:
        process.stderr.close()


class _IdlePrinters:
    """Printers without a task, at most so many. One without a task for `seconds` is ended."""

    def __init__(self, seconds: float, most: int) -> None:
        self._seconds = seconds
        self._most = most
        self._lock = threading.Lock()
        self._printers: list[tuple[float, _Printer]] = []  # in the order in which they came
        self._timer: threading.Timer | None = None

    def take(self) -> _Printer | None:
        """Take the printer come last, or answer None: so the others grow old, and end, if few are needed."""
        with self._lock:
            return self._printers.pop()[1] if self._printers else None

    def put(self, printer: _Printer) -> None:
        """Let a printer wait for a task; if as many as may do, the longest waiting one is ended."""
        with self._lock:
            self._printers.append((time.monotonic(), printer))
            beyond = self._printers.pop(0)[1] if len(self._printers) > self._most else None
            self._set_timer()
        if beyond is not None:
            beyond.kill()

    def take_all(self) -> list[_Printer]:
        """Take all of them."""
        with self._lock:
            taken = [printer for _, printer in self._printers]
            self._printers.clear()
        return taken

    def end_old(self) -> None:
        """End the printers without a task for too long."""
        with self._lock:
            self._timer = None
            before = time.monotonic() - self._seconds
            old = [printer for since, printer in self._printers if since <= before]
            self._printers = [printer for printer in self._printers if printer[0] > before]
            self._set_timer()
        for printer in old:
            printer.kill()

    def _set_timer(self) -> None:
        if self._timer is None and self._printers:
            left = self._printers[0][0] + self._seconds - time.monotonic()
            self._timer = threading.Timer(max(left, 0), _end_old, [ref(self)])
            self._timer.daemon = True
            self._timer.start()


def _end_old(of: ref[_IdlePrinters]) -> None:
    idle = of()
    if idle is not None:
        idle.end_old()


class Printers:
    """At most `limit` printers, and of one school all but one; if there is one alone, schools have it by turns.

    If several workers serve, so many print in all of them together. A caller finding none free waits `patience`
    seconds, and then gets Busy. A printer without an answer after `timeout` seconds is killed, one without a task for
    `idle` seconds is ended. `command` starts one.
    """

    def __init__(
        self,
        limit: int,
        *,
        command: Sequence[str] | None = None,
        patience: float = PATIENCE,
        timeout: float = TIMEOUT,
        idle: float = IDLE,
    ) -> None:
        self._limit = limit
        self._command = command
        self._patience = patience
        self._timeout = timeout
        self._idle_for = idle
        self._lock = threading.Lock()
        self._outcomes: Counter[str] = Counter()
        self._begin()
        _printers.add(self)

    def _begin(self) -> None:
        """Begin without any printer."""
        of_school = max(1, self._limit - 1)
        self._turns = Shares(
            of_school,
            total=self._limit,
            waiting=WAITING,
            patience=self._patience,
            name="printers",
            of_machine=True,
        )
        supervisor = machine.supervisor()
        # Of those that wait for a task each worker has its part.
        most = self._limit if supervisor is None else math.ceil(self._limit / supervisor.workers)
        self._idle = _IdlePrinters(self._idle_for, most)

    def print(self, task: Mapping[str, Any], school: Hashable = None) -> bytes:
        """Print for a school and return the file; raises Busy (no printer free in time, or too slow) and NotPrinted.

        `task` is an object of JSON: `paper` names one of `school_service.printing.papers`, the rest are its arguments.
        Parts of it may be JSON already, as orjson.Fragment.
        """
        with self._turns.of(school):
            outcome = "printed"
            try:
                return self._run(orjson.dumps(task))
            except Busy:
                outcome = "too_slow"
                raise
            except NotPrinted:
                outcome = "failed"
                raise
            finally:
                with self._lock:
                    self._outcomes[outcome] += 1

    def count_waiting(self) -> int:
        """Count the callers waiting for a printer."""
        return self._turns.count_waiting()

    def count_outcomes(self) -> dict[str, int]:
        """Tell how many files were printed, failed, or took too long."""
        with self._lock:
            return {outcome: self._outcomes[outcome] for outcome in OUTCOMES}

    def close(self) -> None:
        """End the printers without a task."""
        for printer in self._idle.take_all():
            printer.kill()

    def _run(self, task: bytes) -> bytes:
        deadline = time.monotonic() + self._timeout
        printer = self._idle.take()
        if printer is not None:
            try:
                return self._print(printer, task, deadline)
            except _PrinterEnded as end:
                # The printer may have ended while it had no task.
                _log.warning("a printer has ended, a new one prints", extra=end.details)
        try:
            return self._print(_Printer(self._command or _command()), task, deadline)
        except _PrinterEnded as end:
            _log.warning("nothing was printed", extra=end.details)
            raise NotPrinted from None

    def _print(self, printer: _Printer, task: bytes, deadline: float) -> bytes:
        stays = False
        try:
            printed, content = printer.print(task, deadline)
            stays = printer.tasks < MOST_TASKS and printer.memory <= MOST_MEMORY
        except TimeoutError:
            _log.error("a printer was killed: it took too long", extra={"seconds": self._timeout})
            raise Busy from None
        finally:
            if stays:
                self._idle.put(printer)
            else:
                printer.kill()
        if not printed:
            _log.warning("nothing was printed", extra={"printer": _end_of(content)})
            raise NotPrinted
        return content


_started: WeakSet[_Printer] = WeakSet()
_printers: WeakSet[Printers] = WeakSet()


def _leave_to_parent() -> None:
    """In a forked process, let go of all printers: they are its parent's."""
    for printer in list(_started):
        printer.kill()
    for printers in list(_printers):
        printers._begin()


os.register_at_fork(after_in_child=_leave_to_parent)


def init_app(app: Flask, limit: int) -> None:
    """Give an application its printers, at most `limit` at once."""
    app.extensions["printers"] = Printers(limit, patience=PATIENCE, timeout=TIMEOUT)


def print_paper(task: Mapping[str, Any], school: Hashable) -> bytes:
    """Print for a school, with the printers of the current application, and return the file.

    Raises Busy and NotPrinted.

    `task` is an object of JSON; its `paper` names one of `school_service.printing.papers`. Printing takes long: call
    this in `outside_transaction`, or after the transaction's end.
    """
    printers: Printers = current_app.extensions["printers"]
    return printers.print(task, school)
