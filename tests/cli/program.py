"""The real program, in processes of its own."""

from __future__ import annotations

import atexit
import json
import os
import pty
import re
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from tempfile import TemporaryDirectory, TemporaryFile
from typing import IO, Any, Protocol, TypeVar
from urllib.parse import urlsplit

import psutil
import pytest
import urllib3

from tests.cli import preloaded
from tests.cli.preloaded import STATUS_SIZE
from tests.client import Document
from tests.postgres import folder_for_clusters

ROOT = Path(__file__).parents[2]
PROGRAM = (sys.executable, "-m", "school_service")
DEADLINE = 180  # seconds, on a machine with much else to do

# A module that a verb forgets to import is there in an interpreter with all imports, and missing in its own.
FRESH = bool(os.environ.get("TEST_FRESH_INTERPRETERS"))
in_this_process = pytest.mark.skipif(FRESH, reason="changes the program, in the process of the tests")

Found = TypeVar("Found")


def environment(**settings: str) -> dict[str, str]:
    """Make an environment with these settings and nothing of ours around us."""
    return {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), "PYTHONWARNINGS": "error", **settings}


class Process(Protocol):
    """The members of a process that tests use, with an interpreter of its own or without."""

    pid: int

    def poll(self) -> int | None: ...

    def wait(self, timeout: float | None = None) -> int: ...

    def send_signal(self, sig: int) -> None: ...

    def kill(self) -> None: ...


class Forked:
    """A process that an interpreter with the program imported has forked."""

    def __init__(self, pid: int, end: int) -> None:
        self.pid = pid
        self._end = end  # the pipe on which its end is reported
        self._status: int | None = None

    def poll(self) -> int | None:
        """Tell the exit status, or minus the signal that killed it; None while it runs."""
        return self._wait(0)

    def wait(self, timeout: float | None = None) -> int:
        """Wait for the exit status."""
        status = self._wait(timeout)
        if status is None:
            raise subprocess.TimeoutExpired(str(self.pid), timeout or 0)
        return status

    def _wait(self, timeout: float | None) -> int | None:
        if self._status is None and select.select([self._end], [], [], timeout)[0]:
            reported = os.read(self._end, STATUS_SIZE)
            os.close(self._end)
            assert reported, "the interpreter that forked it is gone"
            self._status = os.waitstatus_to_exitcode(int.from_bytes(reported, "little"))
        return self._status

    def send_signal(self, sig: int) -> None:
        """Send it a signal, if it still runs."""
        if self.poll() is None:
            os.kill(self.pid, sig)

    def kill(self) -> None:
        """Kill it, if it still runs."""
        self.send_signal(signal.SIGKILL)


class Interpreter:
    """An interpreter that imports the program when it is first asked, and forks; of any number of processes."""

    def __init__(self, path: str) -> None:
        """Start it with a PYTHONPATH."""
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
            listener.bind("")  # the system makes a name
            listener.listen()
            self.address = listener.getsockname()
            self._process = subprocess.Popen(
                [sys.executable, preloaded.__file__, str(listener.fileno())],
                env=environment(PYTHONPATH=path),
                cwd="/",
                pass_fds=[listener.fileno()],
                stdin=subprocess.PIPE,
            )

    def end(self) -> None:
        """End the interpreter."""
        self._process.communicate(timeout=DEADLINE)


class Preloaded:
    """A connection to an interpreter with the program imported."""

    def __init__(self, address: bytes) -> None:
        """Connect."""
        self._requests = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._requests.connect(address)
        atexit.register(self._requests.close)

    def start(
        self,
        arguments: Sequence[str],
        cwd: Path,
        settings: Mapping[str, str],
        *standard: IO[bytes],
        script: str = "",
    ) -> Forked:
        """Start the program with its standard input, output and error, after a script."""
        ours, theirs = os.pipe()
        there = {"cwd": str(cwd), "environment": environment(**settings)}
        request = {"arguments": arguments, "script": script, **there}
        try:
            descriptors = [*(file.fileno() for file in standard), theirs]
            socket.send_fds(self._requests, [json.dumps(request).encode()], descriptors)
        finally:
            os.close(theirs)
        answer = self._requests.recv(100)
        assert answer, "the interpreter with the program imported has ended"
        return Forked(json.loads(answer), ours)


# The addresses of interpreters that other processes started, by PYTHONPATH.
addresses_of_interpreters: dict[str, bytes] = {}


@cache
def _preloaded(path: str) -> Preloaded:
    if path not in addresses_of_interpreters:
        interpreter = Interpreter(path)
        atexit.register(interpreter.end)
        addresses_of_interpreters[path] = interpreter.address
    return Preloaded(addresses_of_interpreters[path])


