"""The supervisor of `serve --workers N`: it starts workers, starts dead ones anew, reloads and stops them.

Each worker is a process with an interpreter of its own, and takes connections from the one listener of all. So a
connection not yet taken is lost with no worker. A worker is started as a new program, not forked: packages installed
meanwhile, and the present contents of files, such as a key, count for it.

Between a worker and the supervisor there is a pair of sockets, one of them the worker's: on it the worker announces its
service, and hands over connections for the common state of all workers; at its end either side knows of the other's.
All of this is one thread, and it never waits for anything else.
"""

from __future__ import annotations

import logging
import os
import selectors
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

from school_service.config import Settings
from school_service.core.machine import CONNECTION
from school_service.serving.admission import raise_file_limit
from school_service.serving.common_state import CommonState, WorkerConnection
from school_service.serving.listening import base_address
from school_service.serving.parts import Part
from school_service.serving.server import SHUTDOWN_TIMEOUT
from school_service.serving.worker import LIVES, METRICS, SERVES, STOP
from tenants.signals import handled, to_heed

if TYPE_CHECKING:
    from school_service.serving.merged_metrics import MergedMetrics

START_TIMEOUT = 60.0  # seconds that a worker has until it serves
SILENT = 9.0  # seconds after which a worker without a sign of life is killed
KILL_AFTER = SHUTDOWN_TIMEOUT + 5.0  # seconds after which a worker that was told to stop is killed
END_TIMEOUT = 10.0  # seconds that a process has to end once its socket has
STEADY = 30.0  # seconds after which a worker that dies is started anew at once
LONGEST_PAUSE = 30.0  # seconds between two attempts to start a worker that dies again and again
LOOK_INTERVAL = 0.5  # seconds between two looks at deadlines

_log = logging.getLogger(__name__)


@dataclass(eq=False)
class WorkerProcess:
    """A worker's process; `number` is its place among the workers, `generation` counts the reloads before it."""

    number: int
    generation: int
    process: subprocess.Popen[bytes]
    control: socket.socket
    started: float = field(default_factory=time.monotonic)
    serves: bool = False
    told_to_stop: float | None = None
    silence: float | None = (
        None  # seconds since its last sign of life; a worker of an earlier release gives none
    )
    hangs: bool = False

    def stop(self) -> None:
        """Tell it to end once its requests have."""
        if self.told_to_stop is None:
            self.told_to_stop = time.monotonic()
            try:
                self.control.send(STOP)
            except OSError as error:
                _log.debug("a worker has ended already", extra={"reason": error.strerror})

    def is_silent(self, seconds: float) -> bool:
        """Add so many seconds without a sign of life; tells whether they are too many.

        Time in which the supervisor itself did not run does not count, since others may not have run either.
        """
        if self.silence is None:
            return False
        self.silence += min(seconds, 2 * LOOK_INTERVAL)
        return self.silence > SILENT

    def kill(self) -> None:
        """End it at once."""
        self.process.kill()


