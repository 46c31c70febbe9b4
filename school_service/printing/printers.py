"""Printers: processes that turn what is to be printed into a file, so many at once, each for so long at most.

Typst remembers much of what it has set, and nothing can interrupt it. A process of its own gives its memory back when
it ends, and can be killed. It inherits no environment, no file and no secret of the process that serves.
"""

from __future__ import annotations

import logging
import subprocess
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import orjson
from flask import Flask, current_app

from school_service.core.errors import Busy
from school_service.core.shares import Shares

PATIENCE = 10.0  # seconds that whoever prints waits for a printer
TIMEOUT = 30.0  # seconds that a printer has
WAITING = 500  # who wait at once

# Isolated: neither the folder it is started in nor PYTHONPATH say what is imported.
_COMMAND = (sys.executable, "-I", "-m", "school_service.printing")
_ENVIRONMENT = {"LC_ALL": "C.UTF-8"}
_MOST_LOGGED = 2000  # characters of what a printer says

_log = logging.getLogger(__name__)


class NotPrinted(Exception):
    """The printer ended without a file, as with a picture that is broken. What it said is in the log."""


class Printers:
    """At most `limit` printers at once; whoever finds none free waits `patience` seconds, and then gets Busy.

    A printer that has not ended after `timeout` seconds is killed. `command` starts one.
    """

    def __init__(
        self,
        limit: int,
        *,
        command: Sequence[str] = _COMMAND,
        patience: float = PATIENCE,
        timeout: float = TIMEOUT,
    ) -> None:
        self._turns = Shares(limit, waiting=WAITING, patience=patience)
        self._command = command
        self._timeout = timeout

    def print(self, task: Mapping[str, Any]) -> bytes:
        """Print and return the file; raises Busy (no printer free in time, or too slow) and NotPrinted.

        `task` is an object of JSON: `paper` names one of `school_service.printing.papers`, the rest is what that takes.
        Parts of it may be JSON already, as orjson.Fragment.
        """
        with self._turns.of("printer"):
            return self._run(orjson.dumps(task))

    def _run(self, task: bytes) -> bytes:
        # In a session of its own: Ctrl-C in a terminal is for the process that serves, which ends what is under way.
        with subprocess.Popen(  # noqa: S603 the command is fixed
            self._command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=_ENVIRONMENT,
            cwd="/",
            start_new_session=True,
        ) as printer:
            try:
                file, said = printer.communicate(task, timeout=self._timeout)
            except subprocess.TimeoutExpired:
                _log.error("a printer was killed: it took too long", extra={"seconds": self._timeout})
                raise Busy from None
            finally:
                printer.kill()  # nothing, where it has ended
        if printer.returncode != 0 or not file:
            words = said.decode(errors="replace").strip()[-_MOST_LOGGED:]
            _log.warning("nothing was printed", extra={"exit_code": printer.returncode, "printer": words})
            raise NotPrinted
        return file


def init_app(app: Flask, limit: int) -> None:
    """Give an application its printers, at most `limit` at once."""
    app.extensions["printers"] = Printers(limit)


def print_paper(task: Mapping[str, Any]) -> bytes:
    """Print with the printers of the current application, as `Printers.print` does.

    It takes long: call it in `outside_transaction`, or after the transaction's end.
    """
    printers: Printers = current_app.extensions["printers"]
    return printers.print(task)