def run(
    *arguments: str,
    cwd: Path,
    settings: Mapping[str, str] | None = None,
    command: tuple[str, ...] | None = None,
    stdin: str = "",
    script: str = "",
    **options: Any,
) -> subprocess.CompletedProcess[str]:
    """Run the program to its end, after a script that changes it; with a `command` or options, as `subprocess` does."""
    if command is None and not options and (script or not FRESH):
        with TemporaryFile() as given, TemporaryFile() as out, TemporaryFile() as err:
            given.write(stdin.encode())
            given.seek(0)
            process = _start(arguments, cwd, settings or {}, given, out, err, script=script)
            try:
                process.wait(DEADLINE)
            finally:
                process.kill()
            out.seek(0)
            err.seek(0)
            return subprocess.CompletedProcess(
                arguments, process.wait(), out.read().decode(), err.read().decode()
            )
    return subprocess.run(
        [*(command or PROGRAM), *arguments],
        cwd=cwd,
        env=environment(**settings or {}),
        input=stdin,
        capture_output=True,
        encoding="utf-8",
        timeout=DEADLINE,
        check=False,
        **options,
    )


def wait_for(find: Callable[[], Found | None], what: str) -> Found:
    """Wait until something is found."""
    deadline = time.monotonic() + DEADLINE
    while time.monotonic() < deadline:
        value = find()
        if value:
            return value
        time.sleep(0.02)
    raise AssertionError(f"{what}: not within {DEADLINE} s")


@dataclass
class Running:
    """A program that runs on, and its output."""

    process: Process
    out: Path
    err: Path
    base_url: str = ""

    @property
    def printed(self) -> str:
        return self.out.read_text(encoding="utf-8")

    @property
    def log(self) -> list[dict[str, Any]]:
        written = self.err.read_text(encoding="utf-8")
        # A line that is being written at this moment has no end yet.
        whole = written[: written.rfind("\n") + 1]
        return [json.loads(line) for line in whole.splitlines() if line.startswith("{")]

    def wait_for(self, find: Callable[[], Found | None], what: str) -> Found:
        def look() -> Found | None:
            assert self.process.poll() is None, f"ended early: {self.err.read_text()}"
            return find()

        return wait_for(look, what)

    def wait_for_log(self, message: str) -> dict[str, Any]:
        return self.wait_for(
            lambda: next((line for line in self.log if line["message"] == message), None), message
        )

    def end(self, number: int = signal.SIGTERM) -> int:
        """Signal the program, and wait for its exit status."""
        self.process.send_signal(number)
        return self.process.wait(DEADLINE)

    def request(self, method: str, path: str, *, token: str = "", school: str = "", body: Any = None) -> Any:
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        if school:
            headers["X-SCHOOL-ID"] = school
        return self.send(method, path, headers=headers, json=body)

    def send(self, method: str, path: str, **options: Any) -> Any:
        """Send a request, and check its answer against the document that the service gives out."""
        response = urllib3.request(method, self.base_url + path, timeout=DEADLINE, **options)
        if document := self.document:
            address = urlsplit(path).path
            document.check(
                method, address, response.status, response.headers.get("Content-Type", ""), response.data
            )
        return response

    @cached_property
    def document(self) -> Document | None:
        """The document of the service; None where it gives none out."""
        answer = urllib3.request("GET", f"{self.base_url}/openapi.json", timeout=DEADLINE)
        return Document(spec=answer.json()) if answer.status == 200 else None

    def ok(self, method: str, path: str, **options: Any) -> Any:
        response = self.request(method, path, **options)
        assert response.status == 200, (response.data, self.err.read_text()[-3000:])
        return response.json()

    def client_token(self, client_id: str, secret: str) -> str:
        credentials = {
            "client_id": client_id,
            "client_secret": secret,
            "audience": "school-service",
            "grant_type": "client_credentials",
        }
        return self.ok("POST", "/auth/oauth/token", body=credentials)["access_token"]


def _start(
    arguments: Sequence[str],
    cwd: Path,
    settings: Mapping[str, str],
    *standard: IO[bytes],
    command: tuple[str, ...] | None = None,
    script: str = "",
    options: Mapping[str, Any] | None = None,
) -> Process:
    """Start the program with its standard input, output and error, after a script that changes it."""
    if command is None and not options and not FRESH:
        interpreter = _preloaded(environment(**settings)["PYTHONPATH"])
        return interpreter.start(arguments, cwd, settings, *standard, script=script)
    if script:
        started = "from school_service.cli import program; program.main()"
        command = (sys.executable, "-c", f"{script}\n{started}")
    stdin, stdout, stderr = standard
    return subprocess.Popen(
        [*(command or PROGRAM), *arguments],
        cwd=cwd,
        env=environment(**settings),
        stdin=stdin,
        stdout=stdout,
        stderr=stderr,
        **(options or {}),
    )