class Supervisor:
    """So many workers on one listener, each started by the command made by `command` of its number and two sockets.

    `command` gets the worker's number (from 1), and the numbers of its control socket and the listener. `announce` is
    called once all serve.
    """

    def __init__(
        self,
        listener: socket.socket,
        count: int,
        command: Callable[[int, int, int], Sequence[str]],
        environment: dict[str, str],
        metrics: MergedMetrics | None,
        announce: Callable[[], None],
    ) -> None:
        self._listener = listener
        self._count = count
        self._command, self._environment = command, environment
        self._metrics = metrics
        self._announce = announce
        self._state = CommonState()
        self._selector = selectors.DefaultSelector()
        self._workers: list[WorkerProcess] = []
        self._generation = 0
        self._oldest_wanted = 0  # generation; workers of earlier ones are replaced
        self._has_served = self._announced = self._stopping = False
        self._signalled: set[int] = set()
        self._failures = [0] * count  # of each number, one after the other
        self._start_at = [0.0] * count

    def run(self) -> None:
        """Serve until SIGTERM or SIGINT; SIGHUP replaces the workers, one after the other.

        Ends as SystemExit(1) if the first worker can't serve (its own message says why), and at a second signal.
        """
        with self._signals() as woken:
            self._selector.register(woken, selectors.EVENT_READ, lambda: _emptied(woken))
            while not (self._stopping and not self._workers):
                self._heed_signals()
                if not self._stopping:
                    self._look()
                self._end_late()
                before = time.monotonic()
                for key, _ in self._selector.select(LOOK_INTERVAL):
                    key.data()
                self._end_silent(time.monotonic() - before)
        if not self._has_served:
            raise SystemExit(1)

    @contextmanager
    def _signals(self) -> Iterator[socket.socket]:
        wakes, woken = socket.socketpair()
        wakes.setblocking(False)
        woken.setblocking(False)
        try:
            with handled(to_heed(), self._on_signal), wakes, woken:
                previous = signal.set_wakeup_fd(wakes.fileno(), warn_on_full_buffer=False)
                try:
                    yield woken
                finally:
                    signal.set_wakeup_fd(previous)
        finally:
            for worker in self._workers:
                worker.kill()

    def _on_signal(self, number: int, _frame: FrameType | None) -> None:
        if self._stopping and number != signal.SIGHUP:
            raise SystemExit(1)
        self._signalled.add(number)

    def _heed_signals(self) -> None:
        signalled, self._signalled = self._signalled, set()
        if signalled & {signal.SIGTERM, signal.SIGINT} and not self._stopping:
            self._stop()
        elif signal.SIGHUP in signalled and self._has_served and not self._stopping:
            _log.info("reloading", extra={"workers": self._count})
            self._generation += 1
            self._oldest_wanted = self._generation
            self._start_at = [0.0] * self._count

    def _stop(self) -> None:
        self._stopping = True
        _log.info("stopping")
        # A worker that does not serve yet would keep the listener open, and nobody would take its connections.
        for worker in self._workers:
            if not worker.serves:
                worker.kill()
                worker.process.wait()
        self._listener.close()
        for worker in self._workers:
            worker.stop()

    def _look(self) -> None:
        """Start workers if some are missing, and one in place of one of an earlier generation."""
        starting = [worker for worker in self._workers if not worker.serves]
        if starting and not self._has_served:
            return  # the others follow once the first serves: faults are told once
        now = time.monotonic()
        for number in range(1, self._count + 1):
            there = [
                worker for worker in self._workers if worker.number == number and worker.told_to_stop is None
            ]
            if not there:
                if now >= self._start_at[number - 1]:
                    self._start(number)
                    if not self._has_served:
                        return
            elif (
                there[0].generation < self._oldest_wanted
                and not starting
                # A worker that was replaced ends before the next is.
                and not any(worker.told_to_stop is not None for worker in self._workers)
            ):
                self._start(number)
                return

    def _start(self, number: int) -> None:
        ours, theirs = socket.socketpair()
        with theirs:
            process = subprocess.Popen(  # noqa: S603 the command is this program
                self._command(number, theirs.fileno(), self._listener.fileno()),
                pass_fds=[theirs.fileno(), self._listener.fileno()],
                env=self._environment,
                # Ctrl-C in a terminal is for the supervisor, which tells the workers.
                start_new_session=True,
            )
        ours.setblocking(False)
        worker = WorkerProcess(number, self._generation, process, ours)
        self._workers.append(worker)
        self._selector.register(ours, selectors.EVENT_READ, lambda: self._hear(worker))

    def _hear(self, worker: WorkerProcess) -> None:
        """Take the words of a worker: its readiness to serve, a connection, its end."""
        try:
            word, descriptors, _, _ = socket.recv_fds(worker.control, 1, 1)
        except BlockingIOError:
            return
        except OSError:
            word, descriptors = b"", []
        if word == CONNECTION:
            self._connect(socket.socket(fileno=descriptors[0]))
        elif word == LIVES:
            worker.silence = 0.0
        elif word == METRICS:
            connection = socket.socket(fileno=descriptors[0])
            if self._metrics is None:
                connection.close()
            else:
                self._metrics.add(worker.process.pid, connection)
        elif word == SERVES:
            self._serves(worker)
        elif not word:
            self._ended(worker)

    def _connect(self, connection: socket.socket) -> None:
        client = WorkerConnection(connection)

        def hear() -> None:
            if not self._state.read(client):
                self._selector.unregister(connection)

        self._selector.register(connection, selectors.EVENT_READ, hear)

    def _serves(self, worker: WorkerProcess) -> None:
        worker.serves = self._has_served = True
        _log.info("worker serves", extra={"worker": worker.number, "pid": worker.process.pid})
        for other in self._workers:
            if other is not worker and other.number == worker.number:
                other.stop()
        if not self._announced and sum(worker.serves for worker in self._workers) == self._count:
            self._announced = True
            self._announce()
        elif self._oldest_wanted and self._is_reloaded():
            _log.info("reloaded", extra={"workers": self._count})
            self._oldest_wanted = 0

    def _is_reloaded(self) -> bool:
        newest = [
            worker for worker in self._workers if worker.serves and worker.generation >= self._oldest_wanted
        ]
        return len(newest) == self._count

    def _ended(self, worker: WorkerProcess) -> None:
        self._selector.unregister(worker.control)
        worker.control.close()
        self._workers.remove(worker)
        try:
            status = worker.process.wait(END_TIMEOUT)
        except subprocess.TimeoutExpired:
            worker.kill()
            status = worker.process.wait()
        if self._metrics is not None:
            died = worker.told_to_stop is None
            self._metrics.remove(worker.process.pid, died=died, hung=worker.hangs)
        if self._stopping or worker.told_to_stop is not None:
            return
        if not self._has_served:
            self._stopping = True  # it has said why
            return
        details = {"worker": worker.number, "pid": worker.process.pid, "exit_code": status}
        if not worker.serves and self._replaces(worker):
            _log.error("the reload has failed: the workers go on as they are", extra=details)
            # Those that were replaced stay; the others are left alone until the next SIGHUP.
            self._oldest_wanted = 0
            return
        self._pause(worker)
        _log.error("a worker has ended, and is started anew", extra=details)

    def _replaces(self, worker: WorkerProcess) -> bool:
        return any(other.number == worker.number and other.told_to_stop is None for other in self._workers)

    def _pause(self, worker: WorkerProcess) -> None:
        """Let a worker dying again and again be started ever more seldom: at once, after 1, 2, 4 … seconds."""
        now, index = time.monotonic(), worker.number - 1
        if worker.serves and now - worker.started >= STEADY:
            self._failures[index] = 0
        failures = self._failures[index]
        self._failures[index] += 1
        self._start_at[index] = now + (min(LONGEST_PAUSE, 2.0 ** (failures - 1)) if failures else 0.0)

    def _end_late(self) -> None:
        now = time.monotonic()
        for worker in self._workers:
            if worker.told_to_stop is not None and now - worker.told_to_stop > KILL_AFTER:
                _log.warning("a worker did not stop, and is killed", extra={"worker": worker.number})
                worker.kill()
            elif not worker.serves and now - worker.started > START_TIMEOUT:
                _log.error("a worker did not start in time", extra={"worker": worker.number})
                worker.kill()

    def _end_silent(self, seconds: float) -> None:
        """Kill the workers that hang; called once the signs that came in so many seconds have been read."""
        for worker in self._workers:
            if worker.is_silent(seconds) and not worker.hangs:
                worker.hangs = True
                details = {"worker": worker.number, "pid": worker.process.pid}
                _log.error("a worker gives no sign of life, and is killed", extra=details)
                worker.kill()


