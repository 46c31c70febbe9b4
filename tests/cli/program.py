"""The real program, in processes of its own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

import psutil
import urllib3

from tests.client import Document

ROOT = Path(__file__).parents[2]
PROGRAM = (sys.executable, "-m", "school_service")
DEADLINE = 60  # seconds

Found = TypeVar("Found")


def environment(**settings: str) -> dict[str, str]:
    """Make an environment with these settings and nothing of ours around us."""
    return {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), "PYTHONWARNINGS": "error", **settings}


def run(
    *arguments: str,
    cwd: Path,
    settings: Mapping[str, str] | None = None,
    command: tuple[str, ...] = PROGRAM,
    stdin: str = "",
    **options: Any,
) -> subprocess.CompletedProcess[str]:
    """Run the program to its end."""
    return subprocess.run(
        [*command, *arguments],
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
        found = find()
        if found:
            return found
        time.sleep(0.02)
    raise AssertionError(f"{what}: not within {DEADLINE} s")


@dataclass
class Running:
    """A program that runs on, and what it prints."""

    process: subprocess.Popen[bytes]
    out: Path
    err: Path
    base_url: str = ""

    @property
    def printed(self) -> str:
        return self.out.read_text(encoding="utf-8")

    @property
    def log(self) -> list[dict[str, Any]]:
        return [
            json.loads(line)
            for line in self.err.read_text(encoding="utf-8").splitlines()
            if line.startswith("{")
        ]

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
        """Send a request, and hold its answer against the document that the service gives out."""
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
        asked = {
            "client_id": client_id,
            "client_secret": secret,
            "audience": "school-service",
            "grant_type": "client_credentials",
        }
        return self.ok("POST", "/auth/oauth/token", body=asked)["access_token"]


@contextmanager
def running(
    *arguments: str,
    cwd: Path,
    settings: Mapping[str, str] | None = None,
    command: tuple[str, ...] = PROGRAM,
    **options: Any,
) -> Iterator[Running]:
    """Start the program; whatever happens, nothing of it is left at the end."""
    number = len(list(cwd.glob("*.out")))
    out, err = cwd / f"{number}.out", cwd / f"{number}.err"
    with out.open("wb") as stdout, err.open("wb") as stderr:
        process = subprocess.Popen(
            [*command, *arguments],
            cwd=cwd,
            env=environment(**settings or {}),
            stdin=subprocess.DEVNULL,
            stdout=stdout,
            stderr=stderr,
            **options,
        )
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


def postgres_of(folder: Path) -> list[psutil.Process]:
    """Find the PostgreSQL processes of a data folder."""
    found = []
    for process in psutil.process_iter():
        try:
            if process.name() == "postgres" and Path(process.cwd()) == folder / "postgres":
                found.append(process)
        except psutil.Error:
            continue
    return found