def run_on_terminal(
    *arguments: str, cwd: Path, settings: Mapping[str, str], script: str = ""
) -> tuple[str, str]:
    """Run the program, whose errors a terminal shows, to its good end; gives its output, and the terminal's text."""
    terminal, end_of_program = pty.openpty()
    shown = b""
    with TemporaryFile() as out, open(os.devnull, "rb") as stdin:
        with os.fdopen(end_of_program, "wb") as err:
            process = _start(arguments, cwd, {**settings, "TERM": "xterm"}, stdin, out, err, script=script)
        try:
            # Once the program has ended, Linux makes an error of reading the terminal.
            with suppress(OSError):
                while chunk := os.read(terminal, 4096):
                    shown += chunk
            assert process.wait(DEADLINE) == 0, shown
        finally:
            os.close(terminal)
            process.kill()
        out.seek(0)
        return out.read().decode(), shown.decode()


@contextmanager
def running(
    *arguments: str,
    cwd: Path,
    settings: Mapping[str, str] | None = None,
    command: tuple[str, ...] | None = None,
    script: str = "",
    **options: Any,
) -> Iterator[Running]:
    """Start the program as `run` does, after a script; nothing of it is left at the end, in any event."""
    number = len(list(cwd.glob("*.out")))
    out, err = cwd / f"{number}.out", cwd / f"{number}.err"
    settings = settings or {}
    with out.open("wb") as stdout, err.open("wb") as stderr, open(os.devnull, "rb") as stdin:
        standard = (stdin, stdout, stderr)
        process = _start(arguments, cwd, settings, *standard, command=command, script=script, options=options)
    try:
        yield Running(process, out, err)
    finally:
        if process.poll() is None:
            process.kill()
            process.wait(DEADLINE)


@contextmanager
def serving(*arguments: str, cwd: Path, settings: Mapping[str, str], **options: Any) -> Iterator[Running]:
    """Serve on a free port, and wait until it does."""
    with running("serve", "--port", "0", *arguments, cwd=cwd, settings=settings, **options) as service:
        service.base_url = service.wait_for_log("serving")["address"]
        yield service


@contextmanager
def serving_with_gunicorn(*, cwd: Path, settings: Mapping[str, str]) -> Iterator[Running]:
    """Serve on a free port with gunicorn as it is documented, and wait until it does."""
    config = str(ROOT / "docs" / "servers" / "gunicorn.conf.py")
    # A worker that loads the application slowly, on a machine with much else to do, is not killed for it.
    options = ("--config", config, "--timeout", str(DEADLINE), "--bind", "127.0.0.1:0")
    command = (sys.executable, "-m", "gunicorn", *options, "wsgi:app")
    with running(cwd=cwd, settings=settings, command=command) as service:
        match = service.wait_for(
            lambda: re.search(r"Listening at: (http://\S+)", service.err.read_text(encoding="utf-8")),
            "gunicorn",
        )
        service.base_url = match[1]
        service.wait_for(
            lambda: "Booting worker" in service.err.read_text(encoding="utf-8") or None, "the worker"
        )
        # It loads the application now, and then answers clients that have connected meanwhile.
        assert service.send("GET", "/health/live").status == 200
        yield service


def postgres_of(folder: Path) -> list[psutil.Process]:
    """Find the PostgreSQL processes of a data folder."""
    processes = []
    for process in psutil.process_iter():
        try:
            if process.name() == "postgres" and Path(process.cwd()) == folder / "postgres":
                processes.append(process)
        except psutil.Error:
            continue
    return processes


@contextmanager
def working_directory():
    """Make a working directory; programs left running on its data folder in the end are killed.

    Not one of pytest's own: those are closed to others, and closed again whenever other tests begin.
    """
    with TemporaryDirectory(prefix="school-tests-", dir=folder_for_clusters()) as made:
        cwd = Path(made).resolve()
        cwd.chmod(0o755)
        yield cwd
        left = postgres_of(cwd / "school-data")
        for process in left:
            # With its parent a process of PostgreSQL ends by itself.
            with suppress(psutil.NoSuchProcess):
                process.kill()
        psutil.wait_procs(left, DEADLINE)