def _emptied(woken: socket.socket) -> None:
    """Read the bytes written by signals; their handlers have run."""
    woken.recv(4096)


def count_processors() -> int:
    """Count the processors for use by this process, by its affinity and, on Linux, the quota of its control group."""
    count = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    try:
        with open("/sys/fs/cgroup/cpu.max", encoding="ascii") as file:
            quota, period = file.read().split()
    except (OSError, ValueError):
        return count
    return count if quota == "max" else max(1, min(count, -(-int(quota) // int(period))))


def supervise(
    listener: socket.socket, settings: Settings, workers: int, threads: int | None, folder: Path | None
) -> None:
    """Serve with so many workers until SIGTERM or SIGINT; `folder` is their data folder, if any.

    Raises ServingError if the port of the metrics is taken.
    """
    part = Part.of(settings, os.environ, workers, threads)
    environment = {**os.environ, **part.environment()}
    python = name_python()
    of_folder = () if folder is None else ("--data-dir", str(folder))

    def command(number: int, control: int, listening: int) -> list[str]:
        sockets = map(str, (number, control, listening))
        of_serve = ("--workers", str(workers), "--threads", str(part.threads), "--worker", *sockets)
        # Nothing is imported from the working directory.
        return [python, "-P", "-m", "school_service", "serve", *of_folder, *of_serve]

    def announce() -> None:
        details = {"address": base_address(listener), "workers": workers, **_of_each(part)}
        _log.info("serving", extra=details)

    raise_file_limit()
    with _metrics(settings, workers) as metrics:
        Supervisor(listener, workers, command, environment, metrics, announce).run()


def name_python() -> str:
    """Name this Python by the folder of the command as it was called.

    Where that leads through a link to an installation, so does the start of each worker: a reload follows the link.
    """
    python = Path(sys.executable)
    named = Path(sys.argv[0]).absolute().with_name(python.name)
    return str(named if named.exists() and named.parent.samefile(python.parent) else python)


def _of_each(part: Part) -> dict[str, int]:
    return {f"{name}_of_each": value for name, value in vars(part).items()}


@contextmanager
def _metrics(settings: Settings, workers: int) -> Iterator[MergedMetrics | None]:
    """Serve the metrics of the workers while the block runs, if METRICS_PORT is set."""
    if settings.metrics_port is None:
        yield None
        return
    # Imported here: most installations do without.
    from school_service.serving.merged_metrics import MergedMetrics
    from school_service.serving.scraping import serve_metrics

    metrics = MergedMetrics(workers)
    with serve_metrics(metrics, settings.metrics_address, settings.metrics_port):
        yield metrics
