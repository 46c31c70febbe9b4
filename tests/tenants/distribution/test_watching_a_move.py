"""The progress of a move while it is under way; no Citus is needed to lose the connection to it."""

from __future__ import annotations

import socket
import threading
from contextlib import contextmanager
from types import SimpleNamespace

import pytest

from tenants.connections.engines import admin_engine
from tenants.distribution import moving


@pytest.fixture
def nobody():
    """An operator's engine on an address at which nobody listens."""
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        engine = admin_engine(f"postgresql://x:y@127.0.0.1:{closed.getsockname()[1]}/x")
    yield engine
    engine.dispose()


def test_a_move_that_fails_says_so_itself_and_its_watcher_nothing(nobody, monkeypatch, capfd):
    """An error in the watching thread was printed before the error of the move."""
    monkeypatch.setattr(moving, "_POLL_INTERVAL", 0)
    unforeseen = []
    monkeypatch.setattr(threading, "excepthook", unforeseen.append)

    @contextmanager
    def progress(_total):
        yield lambda _count: None

    with pytest.raises(moving.MoveRefused), moving._watched(SimpleNamespace(admin=nobody), progress):
        raise moving.MoveRefused("The school stays where it is: server closed the connection unexpectedly")

    assert unforeseen == []
    assert capfd.readouterr() == ("", "")
