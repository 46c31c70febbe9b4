"""The way to the registry: few threads wait for it, and none while it is known to be silent."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from threading import Event, Semaphore
from types import SimpleNamespace

import pytest
from sqlalchemy.exc import OperationalError

from tenants.connections import registry
from tenants.connections.deadline import NoAnswer
from tenants.connections.registry import RegistryConnections
from tenants.exceptions import RegistrySilent

AT_ONCE = 2


class Server:
    """Stands for the registry's engine: it answers, hangs, or lets a statement end for its deadline."""

    def __init__(self):
        self.hangs = False
        self.asked = 0
        self.begun = Semaphore(0)
        self.goes_on = Event()
        self.fails: Exception | None = None

    @contextmanager
    def connect(self):
        self.asked += 1
        self.begun.release()
        if self.hangs:
            assert self.goes_on.wait(60)
        if self.fails is not None:
            raise self.fails
        yield self


@pytest.fixture
def server():
    server = Server()
    yield server
    server.goes_on.set()


@pytest.fixture
def connections(server):
    return RegistryConnections(lambda: server, AT_ONCE)


@pytest.fixture
def threads(server):
    with ThreadPoolExecutor(12) as threads:
        yield threads
        server.goes_on.set()


def no_answer():
    return OperationalError("SELECT 1", {}, NoAnswer("the database server has not answered in time"))


def ask(connections):
    with connections.connect():
        return True


def hang(server, connections, threads):
    """Let as many threads wait for the registry as may ask it at once."""
    server.hangs = True
    asking = [threads.submit(ask, connections) for _ in range(AT_ONCE)]
    for _ in asking:
        assert server.begun.acquire(timeout=60)
    return asking


def test_few_requests_ask_the_registry_at_once_and_the_others_come_after_them(
    server, connections, threads, monkeypatch
):
    monkeypatch.setattr(registry, "PATIENCE", 3600)
    first = hang(server, connections, threads)
    others = [threads.submit(ask, connections) for _ in range(2 * AT_ONCE)]
    assert server.asked == AT_ONCE

    server.hangs = False
    server.goes_on.set()

    assert all(future.result(60) for future in [*first, *others[:AT_ONCE]])
    assert not connections.silent


def test_after_a_wait_in_vain_the_registry_is_silent_and_nobody_waits(
    server, connections, threads, monkeypatch
):
    monkeypatch.setattr(registry, "PATIENCE", 0.05)
    monkeypatch.setattr(registry, "RETRY", 3600)
    under_way = hang(server, connections, threads)
    waiting = [threads.submit(ask, connections) for _ in range(4)]

    for future in waiting:
        with pytest.raises(RegistrySilent):
            future.result(60)
    assert connections.silent
    for _ in range(20):
        with pytest.raises(RegistrySilent):
            ask(connections)
    assert server.asked == AT_ONCE

    # It goes on: requests that had their turn are answered, and all are let in again.
    server.hangs = False
    server.goes_on.set()
    assert all(future.result(60) for future in under_way)
    assert ask(connections)


def test_more_than_a_share_of_threads_never_wait_long(server, connections, threads, monkeypatch):
    monkeypatch.setattr(registry, "BRIEFLY", 0.0)
    monkeypatch.setattr(registry, "PATIENCE", 3600)
    hang(server, connections, threads)
    with connections._turn:
        connections._waiting = AT_ONCE

    with pytest.raises(RegistrySilent):
        ask(connections)

    # They have found out nothing: others may only be slow.
    assert not connections.silent
    with connections._turn:
        connections._waiting = 0


def test_more_than_a_share_wait_on_while_others_are_answered(server, connections, threads, monkeypatch):
    """As just after a start, when each of many requests asks which school it is of."""
    monkeypatch.setattr(registry, "BRIEFLY", 0.2)
    monkeypatch.setattr(registry, "PATIENCE", 3600)
    asking = hang(server, connections, threads)
    with connections._turn:
        connections._waiting = AT_ONCE
    clock, waits = [0.0], []
    monkeypatch.setattr(registry, "time", SimpleNamespace(monotonic=lambda: clock[0]))

    def answered_meanwhile(seconds):
        waits.append(seconds)
        # Later than it wanted: on a busy machine a thread comes to its turn late.
        clock[0] += 2 * seconds
        connections._answers += 1
        # Longer than any of them waits without an answer.
        if len(waits) == 50:
            server.hangs = False
            connections._under_way = 0

    monkeypatch.setattr(connections._turn, "wait", answered_meanwhile)
    assert ask(connections)
    assert len(waits) == 50

    monkeypatch.undo()
    with connections._turn:
        connections._waiting, connections._under_way = 0, AT_ONCE
    server.goes_on.set()
    assert [future.result() for future in asking] == [True] * AT_ONCE


def test_a_wait_while_others_are_answered_does_not_find_the_registry_silent(
    server, connections, threads, monkeypatch
):
    monkeypatch.setattr(registry, "PATIENCE", 0.05)
    hang(server, connections, threads)

    def answered_meanwhile():
        connections._answers += 1
        return False

    monkeypatch.setattr(connections._turn, "wait", lambda _seconds: answered_meanwhile())
    with pytest.raises(RegistrySilent):
        ask(connections)

    assert not connections.silent


def test_while_it_is_silent_one_tries_from_time_to_time(server, connections, threads, monkeypatch):
    monkeypatch.setattr(registry, "RETRY", 0)
    server.fails = no_answer()
    with pytest.raises(OperationalError):
        ask(connections)
    assert connections.silent

    server.hangs = True
    trying = threads.submit(ask, connections)
    assert server.begun.acquire(timeout=60)
    assert server.begun.acquire(timeout=60)
    for _ in range(5):
        with pytest.raises(RegistrySilent):
            ask(connections)
    assert server.asked == 2

    server.hangs, server.fails = False, None
    server.goes_on.set()
    assert trying.result(60)
    assert not connections.silent
    assert ask(connections)


def test_a_registry_that_refuses_connections_is_not_silent(server, connections):
    """It says so at once: nobody waits for it, and the next request may find it back."""
    server.fails = OperationalError("", {}, Exception("connection refused"))
    for _ in range(3):
        with pytest.raises(OperationalError):
            ask(connections)

    assert not connections.silent
    server.fails = None
    assert ask(connections)


def test_a_callers_own_failure_is_no_matter_of_the_registry(connections):
    with pytest.raises(ValueError, match="of the caller"), connections.connect():
        raise ValueError("of the caller")

    assert not connections.silent
    assert ask(connections)
