"""The state that the supervisor keeps for all workers, asked as workers ask it."""

import select
import socket
import threading

import pytest
from limits import RateLimitItemPerMinute
from limits.errors import StorageError
from limits.strategies import MovingWindowRateLimiter

from school_service.auth.machine_memory import MachineMemory
from school_service.core import machine
from school_service.core.errors import Busy
from school_service.core.machine import CONNECTION
from school_service.core.shares import Shares
from school_service.serving.common_state import CommonState, WorkerConnection


class Worker:
    """A worker in this process, and the work of its supervisor."""

    def __init__(self, state, workers=2):
        ours, self._control = socket.socketpair()
        self.supervisor = machine.RemoteSupervisor(ours, workers)
        self._state = state
        self._ours = ours
        self.clients = []
        self.thread = threading.Thread(target=self._run, daemon=True)

    def _run(self):
        while True:
            ready, _, _ = select.select(
                [self._control, *(client.connection for client in self.clients)], [], []
            )
            if self._control in ready:
                word, descriptors, _, _ = socket.recv_fds(self._control, 1, 1)
                if word != CONNECTION:
                    break
                self.clients.append(WorkerConnection(socket.socket(fileno=descriptors[0])))
            for client in [client for client in self.clients if client.connection in ready]:
                if not self._state.read(client):
                    self.clients.remove(client)
        for client in self.clients:
            client.connection.close()
        self._control.close()

    def __enter__(self):
        self.thread.start()
        return self.supervisor

    def __exit__(self, *_):
        self._ours.shutdown(socket.SHUT_RDWR)
        self._ours.close()
        self.thread.join()
        for connection in self.supervisor._idle:
            connection.close()


@pytest.fixture
def supervisor(monkeypatch):
    with Worker(CommonState()) as supervisor:
        monkeypatch.setattr(machine, "_supervisor", supervisor)
        yield supervisor


def test_turns_are_the_machines(supervisor):
    # Two objects, as two workers have them, and a third whose threads give up.
    shares, other, hasty = (
        Shares(1, total=2, waiting=1, patience=patience, name="sheets", of_machine=True)
        for patience in (60, 60, 0.05)
    )

    with shares.of("a"):
        with other.of("b"):
            for key in ("a", "c"):
                with pytest.raises(Busy), hasty.of(key):
                    pass
        with other.of("d"):
            pass
    with other.of("a"):
        pass


def test_a_waiting_caller_has_its_turn_when_another_ends(supervisor):
    shares = Shares(1, total=1, waiting=5, patience=30, name="printers", of_machine=True)
    order = []

    def wait(name):
        with shares.of(name):
            order.append(name)

    with shares.of("first"):
        threads = [threading.Thread(target=wait, args=(name,)) for name in ("second", "third")]
        for thread in threads:
            thread.start()
        order.append("first")
    for thread in threads:
        thread.join()

    assert order[0] == "first"
    assert sorted(order) == ["first", "second", "third"]


def test_the_turns_of_a_worker_that_is_gone_are_free(supervisor):
    shares = Shares(1, total=1, waiting=5, patience=30, name="hashing", of_machine=True)
    turn = shares.of("a")
    turn.__enter__()

    # As the system does where a worker is killed.
    turn._connection.close()

    with shares.of("b"):
        pass


def test_places_grow_with_the_workers_where_each_has_an_interpreter(monkeypatch):
    with Worker(CommonState(), workers=3) as supervisor:
        monkeypatch.setattr(machine, "_supervisor", supervisor)
        shares, hasty = (
            Shares(1, total=2, waiting=1, patience=patience, name="sheets", of_machine=True, grows=True)
            for patience in (60, 0.05)
        )
        with shares.of("a"), shares.of("b"), shares.of("c"), pytest.raises(Busy), hasty.of("d"):
            pass


def test_tries_are_counted_for_all_workers(supervisor):
    limiter, other = (MovingWindowRateLimiter(MachineMemory(supervisor, 5)) for _ in range(2))
    limit = RateLimitItemPerMinute(3)

    assert [limiter.hit(limit, "x"), other.hit(limit, "x"), limiter.hit(limit, "x")] == [True] * 3
    assert not other.hit(limit, "x")
    assert not limiter.test(limit, "x")
    assert other.get_window_stats(limit, "x").remaining == 0


def test_an_unknown_method_ends_the_connection_and_nothing_else(supervisor, logs):
    with pytest.raises(OSError, match="ended"):
        supervisor.count("no_such_method", timeout=60)

    assert supervisor.count("get_moving_window", "x", 3, 60, timeout=60)[1] == 0
    assert any("could not be answered" in line["message"] for line in logs())


def test_without_a_supervisor_tries_can_not_be_counted_and_turns_do_not_come(monkeypatch):
    with Worker(CommonState()) as supervisor:
        pass
    monkeypatch.setattr(machine, "_supervisor", supervisor)

    with pytest.raises(StorageError):
        MachineMemory(supervisor, 1).acquire_entry("x", 3, 60)
    with pytest.raises(Busy), Shares(1, waiting=1, patience=1, name="sheets", of_machine=True).of("a"):
        pass
