"""A PostgreSQL that hangs: requests end, the process is alive, and all goes on when PostgreSQL does."""

from __future__ import annotations

import json
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest
import urllib3

from school_service.auth.signing_key import SigningKey
from tenants.connections.engines import CONNECT_TIMEOUT, SILENCE
from tests.cli.program import postgres_of, run, serving, working_directory

pytestmark = pytest.mark.program

STATEMENT_TIMEOUT = 1
# A request waits for a statement, and where its connection is gone for another connection.
DEADLINE = STATEMENT_TIMEOUT + SILENCE + CONNECT_TIMEOUT


@pytest.fixture
def cwd():
    """A folder where nothing has been yet, and which PostgreSQL's own user may enter."""
    with working_directory() as cwd:
        yield cwd


@contextmanager
def stopped(folder):
    """Let every process of a PostgreSQL stand still."""
    processes = postgres_of(folder)
    assert processes
    for process in processes:
        process.send_signal(signal.SIGSTOP)
    try:
        yield
    finally:
        for process in processes:
            process.send_signal(signal.SIGCONT)


@pytest.mark.release
def test_requests_end_while_postgresql_hangs_and_all_recovers(cwd):
    settings = {"SIGNING_KEY": SigningKey.generate().to_pem(), "STATEMENT_TIMEOUT": str(STATEMENT_TIMEOUT)}
    assert run("tenants", "init", cwd=cwd, settings=settings).returncode == 0
    school = json.loads(
        run("tenants", "create", "Queen's College", "--json", cwd=cwd, settings=settings).stdout
    )["id"]
    secret = json.loads(
        run(
            "clients", "create", "anyone", "--all-schools", "--all-permissions", "--json",
            cwd=cwd, settings=settings,
        ).stdout
    )["client_secret"]  # fmt: skip

    with serving("--threads", "4", cwd=cwd, settings=settings) as service:
        token = service.client_token("anyone", secret)

        headers = {"Authorization": f"Bearer {token}", "X-SCHOOL-ID": school}
        http = urllib3.PoolManager(maxsize=20, retries=False)

        def ask(path):
            begun = time.monotonic()
            answer = http.request("GET", service.base_url + path, headers=headers)
            return answer.status, answer.headers.get("Retry-After"), time.monotonic() - begun

        def write(number):
            room = {"name": f"Room {number}", "level": "Junior"}
            return http.request("POST", service.base_url + "/classrooms", headers=headers, json=room).status

        assert ask("/classrooms")[0] == 200
        with stopped(cwd / "school-data"), ThreadPoolExecutor(12) as clients:
            asked = [clients.submit(ask, "/classrooms") for _ in range(8)]
            written = [clients.submit(write, number) for number in range(2)]
            health = clients.submit(ask, "/health")
            ready = clients.submit(ask, "/health/ready")
            for _ in range(5):
                status, _, seconds = ask("/health/live")
                assert (status, seconds < DEADLINE / 2) == (200, True)
            for future in asked:
                status, retry_after, seconds = future.result()
                assert (status, int(retry_after) > 0) == (503, True)
                assert seconds < DEADLINE + 2
            assert [future.result() for future in written] == [503, 503]
            # Known to be silent: one thread tries to connect, the others don't wait for it.
            tried = sorted(seconds for *_, seconds in clients.map(ask, ["/classrooms"] * 8))
            assert tried[3] < CONNECT_TIMEOUT / 2
            # One of the two may have been given the finding of the check before.
            assert {health.result()[0], ready.result()[0]} <= {200, 503}
            assert ask("/health/ready")[0] == 503
            assert health.result()[2] < DEADLINE
            assert ready.result()[2] < DEADLINE

        for path in ("/health", "/health/ready"):
            assert service.wait_for(lambda path=path: ask(path)[0] == 200, path)
        with ThreadPoolExecutor(8) as clients:
            assert {status for status, *_ in clients.map(ask, ["/classrooms"] * 24)} == {200}
        assert [write("after"), write("after")] == [200, 409]
        http.clear()
        assert service.end() == 0
